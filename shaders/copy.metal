// copy: memory to memory, as fast as the device can: what the rates of other
// kernels are measured against.
//
//   from, to  [count], 16 bytes each
//
// A threadgroup copies each × threads values.
#include "common.h"

kernel void copy(
    constant CopyArgs& args [[buffer(0)]],
    device const uint4* from [[buffer(1)]],
    device uint4* to [[buffer(2)]],
    uint group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  const uint first = group * threads * args.each + index;
  for (uint i = 0; i < args.each; i++) {
    const uint at = first + i * threads;
    if (at < args.count) to[at] = from[at];
  }
}
