// normalise_rows: RMSNorm of each row. The normalised value is rounded, then its
// product with the weight. Prefill only: decode normalises in the kernels that
// project.
//
//   x, y  [rows, width]
//   w     [width]
//
// A threadgroup makes one row.
#include "common.h"

kernel void normalise_rows(
    constant NormArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const bfloat* w [[buffer(2)]],
    device bfloat* y [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[32];
  device const bfloat* in = x + ulong(row) * args.width;
  float sum = 0.0f;
  for (uint i = index; i < args.width; i += threads) sum += float(in[i]) * float(in[i]);
  const float scale = inverse_rms(threadgroup_sum(sum, part, sg, sgs, lane), args.width, args.eps);
  for (uint i = index; i < args.width; i += threads)
    y[ulong(row) * args.width + i] = bfloat(rounded(float(in[i]) * scale) * float(w[i]));
}
