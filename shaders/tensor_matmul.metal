// The products of matmul.metal and experts_rows.metal on the matrix units of
// newer GPUs (Metal 4 tensor operations, macOS 26). Prefill only; a library of its
// own, compiled and used only where there are such units. The arguments, grids and
// results are those of the kernels whose names it prefixes.
//
// What the units multiply is exact in bfloat16: a row of X, and codes counted from
// their middle. Each quantisation group's product is then scaled in float, and
// the middle's share added by way of the group's sum of X:
//
//   y = Σ over groups: scale × (x · (code - 8)) + (bias + 8 scale) × Σ x
//
// Where an element of a cooperative tensor lies is asked for, never assumed.
#include "matrix.h"
#include "quantised.h"
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;

// The memory of a tile of BM rows by BN outputs while it is made.
struct Tile {
  threadgroup bfloat* x;       // [BM][GROUP]
  threadgroup bfloat* codes;   // [BN][GROUP]
  threadgroup float2* params;  // [BN] (scale, middle)
  threadgroup float* sums;     // [BM]
  threadgroup float* out;      // [BM][BN]
};

// Dense products have tiles of 32 rows by 64 outputs, experts' of 16 by 128: each
// of four simdgroups makes 16 by 32.
constant constexpr uint BM = 32;
constant constexpr uint BN = 64;
constant constexpr uint EXPERT_BM = 16;
constant constexpr uint EXPERT_BN = 128;

// A threadgroup of four simdgroups makes out[BM][BN], behind a barrier.
//
//   x  this thread's row of X, row index / 4 of the tile; zeros where not valid
template <uint BM, uint BN>
inline void multiply(thread const Tile& tile, device const bfloat* x, bool valid, device const uchar* matrix, uint first,
                     uint outputs, uint columns, uint index, uint sg) {
  constexpr matmul2d_descriptor shape(16, 32, 16, false, true, false, matmul2d_descriptor::mode::multiply_accumulate);
  matmul2d<shape, execution_simdgroup> op;
  auto a = op.get_left_input_cooperative_tensor<bfloat, bfloat, float>();
  auto b = op.get_right_input_cooperative_tensor<bfloat, bfloat, float>();
  auto part = op.get_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  auto all = op.get_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  const uint m0 = sg % (BM / 16) * 16, n0 = sg / (BM / 16) * 32;
  for (uint16_t i = 0; i < all.get_capacity(); i++) all[i] = 0.0f;

  const uint row = index / 4, quarter = index % 4;
  for (uint k0 = 0; k0 < columns; k0 += GROUP) {
    float sum = 0.0f;
    if (row < BM)
      for (uint i = 0; i < QUARTER; i++) {
        const bfloat v = valid ? x[k0 + quarter * QUARTER + i] : bfloat(0.0f);
        tile.x[row * GROUP + quarter * QUARTER + i] = v;
        sum += float(v);
      }
    sum += simd_shuffle_xor(sum, ushort(1));
    sum += simd_shuffle_xor(sum, ushort(2));
    if (row < BM && quarter == 0) tile.sums[row] = sum;
    for (uint n = row; n < BN; n += 32) {  // a thread brings a quarter of each
      const bool inside = first + n < outputs;
      device const uchar* block =
          matrix + ((first + n) / TILE) * tile_bytes<4>(columns) + ulong(k0 / GROUP) * (16 + 32 * 4);
      uint2 codes = uint2(0x88888888u, 0x88888888u);
      if (inside) codes = ((device const uint2*)(block + 16))[quarter * TILE + n % TILE];
      for (uint i = 0; i < QUARTER; i++)
        tile.codes[n * GROUP + quarter * QUARTER + i] = bfloat(float(int((codes[i / 8] >> (4 * (i % 8))) & 0xfu) - 8));
      if (quarter == 0) {
        const uint params = inside ? ((device const uint*)block)[n % TILE] : 0u;
        const float scale = as_type<float>(params << 16);
        tile.params[n] = float2(scale, as_type<float>(params & 0xffff0000u) + 8.0f * scale);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint16_t i = 0; i < part.get_capacity(); i++) part[i] = 0.0f;
    for (uint k = 0; k < GROUP; k += 16) {
      for (uint16_t i = 0; i < a.get_capacity(); i++) {
        const auto at = a.get_multidimensional_index(i);
        a[i] = tile.x[(m0 + uint(at[1])) * GROUP + k + uint(at[0])];
      }
      for (uint16_t i = 0; i < b.get_capacity(); i++) {
        const auto at = b.get_multidimensional_index(i);
        b[i] = tile.codes[(n0 + uint(at[1])) * GROUP + k + uint(at[0])];
      }
      op.run(a, b, part);
    }
    for (uint16_t i = 0; i < part.get_capacity(); i++) {
      const auto at = part.get_multidimensional_index(i);
      const float2 params = tile.params[n0 + uint(at[0])];
      all[i] += params.x * part[i] + params.y * tile.sums[m0 + uint(at[1])];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint16_t i = 0; i < all.get_capacity(); i++) {
    const auto at = all.get_multidimensional_index(i);
    tile.out[(m0 + uint(at[1])) * BN + n0 + uint(at[0])] = all[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// tensor_matmul: y [rows, outputs].
[[max_total_threads_per_threadgroup(128)]] kernel void tensor_matmul(
    constant MatmulArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device bfloat* y [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup bfloat xs[BM * GROUP];
  threadgroup bfloat codes[BN * GROUP];
  threadgroup float2 params[BN];
  threadgroup float sums[BM];
  threadgroup float out[BM * BN];
  const Tile memory = {xs, codes, params, sums, out};
  const uint row = group.y * BM + index / 4;
  multiply<BM, BN>(memory, x + ulong(row) * args.columns, row < args.rows, matrix, group.x * BN, args.outputs, args.columns, index, sg);
  for (uint i = index; i < BM * BN; i += 128) {
    const uint t = group.y * BM + i / BN, n = group.x * BN + i % BN;
    if (t < args.rows && n < args.outputs) y[ulong(t) * args.outputs + n] = bfloat(out[i]);
  }
}

// tensor_matmul_add: h = h + rounded(y).
[[max_total_threads_per_threadgroup(128)]] kernel void tensor_matmul_add(
    constant MatmulArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device bfloat* h [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup bfloat xs[BM * GROUP];
  threadgroup bfloat codes[BN * GROUP];
  threadgroup float2 params[BN];
  threadgroup float sums[BM];
  threadgroup float out[BM * BN];
  const Tile memory = {xs, codes, params, sums, out};
  const uint row = group.y * BM + index / 4;
  multiply<BM, BN>(memory, x + ulong(row) * args.columns, row < args.rows, matrix, group.x * BN, args.outputs, args.columns, index, sg);
  for (uint i = index; i < BM * BN; i += 128) {
    const uint t = group.y * BM + i / BN, n = group.x * BN + i % BN;
    if (t >= args.rows || n >= args.outputs) continue;
    const ulong at = ulong(t) * args.outputs + n;
    h[at] = bfloat(float(h[at]) + rounded(out[i]));
  }
}

// tensor_matmul_swiglu: y [rows, outputs / 2].
[[max_total_threads_per_threadgroup(128)]] kernel void tensor_matmul_swiglu(
    constant MatmulArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device bfloat* y [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup bfloat xs[BM * GROUP];
  threadgroup bfloat codes[BN * GROUP];
  threadgroup float2 params[BN];
  threadgroup float sums[BM];
  threadgroup float out[BM * BN];
  const Tile memory = {xs, codes, params, sums, out};
  const uint row = group.y * BM + index / 4;
  multiply<BM, BN>(memory, x + ulong(row) * args.columns, row < args.rows, matrix, group.x * BN, args.outputs, args.columns, index, sg);
  for (uint i = index; i < BM * BN / 2; i += 128) {
    const uint t = group.y * BM + i / (BN / 2), n = group.x * (BN / 2) + i % (BN / 2);
    if (t < args.rows && n < args.outputs / 2)
      y[ulong(t) * (args.outputs / 2) + n] = bfloat(silu(rounded(out[2 * i])) * rounded(out[2 * i + 1]));
  }
}

// tensor_expert_gate_up_rows: inner [entries, outputs / 2].
[[max_total_threads_per_threadgroup(128)]] kernel void tensor_expert_gate_up_rows(
    constant GroupedArgs& args [[buffer(0)]],
    device const packed_uint3* tiles [[buffer(1)]],
    device const uint* entries [[buffer(2)]],
    device const bfloat* x [[buffer(3)]],
    device const uchar* matrix [[buffer(4)]],
    device bfloat* inner [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup bfloat xs[EXPERT_BM * GROUP];
  threadgroup bfloat codes[EXPERT_BN * GROUP];
  threadgroup float2 params[EXPERT_BN];
  threadgroup float sums[EXPERT_BM];
  threadgroup float out[EXPERT_BM * EXPERT_BN];
  const Tile memory = {xs, codes, params, sums, out};
  const uint3 tile = tiles[group.y];
  if (tile.z == 0) return;
  const uint row = index / 4;
  const bool valid = row < tile.z;
  const ulong size = (args.outputs / TILE) * tile_bytes<4>(args.columns);
  const uint source = valid ? entries[tile.y + row] / args.chosen : 0u;
  multiply<EXPERT_BM, EXPERT_BN>(memory, x + ulong(source) * args.columns, valid, matrix + tile.x * size,
                                 group.x * EXPERT_BN, args.outputs, args.columns, index, sg);
  for (uint i = index; i < EXPERT_BM * EXPERT_BN / 2; i += 128) {
    const uint t = i / (EXPERT_BN / 2), n = group.x * (EXPERT_BN / 2) + i % (EXPERT_BN / 2);
    if (t < tile.z && n < args.outputs / 2)
      inner[ulong(tile.y + t) * (args.outputs / 2) + n] = bfloat(silu(rounded(out[2 * i])) * rounded(out[2 * i + 1]));
  }
}

// tensor_expert_down_rows: y [rows × chosen, outputs] by entry.
[[max_total_threads_per_threadgroup(128)]] kernel void tensor_expert_down_rows(
    constant GroupedArgs& args [[buffer(0)]],
    device const packed_uint3* tiles [[buffer(1)]],
    device const uint* entries [[buffer(2)]],
    device const bfloat* inner [[buffer(3)]],
    device const uchar* matrix [[buffer(4)]],
    device bfloat* y [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup bfloat xs[EXPERT_BM * GROUP];
  threadgroup bfloat codes[EXPERT_BN * GROUP];
  threadgroup float2 params[EXPERT_BN];
  threadgroup float sums[EXPERT_BM];
  threadgroup float out[EXPERT_BM * EXPERT_BN];
  const Tile memory = {xs, codes, params, sums, out};
  const uint3 tile = tiles[group.y];
  if (tile.z == 0) return;
  const uint row = index / 4;
  const bool valid = row < tile.z;
  const ulong size = (args.outputs / TILE) * tile_bytes<4>(args.columns);
  multiply<EXPERT_BM, EXPERT_BN>(memory, inner + ulong(tile.y + (valid ? row : 0u)) * args.columns, valid,
                                 matrix + tile.x * size, group.x * EXPERT_BN, args.outputs, args.columns, index, sg);
  for (uint i = index; i < EXPERT_BM * EXPERT_BN; i += 128) {
    const uint t = i / EXPERT_BN, n = group.x * EXPERT_BN + i % EXPERT_BN;
    if (t < tile.z && n < args.outputs) y[ulong(entries[tile.y + t]) * args.outputs + n] = bfloat(out[i]);
  }
}
