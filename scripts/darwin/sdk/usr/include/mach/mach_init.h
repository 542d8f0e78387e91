#pragma once
#include <stdint.h>
typedef unsigned int natural_t;
typedef int integer_t, kern_return_t, boolean_t;
typedef natural_t mach_port_t, mach_msg_type_number_t;
typedef mach_port_t task_t, vm_map_t;
typedef uint64_t mach_vm_address_t, mach_vm_size_t, memory_object_offset_t;
#define KERN_SUCCESS 0
#define MACH_PORT_NULL 0
extern mach_port_t mach_task_self_;
#define mach_task_self() mach_task_self_
