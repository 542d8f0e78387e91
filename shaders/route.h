// The router's choice: the largest logits, the largest first, of equals the lower
// expert. Weights are the softmax over the chosen logits, which is the softmax
// over all, renormalised.
#include "common.h"

constant constexpr uint MAX_EXPERTS = 256;
constant constexpr uint KEYS = MAX_EXPERTS / 32;

// One simdgroup chooses; lane k gets the k-th expert and its weight, k < chosen.
inline void route(thread uint& expert, thread float& weight, device const float* logits, uint experts, uint chosen, uint lane) {
  uint keys[KEYS];
#pragma clang loop unroll(full)
  for (uint i = 0; i < KEYS; i++) keys[i] = i * 32 + lane < experts ? order_key(logits[i * 32 + lane]) : 0u;
  expert = 0;
  for (uint n = 0; n < chosen; n++) {
    uint best = keys[0], at = lane;
#pragma clang loop unroll(full)
    for (uint i = 1; i < KEYS; i++)
      if (keys[i] > best) {
        best = keys[i];
        at = i * 32 + lane;
      }
    const uint largest = simd_max(best);
    const uint winner = simd_min(best == largest ? at : 0xffffffffu);
    if (lane == n) expert = winner;
#pragma clang loop unroll(full)
    for (uint i = 0; i < KEYS; i++)
      if (i * 32 + lane == winner) keys[i] = 0u;
  }
  const float logit = lane < chosen ? logits[expert] : 0.0f;
  const float largest = simd_broadcast(logit, ushort(0));
  const float p = lane < chosen ? precise::exp(logit - largest) : 0.0f;
  weight = p / simd_sum(p);
}

// How much of the shared expert a row takes, from its logit.
inline float shared_weight(float logit) { return rounded(sigmoid(rounded(logit))); }
