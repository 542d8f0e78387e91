// Projections of one row. Decode only: prompt rows go through matmul.metal.
//
//   y = W RMSNorm(h)   project_normed
//   h = h + W x        project_add
//
// A simdgroup makes args.each tiles of four outputs: with few, each threadgroup's
// own reading of h and norm would cost a tenth of what the matrix does. COLUMNS
// is a multiple of 64, outputs padded to whole tiles.
#include "quantised.h"

constant uint COLUMNS [[function_constant(0)]];  // of the matrix

// Brings a row's RMSNorm to threadgroup memory. It ends with a barrier.
inline void normalise(threadgroup bfloat* x, device const bfloat* h, device const bfloat* w, float eps,
                      threadgroup float* part, uint index, uint threads, uint sg, uint sgs, uint lane) {
  device const uint4* row = (device const uint4*)h;
  const float sum = sum_squares(row, COLUMNS, index, threads);
  const float scale = inverse_rms(threadgroup_sum(sum, part, sg, sgs, lane), COLUMNS, eps);
  normalise_row((threadgroup uint4*)x, row, (device const uint4*)w, scale, COLUMNS, index, threads);
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// project_normed: each threadgroup normalises the row for itself.
//
//   h, norm  [COLUMNS]
//   matrix   [4 × tiles, COLUMNS]
//   y        [4 × tiles], rounded where T is bfloat
//   x        [COLUMNS], threadgroup memory
template <int BITS, typename T>
[[max_total_threads_per_threadgroup(256)]] kernel void project_normed(
    constant ProjectArgs& args [[buffer(0)]],
    device const bfloat* h [[buffer(1)]],
    device const bfloat* norm [[buffer(2)]],
    device const uchar* matrix [[buffer(3)]],
    device T* y [[buffer(4)]],
    threadgroup bfloat* x [[threadgroup(0)]],
    uint group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[32];
  normalise(x, h, norm, args.eps, part, index, threads, sg, sgs, lane);
  const uint first = (group * sgs + sg) * args.each;
  for (uint tile = first; tile < min(first + args.each, args.tiles); tile++) {
    float sum[TILE] = {0.0f, 0.0f, 0.0f, 0.0f};
    multiply_tile<BITS>(sum, matrix + tile * tile_bytes<BITS>(COLUMNS), (threadgroup const uint4*)x, COLUMNS, lane);
#pragma clang loop unroll(full)
    for (uint r = 0; r < TILE; r++) {
      const float all = simd_sum(sum[r]);
      if (lane == 0) y[tile * TILE + r] = T(all);
    }
  }
}

template [[host_name("project_normed")]] kernel void project_normed<4, bfloat>(
    constant ProjectArgs&, device const bfloat*, device const bfloat*, device const uchar*, device bfloat*,
    threadgroup bfloat*, uint, uint, uint, uint, uint, uint);
template [[host_name("route_normed")]] kernel void project_normed<8, float>(
    constant ProjectArgs&, device const bfloat*, device const bfloat*, device const uchar*, device float*,
    threadgroup bfloat*, uint, uint, uint, uint, uint, uint);

// project_add: the product is rounded, then its sum with the residual stream.
//
//   x       [COLUMNS]
//   matrix  [4 × tiles, COLUMNS]
//   h       [4 × tiles]
[[max_total_threads_per_threadgroup(256)]] kernel void project_add(
    constant ProjectArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device bfloat* h [[buffer(3)]],
    uint group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint first = (group * sgs + sg) * args.each;
  for (uint tile = first; tile < min(first + args.each, args.tiles); tile++) {
    float sum[TILE] = {0.0f, 0.0f, 0.0f, 0.0f};
    multiply_tile<4>(sum, matrix + tile * tile_bytes<4>(COLUMNS), (device const uint4*)x, COLUMNS, lane);
#pragma clang loop unroll(full)
    for (uint r = 0; r < TILE; r++) {
      const float all = simd_sum(sum[r]);
      const uint at = tile * TILE + r;
      if (lane == 0) h[at] = bfloat(float(h[at]) + rounded(all));
    }
  }
}

// head: the logits of one row, and each threadgroup's largest.
//
//   h, norm  [COLUMNS]
//   matrix   [vocab padded to tiles, COLUMNS]
//   logits   [vocab padded to tiles], never rounded
//   parts    [threadgroups] (order key of the largest logit, its token)
[[max_total_threads_per_threadgroup(256)]] kernel void head(
    constant HeadArgs& args [[buffer(0)]],
    device const bfloat* h [[buffer(1)]],
    device const bfloat* norm [[buffer(2)]],
    device const uchar* matrix [[buffer(3)]],
    device float* logits [[buffer(4)]],
    device uint2* parts [[buffer(5)]],
    threadgroup bfloat* x [[threadgroup(0)]],
    uint group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[32];
  threadgroup uint2 best[32];
  normalise(x, h, norm, args.eps, part, index, threads, sg, sgs, lane);
  uint2 mine = uint2(0u, 0u);
  for (uint i = 0; i < args.each; i++) {
    const uint first = ((group * sgs + sg) * args.each + i) * TILE;
    if (first >= args.vocab) break;
    float sum[TILE] = {0.0f, 0.0f, 0.0f, 0.0f};
    multiply_tile<4>(sum, matrix + (first / TILE) * tile_bytes<4>(COLUMNS), (threadgroup const uint4*)x, COLUMNS, lane);
#pragma clang loop unroll(full)
    for (uint r = 0; r < TILE; r++) {
      const float all = simd_sum(sum[r]);
      if (lane == 0) logits[first + r] = all;
      const uint key = order_key(all);
      if (first + r < args.vocab && key > mine.x) mine = uint2(key, first + r);
    }
  }
  if (lane == 0) best[sg] = mine;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index != 0) return;
  for (uint i = 1; i < sgs; i++)
    if (best[i].x > mine.x) mine = best[i];
  parts[group] = mine;
}

// argmax: the token of the largest logit, of equals the lowest, -1 where any is
// not a number or the largest not a finite one. One threadgroup.
//
//   parts  [parts], as head leaves them
[[max_total_threads_per_threadgroup(1024)]] kernel void argmax(
    constant ArgmaxArgs& args [[buffer(0)]],
    device const uint2* parts [[buffer(1)]],
    device int* token [[buffer(2)]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint2 best[32];
  uint2 mine = uint2(0u, 0xffffffffu);
  for (uint i = index; i < args.parts; i += threads)
    if (parts[i].x > mine.x) mine = parts[i];
  const uint key = simd_max(mine.x);
  const uint at = simd_min(mine.x == key ? mine.y : 0xffffffffu);
  if (lane == 0) best[sg] = uint2(key, at);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg != 0) return;
  mine = lane < sgs ? best[lane] : uint2(0u, 0xffffffffu);
  const uint largest = simd_max(mine.x);
  const uint winner = simd_min(mine.x == largest ? mine.y : 0xffffffffu);
  // The keys of all finite numbers lie between those of the infinities.
  const bool finite = largest > order_key(-INFINITY) && largest < order_key(INFINITY);
  if (lane == 0) token[0] = finite ? int(winner) : -1;
}
