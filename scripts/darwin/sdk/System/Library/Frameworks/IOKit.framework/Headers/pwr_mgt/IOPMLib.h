#pragma once
#include <CoreFoundation/CoreFoundation.h>
#include <IOKit/IOKitLib.h>
typedef uint32_t IOPMAssertionID, IOPMAssertionLevel;
#define kIOPMAssertionLevelOn 255
#define kIOPMAssertionTypePreventUserIdleSystemSleep ((CFStringRef)(__bridge const void *)@"PreventUserIdleSystemSleep")
IOReturn IOPMAssertionCreateWithName(CFStringRef type, IOPMAssertionLevel level, CFStringRef name, IOPMAssertionID *id);
IOReturn IOPMAssertionRelease(IOPMAssertionID id);
io_connect_t IORegisterForSystemPower(void *refcon, IONotificationPortRef *port, IOServiceInterestCallback callback, io_object_t *notifier);
IOReturn IODeregisterForSystemPower(io_object_t *notifier);
IOReturn IOAllowPowerChange(io_connect_t port, intptr_t id);
