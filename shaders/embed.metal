// embed: each row of h is the table's row of a token, rounded.
//
//   tokens  [rows]
//   table   [vocab, hidden], quantised with 4 bits
//   h       [rows, hidden]
//
// A threadgroup makes one row. A token below zero, which only a failed step
// hands on, takes row 0.
#include "quantised.h"

kernel void embed(
    constant EmbedArgs& args [[buffer(0)]],
    device const int* tokens [[buffer(1)]],
    device const uchar* table [[buffer(2)]],
    device bfloat* h [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  const uint token = uint(max(tokens[row], 0));
  device const uchar* tile = table + ulong(token / TILE) * tile_bytes<4>(args.hidden);
  const uint r = token % TILE;
  for (uint at = thread_index; at * QUARTER < args.hidden; at += threads) {
    device const uchar* block = tile + ulong(at / 4) * 144;
    const uint params = ((device const uint*)block)[r];
    const float scale = as_type<float>(params << 16), bias = as_type<float>(params & 0xffff0000u);
    const uint2 codes = ((device const uint2*)(block + 16 + (at % 4) * 32))[r];
    for (uint i = 0; i < QUARTER; i++) {
      const float code = float((codes[i / 8] >> (4 * (i % 8))) & 0xfu);
      h[ulong(row) * args.hidden + at * QUARTER + i] = bfloat(scale * code + bias);
    }
  }
}
