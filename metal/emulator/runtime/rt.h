// What compiled kernels, the fibre runtime and a host program share: the calls
// that a kernel makes (msl_rt_...), and the C interface of the library.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define MSL_MAX_BUFFERS 31
#define MSL_MAX_CONSTANTS 4
#define MSL_SLOT_BYTES 32

extern "C" {

// One dispatch, as MTLComputeCommandEncoder.dispatchThreadgroups would see it.
typedef struct msl_launch {
  uint32_t index;       // of the kernel, from msl_kernel_find
  uint32_t barrier;     // not 0: waits for all dispatches before it
  uint32_t groups[3];   // threadgroups in the grid
  uint32_t threads[3];  // threads in a threadgroup
  uint32_t shared;      // setThreadgroupMemoryLength at index 0
  uint32_t unused;
  uint32_t constants[MSL_MAX_CONSTANTS];  // values of function constants by index
  void* buf[MSL_MAX_BUFFERS];     // setBuffer with its offset, or setBytes
  uint64_t len[MSL_MAX_BUFFERS];  // bytes bound there
} msl_launch;

// How to run a list, and how that went.
typedef struct msl_run {
  uint32_t workers;  // OS threads; 0 means 1
  uint32_t order;    // 0 ascending, 1 descending, else a random seed
  uint32_t failed;   // out: the dispatch with the first fault
  char error[1020];  // out: that fault, empty if none
} msl_run;

// --- host side ---
uint32_t msl_kernel_count(void);
const char* msl_kernel_name(uint32_t i);
const char* msl_kernel_constant(uint32_t i, uint32_t index);  // its name, "" if none
int msl_kernel_find(const char* name);  // -1 if absent
// Memory for buffers: 0xFF in every byte, fenced at both ends.
void* msl_alloc(size_t size);
void msl_free(void* memory);
// Runs the dispatches in turn. Those without a barrier between them run in an
// order that belongs to run->order. Returns 0, or 1 with run->error.
int msl_run_list(const msl_launch* list, uint32_t n, msl_run* run);

// --- kernel side ---
// The running lane and its simdgroup's exchange slots for the next operation.
typedef struct msl_current { void* slots; uint32_t lane; } msl_current;
#if defined(__PIC__) && !defined(__PIE__)
extern __thread msl_current msl_cur;  // a library loaded late gets no static TLS
#else
extern __thread msl_current msl_cur __attribute__((tls_model("initial-exec")));
#endif
// Not 0: lanes meet at simdgroup loads and stores too, which proves that all of
// them got there. Those exchange nothing, so a run in ascending order does without.
extern uint32_t msl_strict;
inline void* msl_rt_slots(void) { return msl_cur.slots; }
inline uint32_t msl_rt_lane(void) { return msl_cur.lane; }
int msl_rt_rendezvous(const char* op, const char* file, int line);  // 1 on the last lane
void msl_rt_barrier(uint32_t flags, const char* file, int line);
void msl_rt_simd_barrier(uint32_t flags, const char* file, int line);
void msl_rt_check_lane(uint32_t lane, const char* file, int line);
void* msl_rt_tgvar(size_t size, size_t align, const char* file, int line);
void* msl_rt_shared(int slot);
}

namespace msl {
struct dim3;
namespace host {
struct KernelInfo {
  const char* name;
  void (*entry)(const msl_launch*);
  uint32_t max_threads;  // [[max_total_threads_per_threadgroup]], 0 if none
  uint32_t buffers;      // bit n set: [[buffer(n)]] is a parameter
  KernelInfo* next;
  uint32_t min_bytes[MSL_MAX_BUFFERS];  // sizeof(T) for `constant T&`
  const char* constants[MSL_MAX_CONSTANTS];  // names of function constants by index
  void (*specialise)(const uint32_t*);       // gives them their values; null if none
  KernelInfo(const char* name, void (*entry)(const msl_launch*), uint32_t max_threads, uint32_t buffers);
};
dim3 thread_position_in_grid();
dim3 thread_position_in_threadgroup();
dim3 threadgroup_position_in_grid();
dim3 threads_per_threadgroup();
dim3 threadgroups_per_grid();
dim3 threads_per_grid();
dim3 thread_index_in_threadgroup();
dim3 thread_index_in_simdgroup();
dim3 simdgroup_index_in_threadgroup();
dim3 simdgroups_per_threadgroup();
dim3 threads_per_simdgroup();
}  // namespace host
}  // namespace msl
