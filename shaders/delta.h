// What the delta net's kernels share: the convolution's causal window, gates and
// norms of one head. Heads have KD key and VD value dimensions; a value head uses
// the key head KEY_HEADS × head / VALUE_HEADS. Channels are q heads, k heads,
// v heads.
#include "common.h"

constant uint VALUE_HEADS [[function_constant(0)]];
constant uint KEY_HEADS [[function_constant(1)]];

constant constexpr uint TAPS = 4;

// silu of the convolution at one channel. window[0] is the oldest row.
inline float convolved(thread const float* window, device const bfloat* taps, uint channel) {
  float sum = 0.0f;
#pragma clang loop unroll(full)
  for (uint j = 0; j < TAPS; j++) sum += float(taps[channel * TAPS + j]) * window[j];
  return rounded(silu(rounded(sum)));
}

// The factor that brings width values of a sum of squares to unit length.
inline float unit_scale(float squares, uint width) { return inverse_rms(squares, width, 1e-6f / float(width)); }

inline float write_gate(float b) { return rounded(sigmoid(b)); }

// The logarithm of what a step leaves of the state; at most 0.
inline float log_decay(float a, float rate, float dt) { return -rate * softplus(a + dt); }
