// Products of 8 × 8 matrices that a simdgroup holds, two elements a lane.
//
// Lane l holds row fragment_row(l), columns fragment_column(l) and the next, in
// every element type. Metal does not document that; it has been so on every GPU
// of Apple's, and public libraries (MLX) build on it.
#include "common.h"

inline uint fragment_row(uint lane) { return ((lane >> 2) & 4u) | ((lane >> 1) & 3u); }
inline uint fragment_column(uint lane) { return ((lane >> 1) & 4u) | ((lane & 1u) << 1); }

// The sum, and the largest, of a row's values, in each of the four lanes that
// hold the row.
inline float row_sum(float x) {
  x += simd_shuffle_xor(x, ushort(1));
  return x + simd_shuffle_xor(x, ushort(8));
}
inline float row_max(float x) {
  x = max(x, simd_shuffle_xor(x, ushort(1)));
  return max(x, simd_shuffle_xor(x, ushort(8)));
}

inline void scale_row(thread simdgroup_float8x8& m, float factor) {
  m.thread_elements()[0] *= factor;
  m.thread_elements()[1] *= factor;
}
