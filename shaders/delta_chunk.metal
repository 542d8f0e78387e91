// The delta net of prompt rows between its projections: the gated delta rule for
// a sub-chunk of at most 64 rows at once, in the WY form. Prefill only.
//
// With G_i the sum of log-decays up to row i of a sub-chunk and
//
//   M_ij = beta_i (k_i·k_j) exp(G_i - G_j)  j < i,   T = (I + M)⁻¹
//   A_ij = (q_i·k_j) exp(G_i - G_j)         j ≤ i
//
// neither of which depends on the state, and R_i = beta_i (v_i - exp(G_i) S k_i):
//
//   D = T R                                   row i is the d of row i
//   o_i = exp(G_i) S q_i + Σ_j A_ij D_j
//   S   = exp(G_n) S + Σ_j exp(G_n - G_j) D_j k_jᵀ
//
// delta_prepare makes q, k, v and gates, delta_pairs T and A of all sub-chunks in
// parallel, delta_chunk walks the sub-chunks, gated_norm_rows ends. Row i of a
// sub-chunk depends on rows up to i alone, to the bit: T and A are triangular,
// and what lies beyond adds exact zeros.
//
// Flops a sub-chunk of 64 rows and value head, with K and V key and value
// dimensions: pairs 5/8 × 4 × 64² K for the products up to the diagonal, in blocks
// of 16 by 8, and 64³ to solve for T; walk 2 × 64 × 3 K V, and 9/16 × 4 × 64² V for
// the products with T and A, in blocks of 8 by 8.
#include "delta.h"
#include "matrix.h"

constant constexpr uint CHUNK = 64;
constant constexpr uint COLUMNS = 32;  // value dimensions of one threadgroup

// delta_prepare: convolution, silu, unit norms and gates.
//
//   projected  [rows, width]
//   conv_in    [3, channels], the rows before the first; conv_out the last three
//   q, k, v    [rows + 63, channels] of float, rounded; rows beyond the last are 0
//   gates      [rows + 63, VALUE_HEADS] (beta, log-decay), 0 beyond the last
//
// A simdgroup makes a head of a row: q heads, k heads, v heads.
template <int KD, int VD>
kernel void delta_prepare(
    constant DeltaArgs& args [[buffer(0)]],
    device const bfloat* projected [[buffer(1)]],
    device const bfloat* conv_in [[buffer(2)]],
    device bfloat* conv_out [[buffer(3)]],
    device const bfloat* taps [[buffer(4)]],
    device const float* rate [[buffer(5)]],
    device const float* dt [[buffer(6)]],
    device float* qkv [[buffer(7)]],
    device float2* gates [[buffer(8)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint t = group.x, head = group.y * sgs + sg;
  if (head >= 2 * KEY_HEADS + VALUE_HEADS) return;
  const uint keys = KEY_HEADS * KD, channels = 2 * keys + VALUE_HEADS * VD;
  const bool is_value = head >= 2 * KEY_HEADS;
  const uint dim = is_value ? VD : KD;
  const uint first = is_value ? 2 * keys + (head - 2 * KEY_HEADS) * VD : head * KD;

  // Row r of the sequence that begins with the conv state.
  constexpr uint PER_LANE = (KD > VD ? KD : VD) / 32;
  float x[PER_LANE];
  float sum = 0.0f;
  UNROLL
  for (uint i = 0; i < PER_LANE; i++) {
    const uint c = first + lane + 32 * i;
    x[i] = 0.0f;
    if (lane + 32 * i >= dim) continue;
    float window[TAPS];
    for (uint j = 0; j < TAPS; j++) {
      const uint r = t + j;
      window[j] = 0.0f;
      if (r < TAPS - 1) window[j] = float(conv_in[r * channels + c]);
      else if (r < TAPS - 1 + args.rows) window[j] = float(projected[ulong(r - (TAPS - 1)) * args.width + c]);
    }
    if (t < TAPS - 1) {
      const uint r = args.rows + t;
      conv_out[t * channels + c] =
          r < TAPS - 1 ? conv_in[r * channels + c] : projected[ulong(r - (TAPS - 1)) * args.width + c];
    }
    if (t < args.rows) x[i] = convolved(window, taps, c);
    sum += x[i] * x[i];
  }
  const float scale = unit_scale(simd_sum(sum), KD);
  const float root = precise::sqrt(float(KD));
  const float length = (head < KEY_HEADS ? 1.0f / root : 1.0f) / root;
  UNROLL
  for (uint i = 0; i < PER_LANE; i++) {
    if (lane + 32 * i >= dim) continue;
    const float value = is_value ? x[i] : rounded(rounded(x[i] * scale) * length);
    qkv[ulong(t) * channels + first + lane + 32 * i] = value;
  }
  if (!is_value || lane != 0) return;
  const uint h = head - 2 * KEY_HEADS;
  float2 gate = float2(0.0f, 0.0f);
  if (t < args.rows) {
    device const bfloat* p = projected + ulong(t) * args.width;
    gate.x = write_gate(float(p[args.b + h]));
    gate.y = log_decay(float(p[args.a + h]), rate[h], dt[h]);
  }
  gates[ulong(t) * VALUE_HEADS + h] = gate;
}

// The gates of a sub-chunk's rows and the sums of their log-decays; rows beyond
// the last count as rows of no decay and no write. One simdgroup does it.
inline void sum_gates(threadgroup float* sums, threadgroup float* beta, device const float2* gates, uint2 chunk,
                      uint head, uint heads, uint lane) {
  float before = 0.0f;
  for (uint half_chunk = 0; half_chunk < 2; half_chunk++) {
    const uint i = half_chunk * 32 + lane;
    float2 gate = float2(0.0f, 0.0f);
    if (i < chunk.y) gate = gates[ulong(chunk.x + i) * heads + head];
    const float sum = before + simd_prefix_inclusive_sum(gate.y);
    sums[i] = sum;
    beta[i] = gate.x;
    before = simd_broadcast(sum, ushort(31));
  }
}

// m = X Kᵀ of a sub-chunk's rows x and k, of which there are n: each of four
// simdgroups makes 16 rows of it, or none where all lie beyond the last.
template <int KD>
inline void multiply_rows(threadgroup float* m, device const float* x, device const float* k, uint n, uint channels,
                          uint sg) {
  if (16 * sg >= n) return;
  for (uint j = 0; j < CHUNK / 8; j++) {
    simdgroup_float8x8 acc[2];
    acc[0] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    acc[1] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    if (8 * j < 16 * (sg + 1))  // above the diagonal nothing is used
      for (uint d = 0; d < uint(KD); d += 8) {
        simdgroup_float8x8 b;
        simdgroup_load(b, k + ulong(8 * j) * channels + d, channels, ulong2(0, 0), true);
        UNROLL
        for (uint i = 0; i < 2; i++) {
          simdgroup_float8x8 a;
          simdgroup_load(a, x + ulong(16 * sg + 8 * i) * channels + d, channels);
          simdgroup_multiply_accumulate(acc[i], a, b, acc[i]);
        }
      }
    UNROLL
    for (uint i = 0; i < 2; i++) simdgroup_store(acc[i], m + (16 * sg + 8 * i) * CHUNK + 8 * j, CHUNK);
  }
}

// delta_pairs: T and A of sub-chunk first + group.x, value head group.y.
//
//   chunks  [..] (first row, rows) of each sub-chunk
//   pairs   [chunks, VALUE_HEADS, 2, 64, 64]: T, then A
//
// Four simdgroups.
template <int KD, int VD>
[[max_total_threads_per_threadgroup(128)]] kernel void delta_pairs(
    constant ChunkArgs& args [[buffer(0)]],
    device const uint2* chunks [[buffer(1)]],
    device const float* qkv [[buffer(2)]],
    device const float2* gates [[buffer(3)]],
    device float* pairs [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float m[CHUNK * CHUNK];
  threadgroup float sums[CHUNK];
  threadgroup float beta[CHUNK];
  const uint2 chunk = chunks[args.first + group.x];
  const uint head = group.y, key_head = head / (VALUE_HEADS / KEY_HEADS);
  const uint keys = KEY_HEADS * KD, channels = 2 * keys + VALUE_HEADS * VD;
  device const float* q = qkv + ulong(chunk.x) * channels + key_head * KD;
  device const float* k = q + keys;
  device float* out = pairs + (ulong(group.x) * VALUE_HEADS + head) * 2 * CHUNK * CHUNK;

  if (sg == 0) sum_gates(sums, beta, gates, chunk, head, VALUE_HEADS, lane);
  multiply_rows<KD>(m, k, k, chunk.y, channels, sg);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint at = index; at < CHUNK * CHUNK; at += 128) {
    const uint i = at / CHUNK, j = at % CHUNK;
    m[at] = j < i && i < chunk.y ? -beta[i] * precise::exp(sums[i] - sums[j]) * m[at] : 0.0f;  // -M
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  // A thread solves one column of (I + M) T = I from the top.
  if (index < CHUNK) {
    float column[CHUNK];
    UNROLL
    for (uint i = 0; i < CHUNK; i++) {
      float value = i == index ? 1.0f : 0.0f;
      UNROLL
      for (uint j = 0; j < i; j++) value += m[i * CHUNK + j] * column[j];
      column[i] = value;
      out[i * CHUNK + index] = value;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  multiply_rows<KD>(m, q, k, chunk.y, channels, sg);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint at = index; at < CHUNK * CHUNK; at += 128) {
    const uint i = at / CHUNK, j = at % CHUNK;
    out[CHUNK * CHUNK + at] = j <= i && i < chunk.y ? precise::exp(sums[i] - sums[j]) * m[at] : 0.0f;
  }
}

// delta_chunk: sub-chunks first to first + chunks, in turn, of value head group.y
// and value dimensions 32 group.x to 32 group.x + 31.
//
//   state  [VALUE_HEADS, VD, KD], changed in place
//   o      [rows, VALUE_HEADS × VD], rounded
//
// Four simdgroups.
template <int KD, int VD>
[[max_total_threads_per_threadgroup(128)]] kernel void delta_chunk(
    constant ChunkArgs& args [[buffer(0)]],
    device const uint2* chunks [[buffer(1)]],
    device const float* qkv [[buffer(2)]],
    device const float2* gates [[buffer(3)]],
    device const float* pairs [[buffer(4)]],
    device float* state [[buffer(5)]],
    device bfloat* o [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float s[COLUMNS * KD];
  threadgroup float r[CHUNK * COLUMNS];
  threadgroup float sums[CHUNK];
  threadgroup float beta[CHUNK];
  const uint head = group.y, key_head = head / (VALUE_HEADS / KEY_HEADS);
  const uint keys = KEY_HEADS * KD, values = VALUE_HEADS * VD, channels = 2 * keys + values;
  const uint column = head * VD + group.x * COLUMNS;
  device float* own = state + (ulong(head) * VD + group.x * COLUMNS) * KD;
  for (uint i = index; i < COLUMNS * KD; i += 128) s[i] = own[i];
  const uint row = fragment_row(lane), pair = fragment_column(lane);

  for (uint c = 0; c < args.chunks; c++) {
    const uint2 chunk = chunks[args.first + c];
    device const float* q = qkv + ulong(chunk.x) * channels + key_head * KD;
    device const float* k = q + keys;
    device const float* v = qkv + ulong(chunk.x) * channels + 2 * keys + column;
    device const float* t = pairs + (ulong(c) * VALUE_HEADS + head) * 2 * CHUNK * CHUNK;
    device const float* a = t + CHUNK * CHUNK;
    if (sg == 0) sum_gates(sums, beta, gates, chunk, head, VALUE_HEADS, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // R and, kept in registers, exp(G) S q. A simdgroup whose rows all lie
    // beyond the last has none of either.
    const bool live = 16 * sg < chunk.y;
    simdgroup_float8x8 out[2][COLUMNS / 8];
    if (!live)
      for (uint i = lane; i < 16 * COLUMNS; i += 32) r[16 * sg * COLUMNS + i] = 0.0f;
    UNROLL
    for (uint i = 0; i < 2; i++) {
      if (!live) continue;
      const uint at = 16 * sg + 8 * i;
      const float fade = precise::exp(sums[at + row]);
      UNROLL
      for (uint j = 0; j < COLUMNS / 8; j++) {
        simdgroup_float8x8 remembered = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        out[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        for (uint d = 0; d < uint(KD); d += 8) {
          simdgroup_float8x8 x, st;
          simdgroup_load(st, s + 8 * j * KD + d, KD, ulong2(0, 0), true);
          simdgroup_load(x, k + ulong(at) * channels + d, channels);
          simdgroup_multiply_accumulate(remembered, x, st, remembered);
          simdgroup_load(x, q + ulong(at) * channels + d, channels);
          simdgroup_multiply_accumulate(out[i][j], x, st, out[i][j]);
        }
        scale_row(out[i][j], fade);
        for (uint e = 0; e < 2; e++) {
          const uint n = 8 * j + pair + e;
          const float value = at + row < chunk.y ? v[ulong(at + row) * channels + n] : 0.0f;
          r[(at + row) * COLUMNS + n] = beta[at + row] * (value - fade * remembered.thread_elements()[e]);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // D takes the place of R.
    simdgroup_float8x8 d[2][COLUMNS / 8];
    UNROLL
    for (uint i = 0; i < 2; i++)
      UNROLL
      for (uint j = 0; j < COLUMNS / 8; j++) {
        d[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        if (!live) continue;
        for (uint n = 0; n < 16 * sg + 8 * i + 8; n += 8) {
          simdgroup_float8x8 x, y;
          simdgroup_load(x, t + (16 * sg + 8 * i) * CHUNK + n, CHUNK);
          simdgroup_load(y, r + n * COLUMNS + 8 * j, COLUMNS);
          simdgroup_multiply_accumulate(d[i][j], x, y, d[i][j]);
        }
      }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLL
    for (uint i = 0; i < 2; i++)
      UNROLL
      for (uint j = 0; j < COLUMNS / 8; j++) simdgroup_store(d[i][j], r + (16 * sg + 8 * i) * COLUMNS + 8 * j, COLUMNS);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    UNROLL
    for (uint i = 0; i < 2; i++)
      UNROLL
      for (uint j = 0; j < COLUMNS / 8; j++) {
        if (!live) continue;
        for (uint n = 0; n < 16 * sg + 8 * i + 8; n += 8) {
          simdgroup_float8x8 x, y;
          simdgroup_load(x, a + (16 * sg + 8 * i) * CHUNK + n, CHUNK);
          simdgroup_load(y, r + n * COLUMNS + 8 * j, COLUMNS);
          simdgroup_multiply_accumulate(out[i][j], x, y, out[i][j]);
        }
        const uint at = 16 * sg + 8 * i + row;
        if (at < chunk.y)
          for (uint e = 0; e < 2; e++)
            o[ulong(chunk.x + at) * values + column + 8 * j + pair + e] = bfloat(out[i][j].thread_elements()[e]);
      }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // The state moves to the sub-chunk's end.
    const float end = sums[CHUNK - 1];
    for (uint i = index; i < CHUNK * COLUMNS; i += 128) r[i] *= precise::exp(end - sums[i / COLUMNS]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = sg; j < uint(KD) / 8; j += 4)
      UNROLL
      for (uint i = 0; i < COLUMNS / 8; i++) {
        simdgroup_float8x8 acc;
        simdgroup_load(acc, s + 8 * i * KD + 8 * j, KD);
        scale_row(acc, precise::exp(end));
        for (uint n = 0; n < chunk.y; n += 8) {
          simdgroup_float8x8 x, y;
          simdgroup_load(x, r + n * COLUMNS + 8 * i, COLUMNS, ulong2(0, 0), true);
          simdgroup_load(y, k + ulong(n) * channels + 8 * j, channels);
          simdgroup_multiply_accumulate(acc, x, y, acc);
        }
        simdgroup_store(acc, s + 8 * i * KD + 8 * j, KD);
      }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = index; i < COLUMNS * KD; i += 128) own[i] = s[i];
}

// gated_norm_rows: o = RMSNorm(o) × silu(z), a simdgroup a row and value head.
//
//   projected  [rows, width]
//   norm       [VD]
//   o          [rows, VALUE_HEADS × VD], changed in place
template <int VD>
kernel void gated_norm_rows(
    constant DeltaArgs& args [[buffer(0)]],
    device const bfloat* projected [[buffer(1)]],
    device const float* norm [[buffer(2)]],
    device bfloat* o [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint t = group.x, head = group.y * sgs + sg;
  if (head >= VALUE_HEADS) return;
  device bfloat* x = o + (ulong(t) * VALUE_HEADS + head) * VD;
  device const bfloat* z = projected + ulong(t) * args.width + args.z + head * VD;
  float sum = 0.0f;
  for (uint i = lane; i < VD; i += 32) sum += float(x[i]) * float(x[i]);
  const float scale = inverse_rms(simd_sum(sum), VD, args.eps);
  for (uint i = lane; i < VD; i += 32)
    x[i] = bfloat(rounded(rounded(float(x[i]) * scale) * norm[i]) * silu(float(z[i])));
}

template [[host_name("delta_prepare_64_64")]] kernel void delta_prepare<64, 64>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device float*, device float2*, uint2, uint, uint, uint);
template [[host_name("delta_pairs_64_64")]] kernel void delta_pairs<64, 64>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device float*,
    uint2, uint, uint, uint);
template [[host_name("delta_chunk_64_64")]] kernel void delta_chunk<64, 64>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device const float*,
    device float*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("delta_prepare_64_128")]] kernel void delta_prepare<64, 128>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device float*, device float2*, uint2, uint, uint, uint);
template [[host_name("delta_pairs_64_128")]] kernel void delta_pairs<64, 128>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device float*,
    uint2, uint, uint, uint);
template [[host_name("delta_chunk_64_128")]] kernel void delta_chunk<64, 128>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device const float*,
    device float*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("delta_prepare_128_64")]] kernel void delta_prepare<128, 64>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device float*, device float2*, uint2, uint, uint, uint);
template [[host_name("delta_pairs_128_64")]] kernel void delta_pairs<128, 64>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device float*,
    uint2, uint, uint, uint);
template [[host_name("delta_chunk_128_64")]] kernel void delta_chunk<128, 64>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device const float*,
    device float*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("delta_prepare_128_128")]] kernel void delta_prepare<128, 128>(
    constant DeltaArgs&, device const bfloat*, device const bfloat*, device bfloat*, device const bfloat*,
    device const float*, device const float*, device float*, device float2*, uint2, uint, uint, uint);
template [[host_name("delta_pairs_128_128")]] kernel void delta_pairs<128, 128>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device float*,
    uint2, uint, uint, uint);
template [[host_name("delta_chunk_128_128")]] kernel void delta_chunk<128, 128>(
    constant ChunkArgs&, device const uint2*, device const float*, device const float2*, device const float*,
    device float*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("gated_norm_rows_64")]] kernel void gated_norm_rows<64>(
    constant DeltaArgs&, device const bfloat*, device const float*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("gated_norm_rows_128")]] kernel void gated_norm_rows<128>(
    constant DeltaArgs&, device const bfloat*, device const float*, device bfloat*, uint2, uint, uint, uint);
