// delta_step: the delta net of one row between its projections, in one launch.
// Decode only: prompt rows go through delta_chunk.metal.
//
//   convolution, silu, unit norms, gates;
//   S = decay × S;  d = beta (v - S k);  S = S + d kᵀ;  o = S q;
//   y = RMSNorm(o) × silu(z)
//
//   projected  [width]: q, k, v channels, then z, b, a at the arguments' places
//   conv_in    [3, channels], the oldest row first; conv_out gets the new one
//   taps       [channels, 4], the last one meets the row itself
//   rate, dt   [VALUE_HEADS]; rate = exp(A_log)
//   norm       [VD]
//   state      [VALUE_HEADS, VD, KD], changed in place
//   y          [VALUE_HEADS × VD]
//
// A threadgroup makes a value head. conv_in is read by several, so conv_out is
// another buffer; of the heads that share a key head the first writes its part.
// Bytes of state: 2 × 4 × VALUE_HEADS × VD × KD a row. Flops a value head: 7 KD VD
// for decay, memory, write and output, 128 VD to sum across lanes and for every
// lane to have d, 12 (2 KD + VD) for convolution and silu, 10 a thread for gates.
#include "delta.h"

constant constexpr uint ROWS = 4;  // of the state that a simdgroup has under way

template <int KD, int VD>
[[max_total_threads_per_threadgroup(256)]] kernel void delta_step(
    constant DeltaArgs& args [[buffer(0)]],
    device const bfloat* projected [[buffer(1)]],
    device const bfloat* conv_in [[buffer(2)]],
    device bfloat* conv_out [[buffer(3)]],
    device const bfloat* taps [[buffer(4)]],
    device const float* rate [[buffer(5)]],
    device const float* dt [[buffer(6)]],
    device const float* norm [[buffer(7)]],
    device float* state [[buffer(8)]],
    device bfloat* y [[buffer(9)]],
    uint head [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float row[2 * KD + VD];  // q, k, v of this head
  threadgroup float o[VD];
  threadgroup float part[32];
  const uint per = VALUE_HEADS / KEY_HEADS;
  const uint key_head = head / per;
  const uint keys = KEY_HEADS * KD, channels = 2 * keys + VALUE_HEADS * VD;

  for (uint i = index; i < 2 * KD + VD; i += threads) {
    uint c = 2 * keys + head * VD + i - 2 * KD;
    if (i < KD) c = key_head * KD + i;
    else if (i < 2 * KD) c = keys + key_head * KD + i - KD;
    float window[TAPS];
    for (uint j = 0; j + 1 < TAPS; j++) window[j] = float(conv_in[j * channels + c]);
    window[TAPS - 1] = float(projected[c]);
    row[i] = convolved(window, taps, c);
    if (i >= 2 * KD || head % per == 0)
      for (uint j = 0; j + 1 < TAPS; j++) conv_out[j * channels + c] = bfloat(window[j + 1]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  if (sg < 2) {  // one simdgroup brings the query to unit length, one the key
    threadgroup float* x = row + sg * KD;
    float sum = 0.0f;
    for (uint i = lane; i < KD; i += 32) sum += x[i] * x[i];
    const float scale = unit_scale(simd_sum(sum), KD);
    const float root = precise::sqrt(float(KD));
    const float length = (sg == 0 ? 1.0f / root : 1.0f) / root;
    for (uint i = lane; i < KD; i += 32) x[i] = rounded(rounded(x[i] * scale) * length);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  const float beta = write_gate(float(projected[args.b + head]));
  const float decay = precise::exp(log_decay(float(projected[args.a + head]), rate[head], dt[head]));
  constexpr uint PER_LANE = KD / 32;
  float q[PER_LANE], k[PER_LANE];
  for (uint i = 0; i < PER_LANE; i++) {
    q[i] = row[lane * PER_LANE + i];
    k[i] = row[KD + lane * PER_LANE + i];
  }
  device float* own = state + ulong(head) * VD * KD + lane * PER_LANE;
  for (uint v = sg * ROWS; v < VD; v += sgs * ROWS) {
    float s[ROWS][PER_LANE];
#pragma clang loop unroll(full)
    for (uint r = 0; r < ROWS; r++)
#pragma clang loop unroll(full)
      for (uint i = 0; i < PER_LANE; i++) s[r][i] = decay * own[(v + r) * KD + i];
#pragma clang loop unroll(full)
    for (uint r = 0; r < ROWS; r++) {
      float memory = 0.0f, out = 0.0f;
      for (uint i = 0; i < PER_LANE; i++) memory += s[r][i] * k[i];
      const float d = beta * (row[2 * KD + v + r] - simd_sum(memory));
      for (uint i = 0; i < PER_LANE; i++) {
        s[r][i] += d * k[i];
        out += s[r][i] * q[i];
      }
      out = simd_sum(out);
      if (lane == 0) o[v + r] = rounded(out);
    }
#pragma clang loop unroll(full)
    for (uint r = 0; r < ROWS; r++)
#pragma clang loop unroll(full)
      for (uint i = 0; i < PER_LANE; i++) own[(v + r) * KD + i] = s[r][i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  float sum = 0.0f;
  for (uint i = index; i < VD; i += threads) sum += o[i] * o[i];
  const float scale = inverse_rms(threadgroup_sum(sum, part, sg, sgs, lane), VD, args.eps);
  for (uint i = index; i < VD; i += threads) {
    const float z = float(projected[args.z + head * VD + i]);
    y[head * VD + i] = bfloat(rounded(rounded(o[i] * scale) * norm[i]) * silu(z));
  }
}

template [[host_name("delta_step_64_64")]] kernel void delta_step<64, 64>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device const float*, device float*, device bfloat*,
    uint, uint, uint, uint, uint, uint);
template [[host_name("delta_step_64_128")]] kernel void delta_step<64, 128>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device const float*, device float*, device bfloat*,
    uint, uint, uint, uint, uint, uint);
template [[host_name("delta_step_128_64")]] kernel void delta_step<128, 64>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device const float*, device float*, device bfloat*,
    uint, uint, uint, uint, uint, uint);
template [[host_name("delta_step_128_128")]] kernel void delta_step<128, 128>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device const float*, device float*, device bfloat*,
    uint, uint, uint, uint, uint, uint);
