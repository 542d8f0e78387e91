#pragma once
#include <mach/mach_init.h>
typedef int vm_region_flavor_t, *vm_region_info_t;
#pragma pack(push, 4)
typedef struct vm_region_basic_info_64 {
	int protection, max_protection;
	unsigned inheritance;
	boolean_t shared, reserved;
	memory_object_offset_t offset;
	int behavior;
	unsigned short user_wired_count;
} vm_region_basic_info_data_64_t;
#pragma pack(pop)
#define VM_REGION_BASIC_INFO_64 9
#define VM_REGION_BASIC_INFO_COUNT_64 (sizeof(vm_region_basic_info_data_64_t) / sizeof(int))
kern_return_t mach_vm_region(vm_map_t, mach_vm_address_t *, mach_vm_size_t *, vm_region_flavor_t, vm_region_info_t, mach_msg_type_number_t *, mach_port_t *);
