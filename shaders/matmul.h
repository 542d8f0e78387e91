// One tile of Y = X Wᵀ on simdgroup matrices, W quantised. Prefill only.
//
// Weights are widened to float once a tile and never rounded; sums go through the
// columns in order. A row's values do not depend on the rows beside it.
#include "matrix.h"
#include "quantised.h"

constant constexpr uint BN = 64;      // outputs of a tile
constant constexpr uint BK = 32;      // columns that threadgroup memory holds
constant constexpr uint LD = BK + 4;  // floats of a row there

// A threadgroup of four simdgroups makes out[BM][BN] in ws, behind a barrier.
//
//   x       this thread's row of X, row index / (128 / BM) of the tile; null rows
//           count as zeros where valid is false
//   matrix  [outputs, columns]; first is the tile's first output, a multiple of 4
//   xs, ws  BM × LD and BN × LD floats of threadgroup memory
template <int BITS, int BM>
inline void multiply(threadgroup float* xs, threadgroup float* ws, device const bfloat* x, bool valid,
                     device const uchar* matrix, uint first, uint outputs, uint columns, uint index, uint sg) {
  constexpr uint VALUES = BM * BK / 128;  // of X that a thread brings
  constexpr uint DOWN = BM / 16;          // simdgroups below one another
  constexpr uint ACROSS = BN / 8 / (4 / DOWN);
  const uint x_row = index / (128 / BM), x_column = index % (128 / BM) * VALUES;
  // A thread widens 16 columns of one row of W.
  const uint tile = index / 8, quarter = index / 4 % 2, r = index % 4;
  const bool inside = first + tile * TILE < outputs;
  device const uchar* codes = matrix + (first / TILE + tile) * tile_bytes<BITS>(columns);

  simdgroup_float8x8 acc[2][ACROSS];
  UNROLL
  for (uint i = 0; i < 2; i++)
    UNROLL
    for (uint j = 0; j < ACROSS; j++) acc[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  const uint m0 = sg % DOWN * 16, n0 = sg / DOWN * ACROSS * 8;

  for (uint k0 = 0; k0 < columns; k0 += BK) {
    UNROLL
    for (uint i = 0; i < VALUES; i++) xs[x_row * LD + x_column + i] = valid ? float(x[k0 + x_column + i]) : 0.0f;
    threadgroup float* w = ws + (tile * TILE + r) * LD + quarter * QUARTER;
    if (inside) {
      const uint at = k0 / QUARTER + quarter;
      device const uchar* block = codes + ulong(at / 4) * (16 + 32 * BITS);
      const uint params = ((device const uint*)block)[r];
      const float scale = as_type<float>(params << 16), bias = as_type<float>(params & 0xffff0000u);
      device const uint* words = (device const uint*)(block + 16) + (at % 4) * (2 * BITS) + r * (BITS / 2);
      UNROLL
      for (uint i = 0; i < QUARTER; i++) {
        const uint code = (words[i / (32 / BITS)] >> (BITS * (i % (32 / BITS)))) & ((1u << BITS) - 1u);
        w[i] = scale * float(code) + bias;
      }
    } else {
      UNROLL
      for (uint i = 0; i < QUARTER; i++) w[i] = 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLL
    for (uint k = 0; k < BK; k += 8) {
      simdgroup_float8x8 a[2];
      UNROLL
      for (uint i = 0; i < 2; i++) simdgroup_load(a[i], xs + (m0 + 8 * i) * LD + k, LD);
      UNROLL
      for (uint j = 0; j < ACROSS; j++) {
        simdgroup_float8x8 b;
        simdgroup_load(b, ws + (n0 + 8 * j) * LD + k, LD, ulong2(0, 0), true);
        UNROLL
        for (uint i = 0; i < 2; i++) simdgroup_multiply_accumulate(acc[i][j], a[i], b, acc[i][j]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  UNROLL
  for (uint i = 0; i < 2; i++)
    UNROLL
    for (uint j = 0; j < ACROSS; j++) simdgroup_store(acc[i][j], ws + (m0 + 8 * i) * BN + n0 + 8 * j, BN);
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
