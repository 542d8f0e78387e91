#pragma once
#include <IOKit/IOKitLib.h>
// err_system(0x38) | err_sub(0) | message
#define iokit_common_msg(m) ((uint32_t)0xe0000000 | (m))
#define kIOMessageCanSystemSleep iokit_common_msg(0x270)
#define kIOMessageSystemWillSleep iokit_common_msg(0x280)
#define kIOMessageSystemWillNotSleep iokit_common_msg(0x290)
#define kIOMessageSystemHasPoweredOn iokit_common_msg(0x300)
#define kIOMessageSystemWillPowerOn iokit_common_msg(0x320)
