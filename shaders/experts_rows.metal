// The mixture of experts of prompt rows. Prefill only. The rows' choices are
// sorted by expert on the device, so that routing never leaves it:
//
//   route_rows       experts and weights of every row
//   count_experts    how many choices of 64 rows fall on each expert
//   place_experts    where each expert's entries start, and the list of tiles
//   scatter_experts  entries sorted by expert, in order of rows within
//   expert_*_rows    products of an expert's rows, ragged tiles of 16
//   combine_rows     the weighted sum, added to the residual stream
//
// An entry is row × chosen + slot.
#include "matmul.h"
#include "route.h"

constant constexpr uint BM = 16;          // rows of a tile of experts
constant constexpr uint BLOCK_ROWS = 64;  // rows of a block of choices

// route_rows: a simdgroup a row.
//
//   logits   [rows, stride]: experts, then the shared expert's
//   experts  [rows, chosen]
//   weights  [rows, chosen + 1], the shared expert's last
kernel void route_rows(
    constant RouteArgs& args [[buffer(0)]],
    device const float* logits [[buffer(1)]],
    device uint* experts [[buffer(2)]],
    device float* weights [[buffer(3)]],
    uint group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint t = group * sgs + sg;
  if (t >= args.rows) return;
  uint expert;
  float weight;
  device const float* row = logits + ulong(t) * args.stride;
  route(expert, weight, row, args.experts, args.chosen, lane);
  if (lane < args.chosen) experts[t * args.chosen + lane] = expert;
  if (lane == args.chosen) weight = shared_weight(row[args.experts]);
  if (lane <= args.chosen) weights[t * (args.chosen + 1) + lane] = weight;
}

// count_experts: counts [blocks, experts]; thread e of threadgroup b counts what
// block b chose of expert e.
[[max_total_threads_per_threadgroup(256)]] kernel void count_experts(
    constant RouteArgs& args [[buffer(0)]],
    device const uint* experts [[buffer(1)]],
    device uint* counts [[buffer(2)]],
    uint block [[threadgroup_position_in_grid]],
    uint e [[thread_index_in_threadgroup]]) {
  if (e >= args.experts) return;
  const uint from = block * BLOCK_ROWS * args.chosen;
  const uint to = min((block + 1) * BLOCK_ROWS, args.rows) * args.chosen;
  uint count = 0;
  for (uint i = from; i < to; i++) count += experts[i] == e ? 1u : 0u;
  counts[block * args.experts + e] = count;
}

// place_experts: counts become the place of each block's first entry; tiles gets
// (expert, first entry, entries) and, beyond the last tile, no entries. One
// threadgroup of 256, thread e for expert e.
//
//   tiles  [rows × chosen / 16 + experts]
[[max_total_threads_per_threadgroup(256)]] kernel void place_experts(
    constant RouteArgs& args [[buffer(0)]],
    device uint* counts [[buffer(1)]],
    device packed_uint3* tiles [[buffer(2)]],
    uint e [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint2 part[32];
  const uint blocks = (args.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  uint entries = 0;
  if (e < args.experts)
    for (uint b = 0; b < blocks; b++) entries += counts[b * args.experts + e];
  const uint own_tiles = (entries + BM - 1) / BM;
  uint first = simd_prefix_exclusive_sum(entries), tile = simd_prefix_exclusive_sum(own_tiles);
  if (lane == 31) part[sg] = uint2(first + entries, tile + own_tiles);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint all_tiles = 0;
  for (uint i = 0; i < 8; i++) {
    if (i < sg) {
      first += part[i].x;
      tile += part[i].y;
    }
    all_tiles += part[i].y;
  }
  if (e < args.experts) {
    uint place = first;
    for (uint b = 0; b < blocks; b++) {
      const uint count = counts[b * args.experts + e];
      counts[b * args.experts + e] = place;
      place += count;
    }
    for (uint i = 0; i < own_tiles; i++)
      tiles[tile + i] = packed_uint3(uint3(e, first + i * BM, min(entries - i * BM, BM)));
  }
  const uint most = args.rows * args.chosen / BM + args.experts;
  for (uint i = all_tiles + e; i < most; i += 256) tiles[i] = packed_uint3(uint3(0u, 0u, 0u));
}

// scatter_experts: entries [rows × chosen]; thread e of threadgroup b puts what
// block b chose of expert e in its place.
[[max_total_threads_per_threadgroup(256)]] kernel void scatter_experts(
    constant RouteArgs& args [[buffer(0)]],
    device const uint* experts [[buffer(1)]],
    device const uint* places [[buffer(2)]],
    device uint* entries [[buffer(3)]],
    uint block [[threadgroup_position_in_grid]],
    uint e [[thread_index_in_threadgroup]]) {
  if (e >= args.experts) return;
  uint place = places[block * args.experts + e];
  const uint from = block * BLOCK_ROWS * args.chosen;
  const uint to = min((block + 1) * BLOCK_ROWS, args.rows) * args.chosen;
  for (uint i = from; i < to; i++)
    if (experts[i] == e) {
      entries[place] = i;
      place++;
    }
}

// expert_gate_up_rows: inner of every entry, in sorted order. The grid is
// [outputs / 64, most tiles]; threadgroups beyond the last tile return.
//
//   x       [rows, columns]
//   matrix  [experts][outputs, columns], gate and up in turn
//   inner   [entries, outputs / 2]
[[max_total_threads_per_threadgroup(128)]] kernel void expert_gate_up_rows(
    constant GroupedArgs& args [[buffer(0)]],
    device const packed_uint3* tiles [[buffer(1)]],
    device const uint* entries [[buffer(2)]],
    device const bfloat* x [[buffer(3)]],
    device const uchar* matrix [[buffer(4)]],
    device bfloat* inner [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float xs[BM * LD];
  threadgroup float ws[BN * LD];
  const uint3 tile = tiles[group.y];
  if (tile.z == 0) return;
  const uint row = index / (128 / BM);
  const bool valid = row < tile.z;
  const uint source = valid ? entries[tile.y + row] / args.chosen : 0u;
  const ulong size = (args.outputs / TILE) * tile_bytes<4>(args.columns);
  multiply<4, BM>(xs, ws, x + ulong(source) * args.columns, valid, matrix + tile.x * size, group.x * BN, args.outputs,
                  args.columns, index, sg);
  for (uint i = index; i < BM * BN / 2; i += 128) {
    const uint t = i / (BN / 2), n = group.x * (BN / 2) + i % (BN / 2);
    if (t < tile.z && n < args.outputs / 2)
      inner[ulong(tile.y + t) * (args.outputs / 2) + n] = bfloat(silu(rounded(ws[2 * i])) * rounded(ws[2 * i + 1]));
  }
}

// expert_down_rows: y [rows × chosen, outputs] by entry, from inner in sorted
// order.
[[max_total_threads_per_threadgroup(128)]] kernel void expert_down_rows(
    constant GroupedArgs& args [[buffer(0)]],
    device const packed_uint3* tiles [[buffer(1)]],
    device const uint* entries [[buffer(2)]],
    device const bfloat* inner [[buffer(3)]],
    device const uchar* matrix [[buffer(4)]],
    device bfloat* y [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float xs[BM * LD];
  threadgroup float ws[BN * LD];
  const uint3 tile = tiles[group.y];
  if (tile.z == 0) return;
  const uint row = index / (128 / BM);
  const bool valid = row < tile.z;
  const ulong size = (args.outputs / TILE) * tile_bytes<4>(args.columns);
  multiply<4, BM>(xs, ws, inner + ulong(tile.y + (valid ? row : 0u)) * args.columns, valid, matrix + tile.x * size,
                  group.x * BN, args.outputs, args.columns, index, sg);
  for (uint i = index; i < BM * BN; i += 128) {
    const uint t = i / BN, n = group.x * BN + i % BN;
    if (t < tile.z && n < args.outputs) y[ulong(entries[tile.y + t]) * args.outputs + n] = bfloat(ws[i]);
  }
}

// combine_rows: h = h + rounded(Σ weight × y) over a row's slots in order, the
// shared expert last.
//
//   weights  [rows, chosen + 1]
//   y        [rows × chosen, hidden]
//   shared   [rows, hidden]
//   h        [rows, hidden]
[[max_total_threads_per_threadgroup(256)]] kernel void combine_rows(
    constant CombineArgs& args [[buffer(0)]],
    device const float* weights [[buffer(1)]],
    device const bfloat* y [[buffer(2)]],
    device const bfloat* shared [[buffer(3)]],
    device bfloat* h [[buffer(4)]],
    uint t [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  device const float* weight = weights + t * (args.chosen + 1);
  for (uint i = index; i < args.hidden; i += threads) {
    float sum = 0.0f;
    for (uint s = 0; s < args.chosen; s++)
      sum += weight[s] * float(y[(ulong(t) * args.chosen + s) * args.hidden + i]);
    const ulong at = ulong(t) * args.hidden + i;
    sum += weight[args.chosen] * float(shared[at]);
    h[at] = bfloat(float(h[at]) + rounded(sum));
  }
}
