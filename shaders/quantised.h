// Affine-quantised matrices as the device keeps them: value = scale × code + bias
// in quantisation groups of 64 columns.
//
// Four neighbouring rows are one tile, four rows by 64 columns one block. Blocks
// follow one another along a tile, tiles one another, so that a simdgroup reads
// what it needs in one contiguous stretch, sixteen bytes a lane and load:
//
//   params   4 × (scale, bias)  bfloat16, 16 bytes
//   codes    4 quarters of 16 columns, each 4 rows × 16 codes, the lowest first:
//            32 bytes a quarter with 4 bits, 64 with 8
//
// A block is 144 bytes with 4 bits, 272 with 8: what the checkpoint takes too.
// The rows of a matrix are padded to whole tiles with zeros.
#include "row.h"

constant constexpr uint GROUP = 64;    // columns of a quantisation group
constant constexpr uint TILE = 4;      // rows of a tile
constant constexpr uint QUARTER = 16;  // columns that a lane takes at once

template <int BITS>
inline ulong tile_bytes(uint columns) { return ulong(columns / GROUP) * (16 + 32 * BITS); }

// One lane's part of a block: four rows of 16 columns.
template <int BITS>
struct Quarter {
  uint4 params;
  uint codes[TILE * BITS / 2];
};

// How many quarters a lane has loads under way for before it multiplies the first.
constant constexpr uint AHEAD = 2;

// Reads quarter number at of a tile.
template <int BITS>
inline void load_quarter(thread Quarter<BITS>& q, device const uchar* tile, uint at) {
  device const uint4* block = (device const uint4*)(tile + ulong(at / 4) * (16 + 32 * BITS));
  q.params = block[0];
#pragma clang loop unroll(full)
  for (uint i = 0; i < uint(BITS / 2); i++) {
    const uint4 v = block[1 + (at % 4) * (BITS / 2) + i];
#pragma clang loop unroll(full)
    for (uint j = 0; j < 4; j++) q.codes[4 * i + j] = v[j];
  }
}

// Code of column i of row r, less the middle.
template <int BITS>
inline float code_at(thread const Quarter<BITS>& q, uint r, uint i) {
  const uint per = 32 / BITS;
  const uint word = q.codes[r * (QUARTER / per) + i / per];
  return float(int((word >> (BITS * (i % per))) & ((1u << BITS) - 1u)) - (1 << (BITS - 1)));
}

// sum[r] += row r of the quarter times 16 values of x. Codes are counted from their
// middle: from zero, the products' sum and the bias nearly cancel.
template <int BITS>
inline void add_products(thread float* sum, thread const Quarter<BITS>& q, thread const float* x) {
  float all = 0.0f;
#pragma clang loop unroll(full)
  for (uint i = 0; i < QUARTER; i++) all += x[i];
#pragma clang loop unroll(full)
  for (uint r = 0; r < TILE; r++) {
    float dot = 0.0f;
#pragma clang loop unroll(full)
    for (uint i = 0; i < QUARTER; i++) dot += code_at(q, r, i) * x[i];
    const float scale = as_type<float>(q.params[r] << 16);
    const float middle = as_type<float>(q.params[r] & 0xffff0000u) + float(1 << (BITS - 1)) * scale;
    sum[r] += scale * dot + middle * all;
  }
}

// sum[r] += row r of the tile times x, this lane's share of the columns. All
// lanes together have the product. P points to x as uint4, of device or threadgroup
// memory.
template <int BITS, typename P>
inline void multiply_tile(thread float* sum, device const uchar* tile, P x, uint columns, uint lane) {
  for (uint from = lane; from * QUARTER < columns; from += 32 * AHEAD) {
    Quarter<BITS> q[AHEAD];
#pragma clang loop unroll(full)
    for (uint i = 0; i < AHEAD; i++)
      if ((from + 32 * i) * QUARTER < columns) load_quarter(q[i], tile, from + 32 * i);
#pragma clang loop unroll(full)
    for (uint i = 0; i < AHEAD; i++) {
      const uint at = from + 32 * i;
      if (at * QUARTER >= columns) break;
      float values[QUARTER];
      widen(values, x[2 * at]);
      widen(values + 8, x[2 * at + 1]);
      add_products(sum, q[i], values);
    }
  }
}
