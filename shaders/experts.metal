// The mixture of experts of one row. Decode only. The router's logits are there;
// both kernels choose the experts again at their head, which costs less than a
// launch. The shared expert is the slot behind the chosen ones.
//
//   logits   [experts], then the shared expert's
//   gate_up  [experts][2 × EXPERT_DIM, HIDDEN], rows of gate and up in turn
//   down     [experts][HIDDEN, EXPERT_DIM]
//   inner    [CHOSEN × EXPERT_DIM + SHARED_DIM]
#include "quantised.h"
#include "route.h"

constant uint HIDDEN [[function_constant(0)]];
constant uint EXPERT_DIM [[function_constant(1)]];
constant uint SHARED_DIM [[function_constant(2)]];
constant uint CHOSEN [[function_constant(3)]];  // experts a row

// experts_gate_up: inner = silu(gate x) × up x of each slot, x = RMSNorm(h).
// A simdgroup makes two values from each of args.each tiles; the grid is
// [tiles / (8 × each), slots], and threadgroups beyond a slot's tiles return.
//
//   x  [HIDDEN], threadgroup memory
[[max_total_threads_per_threadgroup(256)]] kernel void experts_gate_up(
    constant ExpertsArgs& args [[buffer(0)]],
    device const bfloat* h [[buffer(1)]],
    device const bfloat* norm [[buffer(2)]],
    device const float* logits [[buffer(3)]],
    device const uchar* gate_up [[buffer(4)]],
    device const uchar* shared_gate_up [[buffer(5)]],
    device bfloat* inner [[buffer(6)]],
    threadgroup bfloat* x [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[32];
  threadgroup uint chosen_expert;
  const uint slot = group.y;
  const bool shared = slot == CHOSEN;
  const uint tiles = (shared ? SHARED_DIM : EXPERT_DIM) / 2;
  if (group.x * sgs * args.each >= tiles) return;

  device const uint4* row = (device const uint4*)h;
  const float sum = simd_sum(sum_squares(row, HIDDEN, index, sgs * 32));
  if (lane == 0) part[sg] = sum;
  if (sg == 0) {
    uint expert;
    float weight;
    route(expert, weight, logits, args.experts, CHOSEN, lane);
    if (lane == slot) chosen_expert = expert;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float scale = inverse_rms(simd_sum(lane < sgs ? part[lane] : 0.0f), HIDDEN, args.eps);
  normalise_row((threadgroup uint4*)x, row, (device const uint4*)norm, scale, HIDDEN, index, sgs * 32);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  device const uchar* matrix = shared_gate_up;
  if (!shared) matrix = gate_up + ulong(chosen_expert) * tiles * tile_bytes<4>(HIDDEN);
  const uint first = (group.x * sgs + sg) * args.each;
  for (uint tile = first; tile < min(first + args.each, tiles); tile++) {
    float values[TILE] = {0.0f, 0.0f, 0.0f, 0.0f};
    multiply_tile<4>(values, matrix + tile * tile_bytes<4>(HIDDEN), (threadgroup const uint4*)x, HIDDEN, lane);
#pragma clang loop unroll(full)
    for (uint r = 0; r < TILE; r++) values[r] = rounded(simd_sum(values[r]));
    device bfloat* out = inner + slot * EXPERT_DIM + tile * 2;
    if (lane == 0) {
      out[0] = bfloat(silu(values[0]) * values[1]);
      out[1] = bfloat(silu(values[2]) * values[3]);
    }
  }
}

constant constexpr uint DOWN_TILES = 2;  // tiles of a threadgroup of experts_down

// experts_down: h = h + Σ weight × rounded(down inner) over the slots, the
// largest weight first, the shared expert last; the sum is rounded at its end.
// A threadgroup makes DOWN_TILES tiles and has a simdgroup for each slot.
[[max_total_threads_per_threadgroup(1024)]] kernel void experts_down(
    constant ExpertsArgs& args [[buffer(0)]],
    device const float* logits [[buffer(1)]],
    device const bfloat* inner [[buffer(2)]],
    device const uchar* down [[buffer(3)]],
    device const uchar* shared_down [[buffer(4)]],
    device bfloat* h [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint slot [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint experts[32];
  threadgroup float weights[32];
  threadgroup float outputs[32 * DOWN_TILES * TILE];
  if (slot == 0) {
    uint expert;
    float weight;
    route(expert, weight, logits, args.experts, CHOSEN, lane);
    experts[lane] = expert;
    weights[lane] = lane == CHOSEN ? shared_weight(logits[args.experts]) : weight;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool shared = slot == CHOSEN;
  const uint columns = shared ? SHARED_DIM : EXPERT_DIM;
  const uint tiles = HIDDEN / TILE;
  device const uchar* matrix = shared_down;
  if (!shared) matrix = down + ulong(experts[slot]) * tiles * tile_bytes<4>(columns);
#pragma clang loop unroll(full)
  for (uint i = 0; i < DOWN_TILES; i++) {
    const uint tile = group * DOWN_TILES + i;
    float values[TILE] = {0.0f, 0.0f, 0.0f, 0.0f};
    multiply_tile<4>(values, matrix + tile * tile_bytes<4>(columns), (device const uint4*)(inner + slot * EXPERT_DIM), columns, lane);
#pragma clang loop unroll(full)
    for (uint r = 0; r < TILE; r++) {
      const float all = simd_sum(values[r]);
      if (lane == 0) outputs[(slot * DOWN_TILES + i) * TILE + r] = rounded(all);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index >= DOWN_TILES * TILE) return;
  float sum = 0.0f;
  for (uint s = 0; s <= CHOSEN; s++) sum += weights[s] * outputs[s * DOWN_TILES * TILE + index];
  const uint at = group * DOWN_TILES * TILE + index;
  h[at] = bfloat(float(h[at]) + rounded(sum));
}
