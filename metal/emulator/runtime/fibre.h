// What the fibre runtime offers to the part that runs lists.
#pragma once
#include "rt.h"

#include <atomic>

namespace msl::host {

constexpr uint32_t kLanes = 32, kMaxThreads = 1024;
constexpr size_t kMaxShared = 32 << 10;  // Apple GPUs' limit

// begin starts a dispatch, end a list's end. For ThreadSanitizer, only a barrier
// orders a dispatch behind those before it.
void begin(bool barrier);
void end();

// run_threadgroups takes threadgroups by number from next until none is left or
// one has failed; several threads may do so at once.
void run_threadgroups(const msl_launch* launch, const KernelInfo* kernel, msl_run* run, std::atomic<uint64_t>* next);

bool failed();

// end_threadgroup is called behind each threadgroup where a build traces loads
// and stores (trace.cpp).
__attribute__((weak)) void end_threadgroup();

}  // namespace msl::host
