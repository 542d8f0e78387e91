// Gated attention between its projections: norms, rope and the KV cache, then
// softmax(q kᵀ × scale) v by blocks of keys with a running maximum.
//
//   projected  [rows, width]: per head the query, then its gate; keys; values
//   q          [KV_HEADS, rows, HEADS / KV_HEADS, D], padded by 7 rows of D
//   cache      [tokens, 2, KV_HEADS, D]: keys, then values
//   y          [rows, HEADS × D]
//
// The query heads of a KV head are rows of one matrix, so that a key and a value
// are read once for all of them.
#include "matrix.h"

constant uint HEADS [[function_constant(0)]];  // of queries
constant uint KV_HEADS [[function_constant(1)]];

// attention_prepare: q and k get their norm and rope, k and v go to the cache.
//
//   q_norm, k_norm  [D]
//   angles          [rows, half_rotary] (cos, sin)
//
// A simdgroup makes a head of a row: query heads, then k heads, then v heads.
template <int D>
[[max_total_threads_per_threadgroup(128)]] kernel void attention_prepare(
    constant PrepareArgs& args [[buffer(0)]],
    device const bfloat* projected [[buffer(1)]],
    device const bfloat* q_norm [[buffer(2)]],
    device const bfloat* k_norm [[buffer(3)]],
    device const float2* angles [[buffer(4)]],
    device bfloat* q [[buffer(5)]],
    device bfloat* cache [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float heads[4 * D];
  const uint t = group.x, head = group.y * sgs + sg;
  if (head >= HEADS + 2 * KV_HEADS) return;
  const uint per = HEADS / KV_HEADS;
  device const bfloat* row = projected + ulong(t) * args.width;
  device bfloat* token = cache + ulong(args.from + t) * 2 * KV_HEADS * D;
  if (head >= HEADS + KV_HEADS) {
    const uint h = head - HEADS - KV_HEADS;
    for (uint i = lane; i < D; i += 32) token[(KV_HEADS + h) * D + i] = row[args.v + h * D + i];
    return;
  }
  const bool is_query = head < HEADS;
  const uint h = is_query ? head : head - HEADS;
  device const bfloat* in = is_query ? row + h * 2 * D : row + args.k + h * D;
  device const bfloat* norm = is_query ? q_norm : k_norm;
  threadgroup float* x = heads + sg * D;
  float sum = 0.0f;
  for (uint i = lane; i < D; i += 32) sum += float(in[i]) * float(in[i]);
  const float scale = inverse_rms(simd_sum(sum), D, args.eps);
  for (uint i = lane; i < D; i += 32) x[i] = rounded(rounded(float(in[i]) * scale) * float(norm[i]));
  simdgroup_barrier(mem_flags::mem_threadgroup);

  device bfloat* out = token + h * D;
  if (is_query) out = q + ((ulong(h / per) * args.rows + t) * per + h % per) * D;
  for (uint i = lane; i < D; i += 32) {
    float value = x[i];
    if (i < 2 * args.half_rotary) {
      const bool lower = i < args.half_rotary;
      const float2 angle = angles[t * args.half_rotary + (lower ? i : i - args.half_rotary)];
      const float other = lower ? -x[i + args.half_rotary] : x[i - args.half_rotary];
      value = value * angle.x + other * angle.y;
    }
    out[i] = bfloat(value);
  }
}

// Softmax under way for eight rows, as a simdgroup holds it: the largest score,
// this lane's part of the sum of weights relative to it, and the weighted sum of
// values.
template <int D>
struct Running {
  float largest;
  float sum;
  simdgroup_float8x8 o[D / 8];
};

template <int D>
inline void begin(thread Running<D>& run) {
  run.largest = -FLT_MAX;
  run.sum = 0.0f;
  UNROLL
  for (uint i = 0; i < D / 8; i++) run.o[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
}

// Takes in BLOCK keys from position first on. This lane's row sees keys up to
// position limit; no row sees beyond last, and what lies there is not touched by
// arithmetic.
template <int D, int BLOCK>
inline void take(thread Running<D>& run, device const bfloat* q, device const bfloat* keys, device const bfloat* values,
                 ulong stride, uint first, uint limit, uint last, float scale, uint lane) {
  simdgroup_float8x8 scores[BLOCK / 8];
  float largest = run.largest;
  UNROLL
  for (uint j = 0; j < BLOCK / 8; j++) {
    scores[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    if (first + 8 * j <= last)
      for (uint d = 0; d < D; d += 8) {
        simdgroup_bfloat8x8 a, b;
        simdgroup_load(a, q + d, D);
        simdgroup_load(b, keys + ulong(first + 8 * j) * stride + d, stride, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(scores[j], a, b, scores[j]);
      }
    UNROLL
    for (uint e = 0; e < 2; e++) {
      const uint key = first + 8 * j + fragment_column(lane) + e;
      const float score = key <= limit ? scores[j].thread_elements()[e] * scale : -FLT_MAX;
      scores[j].thread_elements()[e] = score;
      largest = max(largest, score);
    }
  }
  largest = row_max(largest);
  const float fade = precise::exp(run.largest - largest);
  run.largest = largest;
  run.sum *= fade;
  UNROLL
  for (uint j = 0; j < BLOCK / 8; j++)
    UNROLL
    for (uint e = 0; e < 2; e++) {
      const uint key = first + 8 * j + fragment_column(lane) + e;
      const float p = key <= limit ? precise::exp(scores[j].thread_elements()[e] - largest) : 0.0f;
      scores[j].thread_elements()[e] = p;
      run.sum += p;
    }
  UNROLL
  for (uint i = 0; i < D / 8; i++) {
    scale_row(run.o[i], fade);
    UNROLL
    for (uint j = 0; j < BLOCK / 8; j++) {
      if (first + 8 * j > last) continue;
      simdgroup_bfloat8x8 v;
      simdgroup_float8x8 b;
      simdgroup_load(v, values + ulong(first + 8 * j) * stride + 8 * i, stride);
      const bool seen = first + 8 * j + fragment_row(lane) <= last;
      UNROLL
      for (uint e = 0; e < 2; e++) b.thread_elements()[e] = seen ? float(v.thread_elements()[e]) : 0.0f;
      simdgroup_multiply_accumulate(run.o[i], scores[j], b, run.o[i]);
    }
  }
}

// One value of the output: rounded, times the rounded sigmoid of its gate.
inline bfloat gated(float o, bfloat gate) { return bfloat(rounded(o) * rounded(sigmoid(float(gate)))); }

// attend_rows: flash attention of prompt rows, causal, over blocks of 64 keys at
// absolute positions. A simdgroup takes eight rows of q; the grid is
// [rows × HEADS / KV_HEADS / 32, KV_HEADS].
//
// Flops of a row at position p: 4 (p + 1) × HEADS × D, and what the last eight keys
// are more.
template <int D>
[[max_total_threads_per_threadgroup(128)]] kernel void attend_rows(
    constant AttendArgs& args [[buffer(0)]],
    device const bfloat* projected [[buffer(1)]],
    device const bfloat* q [[buffer(2)]],
    device const bfloat* cache [[buffer(3)]],
    device bfloat* y [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint per = HEADS / KV_HEADS, kv_head = group.y;
  const uint first = (group.x * sgs + sg) * 8;
  if (first >= args.rows * per) return;
  const uint row = first + fragment_row(lane);
  const uint limit = args.from + min(row / per, args.rows - 1);
  const uint last = args.from + min((first + 7) / per, args.rows - 1);
  const ulong stride = 2 * KV_HEADS * D;
  device const bfloat* keys = cache + kv_head * D;
  Running<D> run;
  begin(run);
  for (uint block = 0; block <= last; block += 64)
    take<D, 64>(run, q + (ulong(kv_head) * args.rows * per + first) * D, keys, keys + KV_HEADS * D, stride, block,
                limit, last, args.scale, lane);
  const float sum = row_sum(run.sum);
  if (row >= args.rows * per) return;
  const uint t = row / per, head = kv_head * per + row % per;
  device const bfloat* gates = projected + ulong(t) * args.width + head * 2 * D + D;
  device bfloat* out = y + (ulong(t) * HEADS + head) * D;
  UNROLL
  for (uint i = 0; i < D / 8; i++)
    UNROLL
    for (uint e = 0; e < 2; e++) {
      const uint d = 8 * i + fragment_column(lane) + e;
      out[d] = gated(run.o[i].thread_elements()[e] / sum, gates[d]);
    }
}

// attend_spans: one row's attention over span keys from group.x × span on, for
// the query heads of KV head group.y. Decode only. At most eight query heads, and
// the flops of eight: at position p 4 (p + 1) × 8 × D a KV head.
//
//   partial  [KV_HEADS, spans, 8, D] weighted sums
//   stats    [KV_HEADS, spans, 8] (largest score, sum of weights)
template <int D>
[[max_total_threads_per_threadgroup(32)]] kernel void attend_spans(
    constant AttendArgs& args [[buffer(0)]],
    device const bfloat* q [[buffer(1)]],
    device const bfloat* cache [[buffer(2)]],
    device float* partial [[buffer(3)]],
    device float2* stats [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint per = HEADS / KV_HEADS, kv_head = group.y;
  const uint from = group.x * args.span, last = min(from + args.span - 1, args.from);
  const ulong stride = 2 * KV_HEADS * D;
  device const bfloat* keys = cache + kv_head * D;
  Running<D> run;
  begin(run);
  for (uint block = from; block <= last; block += 32)
    take<D, 32>(run, q + kv_head * per * D, keys, keys + KV_HEADS * D, stride, block, last, last, args.scale, lane);
  const float sum = row_sum(run.sum);
  const uint row = fragment_row(lane);
  const ulong at = (ulong(kv_head) * args.spans + group.x) * 8 + row;
  if (fragment_column(lane) == 0) stats[at] = float2(run.largest, sum);
  UNROLL
  for (uint i = 0; i < D / 8; i++)
    UNROLL
    for (uint e = 0; e < 2; e++) partial[at * D + 8 * i + fragment_column(lane) + e] = run.o[i].thread_elements()[e];
}

// attend_merge: the spans of query head group, in order, and the output gate.
// Flops: 5 × spans × D a head.
template <int D>
[[max_total_threads_per_threadgroup(256)]] kernel void attend_merge(
    constant AttendArgs& args [[buffer(0)]],
    device const bfloat* projected [[buffer(1)]],
    device const float* partial [[buffer(2)]],
    device const float2* stats [[buffer(3)]],
    device bfloat* y [[buffer(4)]],
    uint head [[threadgroup_position_in_grid]],
    uint d [[thread_index_in_threadgroup]]) {
  const uint per = HEADS / KV_HEADS;
  const ulong first = ulong(head / per) * args.spans * 8 + head % per;
  float largest = -FLT_MAX;
  for (uint s = 0; s < args.spans; s++) largest = max(largest, stats[first + s * 8].x);
  float sum = 0.0f, o = 0.0f;
  for (uint s = 0; s < args.spans; s++) {
    const float2 stat = stats[first + s * 8];
    const float weight = precise::exp(stat.x - largest);
    sum += weight * stat.y;
    o += weight * partial[(first + s * 8) * D + d];
  }
  y[head * D + d] = gated(o / sum, projected[head * 2 * D + D + d]);
}

template [[host_name("attention_prepare_64")]] kernel void attention_prepare<64>(
    constant PrepareArgs&, device const bfloat*, device const bfloat*, device const bfloat*, device const float2*,
    device bfloat*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("attend_rows_64")]] kernel void attend_rows<64>(
    constant AttendArgs&, device const bfloat*, device const bfloat*, device const bfloat*, device bfloat*,
    uint2, uint, uint, uint);
template [[host_name("attend_spans_64")]] kernel void attend_spans<64>(
    constant AttendArgs&, device const bfloat*, device const bfloat*, device float*, device float2*, uint2, uint);
template [[host_name("attend_merge_64")]] kernel void attend_merge<64>(
    constant AttendArgs&, device const bfloat*, device const float*, device const float2*, device bfloat*, uint, uint);
template [[host_name("attention_prepare_256")]] kernel void attention_prepare<256>(
    constant PrepareArgs&, device const bfloat*, device const bfloat*, device const bfloat*, device const float2*,
    device bfloat*, device bfloat*, uint2, uint, uint, uint);
template [[host_name("attend_rows_256")]] kernel void attend_rows<256>(
    constant AttendArgs&, device const bfloat*, device const bfloat*, device const bfloat*, device bfloat*,
    uint2, uint, uint, uint);
template [[host_name("attend_spans_256")]] kernel void attend_spans<256>(
    constant AttendArgs&, device const bfloat*, device const bfloat*, device float*, device float2*, uint2, uint);
template [[host_name("attend_merge_256")]] kernel void attend_merge<256>(
    constant AttendArgs&, device const bfloat*, device const float*, device const float2*, device bfloat*, uint, uint);
