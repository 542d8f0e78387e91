// Products of prompt rows with one matrix: Y = X Wᵀ, and what becomes of Y. The
// grid is [outputs / 64, rows / 32], a threadgroup four simdgroups. Prefill only;
// decode's twins are in project.metal.
//
//   x       [rows, columns]
//   matrix  [outputs padded to tiles, columns]
//
// Flops: 2 × rows × outputs × columns, rows padded to 32.
#include "matmul.h"

constant constexpr uint BM = 32;

// Which row of X a thread of multiply brings.
inline uint tile_row(uint index) { return index / (128 / BM); }

// matmul: y [rows, outputs padded to 4], rounded where T is bfloat.
template <int BITS, typename T>
[[max_total_threads_per_threadgroup(128)]] kernel void matmul(
    constant MatmulArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device T* y [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float xs[BM * LD];
  threadgroup float ws[BN * LD];
  const uint row = group.y * BM + tile_row(index);
  multiply<BITS, BM>(xs, ws, x + ulong(row) * args.columns, row < args.rows, matrix, group.x * BN, args.outputs,
                     args.columns, index, sg);
  for (uint i = index; i < BM * BN; i += 128) {
    const uint t = group.y * BM + i / BN, n = group.x * BN + i % BN;
    if (t < args.rows && n < args.outputs) y[ulong(t) * args.outputs + n] = T(ws[i]);
  }
}

template [[host_name("matmul")]] kernel void matmul<4, bfloat>(
    constant MatmulArgs&, device const bfloat*, device const uchar*, device bfloat*, uint2, uint, uint);
template [[host_name("route_rows_logits")]] kernel void matmul<8, float>(
    constant MatmulArgs&, device const bfloat*, device const uchar*, device float*, uint2, uint, uint);

// matmul_add: h = h + rounded(y), h [rows, outputs].
[[max_total_threads_per_threadgroup(128)]] kernel void matmul_add(
    constant MatmulArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device bfloat* h [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float xs[BM * LD];
  threadgroup float ws[BN * LD];
  const uint row = group.y * BM + tile_row(index);
  multiply<4, BM>(xs, ws, x + ulong(row) * args.columns, row < args.rows, matrix, group.x * BN, args.outputs,
                  args.columns, index, sg);
  for (uint i = index; i < BM * BN; i += 128) {
    const uint t = group.y * BM + i / BN, n = group.x * BN + i % BN;
    if (t >= args.rows || n >= args.outputs) continue;
    const ulong at = ulong(t) * args.outputs + n;
    h[at] = bfloat(float(h[at]) + rounded(ws[i]));
  }
}

// matmul_swiglu: rows of the matrix are gate and up in turn;
// y = silu(rounded gate) × rounded up, [rows, outputs / 2].
[[max_total_threads_per_threadgroup(128)]] kernel void matmul_swiglu(
    constant MatmulArgs& args [[buffer(0)]],
    device const bfloat* x [[buffer(1)]],
    device const uchar* matrix [[buffer(2)]],
    device bfloat* y [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float xs[BM * LD];
  threadgroup float ws[BN * LD];
  const uint row = group.y * BM + tile_row(index);
  multiply<4, BM>(xs, ws, x + ulong(row) * args.columns, row < args.rows, matrix, group.x * BN, args.outputs,
                  args.columns, index, sg);
  for (uint i = index; i < BM * BN / 2; i += 128) {
    const uint t = group.y * BM + i / (BN / 2), n = group.x * (BN / 2) + i % (BN / 2);
    if (t < args.rows && n < args.outputs / 2)
      y[ulong(t) * (args.outputs / 2) + n] = bfloat(silu(rounded(ws[2 * i])) * rounded(ws[2 * i + 1]));
  }
}
