//go:build cgo

#import <Foundation/Foundation.h>
#import <IOKit/IOKitLib.h>
#import <IOKit/IOMessage.h>
#import <IOKit/pwr_mgt/IOPMLib.h>
#include <dispatch/dispatch.h>
#include <stdlib.h>
#include <unistd.h>
#include "power_darwin.h"

int calla_power_hold(const char *reason, uint32_t *hold) {
  @autoreleasepool {
    NSString *name = [NSString stringWithUTF8String:reason];
    return IOPMAssertionCreateWithName(kIOPMAssertionTypePreventUserIdleSystemSleep, kIOPMAssertionLevelOn,
                                       (__bridge CFStringRef)name, hold);
  }
}

void calla_power_release(uint32_t hold) { IOPMAssertionRelease(hold); }

struct calla_power_watch {
  int fd;
  io_connect_t root;
  IONotificationPortRef port;
  io_object_t notifier;
};

// The system waits for the answer to a sleep that it tells of for thirty seconds.
static void told(void *refcon, io_service_t service, uint32_t message, void *argument) {
  calla_power_watch *w = refcon;
  calla_power_event e = {0, (int64_t)(intptr_t)argument};
  switch (message) {
    case kIOMessageCanSystemSleep:  // by itself: what is to hinder it holds an assertion
      IOAllowPowerChange(w->root, (intptr_t)argument);
      return;
    case kIOMessageSystemWillSleep:
      e.kind = calla_power_sleeps;
      break;
    case kIOMessageSystemWillNotSleep:
    case kIOMessageSystemHasPoweredOn:
      e.kind = calla_power_wakes;
      break;
    default:
      return;
  }
  // A pipe takes so few bytes whole or not at all. Where it does not, nobody reads.
  if (write(w->fd, &e, sizeof e) != sizeof e && e.kind == calla_power_sleeps)
    IOAllowPowerChange(w->root, (intptr_t)argument);
}

calla_power_watch *calla_power_begin(int fd) {
  calla_power_watch *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->fd = fd;
  w->root = IORegisterForSystemPower(w, &w->port, told, &w->notifier);
  if (w->root == IO_OBJECT_NULL) {
    free(w);
    return NULL;
  }
  IONotificationPortSetDispatchQueue(w->port, dispatch_get_global_queue(0, 0));
  return w;
}

void calla_power_allow(calla_power_watch *w, int64_t id) { IOAllowPowerChange(w->root, (intptr_t)id); }

// A message may be on its way still, so the watch itself stays: there is one a
// process, of a few bytes.
void calla_power_end(calla_power_watch *w) {
  IODeregisterForSystemPower(&w->notifier);
  IONotificationPortDestroy(w->port);
  IOServiceClose(w->root);
}

int64_t calla_power_thermal(void) {
  @autoreleasepool {
    return NSProcessInfo.processInfo.thermalState;
  }
}

int64_t calla_power_low(void) {
  @autoreleasepool {
    return NSProcessInfo.processInfo.lowPowerModeEnabled ? 1 : 0;
  }
}
