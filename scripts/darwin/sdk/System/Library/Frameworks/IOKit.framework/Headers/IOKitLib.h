#pragma once
#include <stdint.h>
#include <dispatch/dispatch.h>
typedef int IOReturn;
typedef unsigned int natural_t;
typedef unsigned int io_object_t;
typedef io_object_t io_connect_t, io_service_t;
typedef struct IONotificationPort *IONotificationPortRef;
typedef void (*IOServiceInterestCallback)(void *refcon, io_service_t service, uint32_t messageType, void *messageArgument);
#define kIOReturnSuccess 0
#define IO_OBJECT_NULL ((io_object_t)0)
void IONotificationPortSetDispatchQueue(IONotificationPortRef p, dispatch_queue_t q);
void IONotificationPortDestroy(IONotificationPortRef p);
IOReturn IOServiceClose(io_connect_t c);
