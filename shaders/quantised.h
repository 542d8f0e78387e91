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
#include "common.h"

constant constexpr uint GROUP = 64;    // columns of a quantisation group
constant constexpr uint TILE = 4;      // rows of a tile
constant constexpr uint QUARTER = 16;  // columns that a lane takes at once

template <int BITS>
inline ulong tile_bytes(uint columns) { return ulong(columns / GROUP) * (16 + 32 * BITS); }

// One lane's part of a block: four rows of 16 columns.
template <int BITS>
struct Quarter {
  uint codes[TILE * BITS / 2];
  float scale[TILE];
  float middle[TILE];  // the value of a code of 8 (of 128 with 8 bits)
};

// Reads quarter number at of a tile. Codes are counted from their middle: from
// zero, the products' sum and the bias nearly cancel.
template <int BITS>
inline void load_quarter(thread Quarter<BITS>& q, device const uchar* tile, uint at) {
  device const uint4* block = (device const uint4*)(tile + ulong(at / 4) * (16 + 32 * BITS));
  const uint4 params = block[0];
#pragma clang loop unroll(full)
  for (uint r = 0; r < TILE; r++) {
    q.scale[r] = as_type<float>(params[r] << 16);
    q.middle[r] = as_type<float>(params[r] & 0xffff0000u) + float(1 << (BITS - 1)) * q.scale[r];
  }
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

// sum[r] += row r of the quarter times 16 values of x.
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
    sum[r] += q.scale[r] * dot + q.middle[r] * all;
  }
}

// Sixteen values of a row in memory.
template <typename P>
inline void load_values(thread float* x, P from) {
#pragma clang loop unroll(full)
  for (uint i = 0; i < QUARTER; i++) x[i] = float(from[i]);
}

// sum[r] += row r of the tile times x, this lane's share of the columns. All
// lanes together have the product.
template <int BITS, typename P>
inline void multiply_tile(thread float* sum, device const uchar* tile, P x, uint columns, uint lane) {
  for (uint at = lane; at * QUARTER < columns; at += 32) {
    Quarter<BITS> q;
    float values[QUARTER];
    load_quarter(q, tile, at);
    load_values(values, x + at * QUARTER);
    add_products(sum, q, values);
  }
}
