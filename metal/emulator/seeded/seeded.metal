// Kernels with one planted fault each, bad_..., and what they should be, good_...:
// the tests prove that every fault is caught.
#include <metal_stdlib>
using namespace metal;

// Missing barrier between the write and the neighbour's read.
kernel void bad_race(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup float buf[64];
  buf[tid] = float(tid);
  y[tid] = buf[(tid + 1) % 64];
}
kernel void good_race(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup float buf[64];
  buf[tid] = float(tid);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[tid] = buf[(tid + 1) % 64];
}
// Two threadgroups write one word.
kernel void bad_group_race(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = 1.0f;
}
// simd_sum orders values, not memory: a lane reads its neighbour's store.
kernel void bad_simd_race(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup float buf[64];
  buf[tid] = float(tid);
  const float s = simd_sum(1.0f);
  y[tid] = s + buf[tid ^ 1];
}
kernel void bad_barrier(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid < 48) threadgroup_barrier(mem_flags::mem_threadgroup);
  y[tid] = 0.0f;
}
kernel void bad_barrier_sites(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[tid] = 0.0f;
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[tid] = 1.0f;
  }
}
kernel void bad_simd_divergence(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid % 32 < 20) y[tid] = simd_sum(1.0f);
}
kernel void bad_simd_exit(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid % 32 >= 20) return;
  y[tid] = simd_sum(1.0f);
}
kernel void bad_device_bounds(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  y[tid + 1] = 0.0f;
}
kernel void bad_tg_bounds(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup float buf[63];
  buf[tid] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[tid] = buf[tid];
}
// Reads threadgroup memory nobody wrote: NaN under poison.
kernel void bad_uninit(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup float buf[64];
  if (tid < 63) buf[tid] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[tid] = buf[tid];
}
kernel void bad_shift(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = float(1u << tid);
}
// Reads one element beyond the buffer.
kernel void bad_device_read(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  const float next = y[tid + 1];
  threadgroup_barrier(mem_flags::mem_device);
  y[tid] = next;
}
// Leaves its last output as it was.
kernel void bad_unwritten(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid < 63) y[tid] = 0.0f;
}
kernel void good_copy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = x[tid];
}
// One product of matrices and, in lanes below 20, a multiply-add: 1024 and 40
// operations a simdgroup.
kernel void arithmetic(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8, 8>(float(tid));
  simdgroup_multiply_accumulate(a, a, a, a);
  y[tid] = tid % 32 < 20 ? a.thread_elements()[0] * y[tid] + 1.0f : a.thread_elements()[1];
}
// Function constants: read in the kernel's own body, and in a function's.
constant uint FACTOR [[function_constant(0)]];
constant uint OFFSET [[function_constant(2)]];

inline uint moved(uint x) { return x + OFFSET; }

kernel void scale(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = float(tid * FACTOR);
}
kernel void scale_and_move(device float* y [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = float(moved(tid * FACTOR));
}
// Reads its input twice.
kernel void bad_double_read(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint tid [[thread_index_in_threadgroup]]) {
  const float first = x[tid];
  threadgroup_barrier(mem_flags::mem_device);
  y[tid] = first + x[tid];
}
