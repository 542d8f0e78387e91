// The machine's power on macOS, as plain C functions. All may be called from any
// thread.
#pragma once
#include <stdint.h>

// Keeps the machine from falling asleep by itself. 0, or an IOReturn.
int calla_power_hold(const char *reason, uint32_t *hold);
void calla_power_release(uint32_t hold);

// What is written, whole, to the pipe of a watch.
typedef struct {
  int64_t kind;  // calla_power_sleeps or calla_power_wakes
  int64_t id;    // of a sleep that waits for calla_power_allow
} calla_power_event;

enum { calla_power_sleeps = 1, calla_power_wakes = 2 };

// Writes events to the file descriptor until unwatch. NULL where the system does
// not tell. One watch a process.
typedef struct calla_power_watch calla_power_watch;
calla_power_watch *calla_power_begin(int fd);
void calla_power_allow(calla_power_watch *watch, int64_t id);
void calla_power_end(calla_power_watch *watch);

// NSProcessInfoThermalState, 0 to 3.
int64_t calla_power_thermal(void);
// Whether Low Power Mode is on.
int64_t calla_power_low(void);
