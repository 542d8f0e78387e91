// One row of activations, eight values of bfloat16 at a time: a load for each
// value would leave most of a GPU's paths to memory idle, and in threadgroup
// memory the lanes of a simdgroup would queue for the same banks.
#include "common.h"

inline void widen(thread float* x, uint4 eight) {
#pragma clang loop unroll(full)
  for (uint i = 0; i < 4; i++) {
    x[2 * i] = as_type<float>(eight[i] << 16);
    x[2 * i + 1] = as_type<float>(eight[i] & 0xffff0000u);
  }
}

inline uint4 narrow(thread const float* x) {
  uint4 eight;
#pragma clang loop unroll(full)
  for (uint i = 0; i < 4; i++)
    eight[i] = uint(as_type<ushort>(bfloat(x[2 * i]))) | uint(as_type<ushort>(bfloat(x[2 * i + 1]))) << 16;
  return eight;
}

// A thread's share of the sum of a row's squares. width is a multiple of 8.
inline float sum_squares(device const uint4* row, uint width, uint index, uint threads) {
  float sum = 0.0f;
  for (uint i = index; i < width / 8; i += threads) {
    float x[8];
    widen(x, row[i]);
#pragma clang loop unroll(full)
    for (uint j = 0; j < 8; j++) sum += x[j] * x[j];
  }
  return sum;
}

// A thread's share of the row times scale, rounded, times the weight.
inline void normalise_row(threadgroup uint4* y, device const uint4* row, device const uint4* weight, float scale, uint width,
                      uint index, uint threads) {
  for (uint i = index; i < width / 8; i += threads) {
    float x[8], w[8];
    widen(x, row[i]);
    widen(w, weight[i]);
#pragma clang loop unroll(full)
    for (uint j = 0; j < 8; j++) x[j] = rounded(x[j] * scale) * w[j];
    y[i] = narrow(x);
  }
}
