// What all kernels share. Activations are bfloat16 between kernels and float
// inside; sums, softmax, router logits, gates and the recurrent state are float.
//
// House rules, so that Metal, clang and fast compilers agree: every parameter
// has an attribute, conversions are explicit, all 32 lanes of a simdgroup reach
// every simdgroup operation, and no infinity is computed with.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
#include "args.h"
using namespace metal;

// Before a loop over values that must stay in registers. The emulated device
// has no registers to keep, and no time for such code.
#if defined(MSL_HOST)
#define UNROLL
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif

// Float rounded to bfloat16 and widened again.
inline float rounded(float x) { return float(bfloat(x)); }

inline float sigmoid(float x) { return 1.0f / (1.0f + precise::exp(-x)); }

inline float silu(float x) { return x / (1.0f + precise::exp(-x)); }

// log(1 + e^x), overflowing for no x.
inline float softplus(float x) {
  const float e = precise::exp(-fabs(x));
  // log(1 + e) loses the bits of a small e: its series does not.
  const float l = e < 1e-3f ? e * (1.0f - e * (0.5f - e * (1.0f / 3.0f))) : precise::log(1.0f + e);
  return max(x, 0.0f) + l;
}

// 1 / sqrt(mean + eps) of the sum of n squares.
inline float inverse_rms(float squares, uint n, float eps) { return precise::rsqrt(squares / float(n) + eps); }

// A key that orders floats as unsigned integers, equal zeros together and
// not-a-number above all. No float has the key 0.
inline uint order_key(float x) {
  const uint u = x == 0.0f ? 0u : as_type<uint>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
  return (u & 0x80000000u) != 0u ? ~u : u | 0x80000000u;
}

// The sum over a threadgroup's threads, in every thread. part has one float a
// simdgroup. It ends behind a barrier: part may be written again after the next.
inline float threadgroup_sum(float x, threadgroup float* part, uint sg, uint sgs, uint lane) {
  const float s = simd_sum(x);
  if (lane == 0) part[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(lane < sgs ? part[lane] : 0.0f);
}
