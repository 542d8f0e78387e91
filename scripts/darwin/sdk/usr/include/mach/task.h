#pragma once
#include <mach/mach_init.h>
typedef natural_t task_flavor_t;
typedef integer_t *task_info_t;
typedef struct time_value { integer_t seconds, microseconds; } time_value_t;
#pragma pack(push, 4)
typedef struct mach_task_basic_info {
	mach_vm_size_t virtual_size, resident_size, resident_size_max;
	time_value_t user_time, system_time;
	int policy;
	integer_t suspend_count;
} mach_task_basic_info_data_t;
#pragma pack(pop)
#define MACH_TASK_BASIC_INFO 20
#define MACH_TASK_BASIC_INFO_COUNT (sizeof(mach_task_basic_info_data_t) / sizeof(natural_t))
kern_return_t task_info(task_t, task_flavor_t, task_info_t, mach_msg_type_number_t *);
