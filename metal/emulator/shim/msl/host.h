// Host back end: one fibre a Metal thread; see runtime/fibre.cpp.
#pragma once
#include "args.h"
#include "../../runtime/rt.h"

namespace msl_math {
inline float exp(float x) { return __builtin_expf(x); }
inline float exp2(float x) { return __builtin_exp2f(x); }
inline float log(float x) { return __builtin_logf(x); }
inline float log2(float x) { return __builtin_log2f(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float sin(float x) { return __builtin_sinf(x); }
inline float cos(float x) { return __builtin_cosf(x); }
inline float tanh(float x) { return __builtin_tanhf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
}  // namespace msl_math

// threadgroup T name[N]; inside a kernel, rewritten by mslgen.
#define MSL_UNPAREN(...) __VA_ARGS__
#define MSL_TGVAR(name, dims, ...) \
  auto& name = msl::host::tgvar<__VA_ARGS__ MSL_UNPAREN dims>(__FILE__, __LINE__)
#define MSL_TGSCALAR(name, ...) auto& name = msl::host::tgvar<__VA_ARGS__>(__FILE__, __LINE__)
#define MSL_CONST_VAR static const
// What a launch sets before its kernel runs (KernelInfo::specialise).
#define MSL_FUNCTION_CONSTANT(index, type, name) static type name
#define MSL_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
// The exchange slots are the simulator's own registers, not kernel memory.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define MSL_RT inline __attribute__((no_sanitize("address", "thread", "memory")))
#else
#define MSL_RT inline __attribute__((always_inline))
#endif

// What one lane does for all. Its arithmetic counts in a traced build, its loads of
// the exchange slots do not.
#if defined(MSL_TRACE)
#define MSL_ALL inline __attribute__((noinline, no_sanitize("coverage")))
#else
#define MSL_ALL MSL_RT
#endif

namespace msl::host {
template <class T> using id = T;
template <class T> inline T& tgvar(const char* file, int line) {
  return *(T*)msl_rt_tgvar(sizeof(T), alignof(T) < 16 ? 16 : alignof(T), file, line);
}

// Every lane deposits x; once all lanes of the simdgroup have arrived, each
// computes its own result from all 32 deposits.
template <class T, class F> MSL_RT T exchange(T x, F f, const char* op, const char* file, int line) {
  static_assert(sizeof(T) <= MSL_SLOT_BYTES, "value too wide for a simdgroup exchange");
  T* slots = (T*)msl_rt_slots();
  const uint lane = msl_rt_lane();
  slots[lane] = x;
  msl_rt_rendezvous(op, file, line);
  return f((const T*)slots, lane);
}
// Reductions: the last lane to arrive folds, all others read the result.
template <class T, class F> MSL_RT T reduce(T x, F fold, const char* op, const char* file, int line) {
  static_assert(sizeof(T) <= MSL_SLOT_BYTES);
  T* slots = (T*)msl_rt_slots();
  slots[msl_rt_lane()] = x;
  if (msl_rt_rendezvous(op, file, line)) {
    // In butterfly order, which other back ends can follow.
    T t[32];
    for (int i = 0; i < 32; i++) t[i] = slots[i];
    for (int o = 16; o; o >>= 1)
      for (int i = 0; i < o; i++) t[i] = fold(t[i], t[i + o]);
    slots[32] = t[0];
  }
  return slots[32];
}
}  // namespace msl::host

namespace metal {
#define MSL_REDUCE(name, expr) \
  template <class T> MSL_RT T name(T x, MSL_SITE) { return msl::host::reduce(x, [](T a, T b) MSL_LAMBDA { return T(expr); }, #name, file, line); }
#define MSL_LAMBDA __attribute__((no_sanitize("address", "thread", "memory")))
MSL_REDUCE(simd_sum, a + b)
MSL_REDUCE(simd_product, a * b)
MSL_REDUCE(simd_max, a < b ? b : a)
MSL_REDUCE(simd_min, b < a ? b : a)
MSL_REDUCE(simd_or, a | b)
MSL_REDUCE(simd_and, a & b)
#undef MSL_REDUCE
MSL_RT bool simd_any(bool x, MSL_SITE) { return simd_or(uint(x), file, line) != 0; }
MSL_RT bool simd_all(bool x, MSL_SITE) { return simd_and(uint(x), file, line) != 0; }

template <class T> MSL_RT T simd_prefix_inclusive_sum(T x, MSL_SITE) {
  return msl::host::exchange(x, [](const T* s, uint l) MSL_LAMBDA { T r = s[0]; for (uint i = 1; i <= l; i++) r += s[i]; return r; }, "simd_prefix_inclusive_sum", file, line);
}
template <class T> MSL_RT T simd_prefix_exclusive_sum(T x, MSL_SITE) {
  return msl::host::exchange(x, [](const T* s, uint l) MSL_LAMBDA { T r = T(0); for (uint i = 0; i < l; i++) r += s[i]; return r; }, "simd_prefix_exclusive_sum", file, line);
}
template <class T> MSL_RT T simd_shuffle(T x, ushort src, MSL_SITE) {
  return msl::host::exchange(x, [=](const T* s, uint) MSL_LAMBDA { msl_rt_check_lane(src, file, line); return s[src & 31]; }, "simd_shuffle", file, line);
}
template <class T> MSL_RT T simd_broadcast(T x, ushort src, MSL_SITE) { return simd_shuffle(x, src, file, line); }
template <class T> MSL_RT T simd_broadcast_first(T x, MSL_SITE) { return simd_shuffle(x, ushort(0), file, line); }
template <class T> MSL_RT T simd_shuffle_xor(T x, ushort m, MSL_SITE) {
  return msl::host::exchange(x, [=](const T* s, uint l) MSL_LAMBDA { msl_rt_check_lane(l ^ m, file, line); return s[(l ^ m) & 31]; }, "simd_shuffle_xor", file, line);
}
// Lanes shifted in from outside the simdgroup are undefined in Metal. As on
// CUDA they keep their own value here.
template <class T> MSL_RT T simd_shuffle_down(T x, ushort d, MSL_SITE) {
  return msl::host::exchange(x, [=](const T* s, uint l) MSL_LAMBDA { return s[l + d < 32 ? l + d : l]; }, "simd_shuffle_down", file, line);
}
template <class T> MSL_RT T simd_shuffle_up(T x, ushort d, MSL_SITE) {
  return msl::host::exchange(x, [=](const T* s, uint l) MSL_LAMBDA { return s[l >= d ? l - d : l]; }, "simd_shuffle_up", file, line);
}

inline void threadgroup_barrier(mem_flags f, MSL_SITE) { msl_rt_barrier(uint(f), file, line); }
inline void simdgroup_barrier(mem_flags f, MSL_SITE) { msl_rt_simd_barrier(uint(f), file, line); }

// ---- simdgroup_matrix --------------------------------------------------------
// Two elements a lane, laid out as on Apple GPUs: lane -> (row, col), (row, col+1).
template <class T, int C, int R> struct simdgroup_matrix {
  static_assert(C == 8 && R == 8, "only 8x8");
  vec<T, 2> e;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T v) { e[0] = e[1] = v; }
  vec<T, 2>& thread_elements() { return e; }
};
namespace detail {
inline uint mrow(uint l) { return ((l >> 2) & 4) | ((l >> 1) & 3); }
inline uint mcol(uint l) { return ((l >> 1) & 4) | ((l & 1) << 1); }
}
template <class T, int C, int R> inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T v) { return simdgroup_matrix<T, C, R>(v); }

template <class T> inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& d, const T* src, ulong stride = 8,
                                              ulong2 origin = ulong2{0, 0}, bool transpose = false, MSL_SITE) {
  if (msl_strict) msl_rt_rendezvous("simdgroup_load", file, line);
  const uint r = detail::mrow(msl_rt_lane()), c = detail::mcol(msl_rt_lane());
  for (uint k = 0; k < 2; k++) {
    const ulong y = origin.y + (transpose ? c + k : r), x = origin.x + (transpose ? r : c + k);
    d.e[k] = src[y * stride + x];
  }
}
template <class T> inline void simdgroup_store(simdgroup_matrix<T, 8, 8> s, T* dst, ulong stride = 8,
                                               ulong2 origin = ulong2{0, 0}, bool transpose = false, MSL_SITE) {
  if (msl_strict) msl_rt_rendezvous("simdgroup_store", file, line);
  const uint r = detail::mrow(msl_rt_lane()), c = detail::mcol(msl_rt_lane());
  for (uint k = 0; k < 2; k++) {
    const ulong y = origin.y + (transpose ? c + k : r), x = origin.x + (transpose ? r : c + k);
    dst[y * stride + x] = s.e[k];
  }
}
namespace detail {
struct Frag { float a[2], b[2], c[2]; };
MSL_ALL void mma_all(Frag* f) {
  float A[8][8], B[8][8], D[8][8];
  for (uint l = 0; l < 32; l++)
    for (uint k = 0; k < 2; k++) {
      A[mrow(l)][mcol(l) + k] = f[l].a[k];
      B[mrow(l)][mcol(l) + k] = f[l].b[k];
      D[mrow(l)][mcol(l) + k] = f[l].c[k];
    }
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 8; k++)
      for (int j = 0; j < 8; j++) D[i][j] = __builtin_fmaf(A[i][k], B[k][j], D[i][j]);
  for (uint l = 0; l < 32; l++)
    for (uint k = 0; k < 2; k++) f[l].c[k] = D[mrow(l)][mcol(l) + k];
}
}
template <class D, class A, class B, class C> MSL_RT void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c, MSL_SITE) {
  static_assert(sizeof(detail::Frag) <= MSL_SLOT_BYTES);
  detail::Frag* s = (detail::Frag*)msl_rt_slots();
  const uint l = msl_rt_lane();
  for (int k = 0; k < 2; k++) { s[l].a[k] = float(a.e[k]); s[l].b[k] = float(b.e[k]); s[l].c[k] = float(c.e[k]); }
  if (msl_rt_rendezvous("simdgroup_multiply_accumulate", file, line)) detail::mma_all(s);
  for (int k = 0; k < 2; k++) d.e[k] = D(s[l].c[k]);
}
template <class D, class A, class B> inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b, MSL_SITE) {
  simdgroup_multiply_accumulate(d, a, b, simdgroup_matrix<D, 8, 8>(D(0)), file, line);
}

// ---- atomics -------------------------------------------------------------------
template <class T> struct atomic { T v; };
typedef atomic<uint> atomic_uint;
typedef atomic<int> atomic_int;
typedef atomic<float> atomic_float;
template <class T> inline T atomic_load_explicit(const atomic<T>* p, memory_order) { T r; __atomic_load(&p->v, &r, __ATOMIC_RELAXED); return r; }
template <class T> inline void atomic_store_explicit(atomic<T>* p, T x, memory_order) { __atomic_store(&p->v, &x, __ATOMIC_RELAXED); }
template <class T, class F> inline T atomic_rmw_(atomic<T>* p, F f) {
  T old;
  __atomic_load(&p->v, &old, __ATOMIC_RELAXED);
  for (;;) {
    T want = f(old);
    if (__atomic_compare_exchange(&p->v, &old, &want, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return old;
  }
}
template <class T> inline T atomic_fetch_add_explicit(atomic<T>* p, T x, memory_order) { return atomic_rmw_(p, [=](T o) { return T(o + x); }); }
template <class T> inline T atomic_fetch_max_explicit(atomic<T>* p, T x, memory_order) { return atomic_rmw_(p, [=](T o) { return o < x ? x : o; }); }
template <class T> inline T atomic_fetch_min_explicit(atomic<T>* p, T x, memory_order) { return atomic_rmw_(p, [=](T o) { return x < o ? x : o; }); }
template <class T> inline T atomic_fetch_or_explicit(atomic<T>* p, T x, memory_order) { return atomic_rmw_(p, [=](T o) { return T(o | x); }); }
template <class T> inline T atomic_exchange_explicit(atomic<T>* p, T x, memory_order) { return atomic_rmw_(p, [=](T) { return x; }); }
}  // namespace metal

// ---- entry points ----------------------------------------------------------------
namespace msl::host {
// [[buffer(n)]]: a pointer parameter gets the bound address, a reference the
// object there. References are size-checked by the launcher through `bytes`.
template <class F, int I> inline arg_t<F, I> buffer(const msl_launch* L, int slot) {
  typedef arg_t<F, I> A;
  if constexpr (__is_reference(A)) return *(__remove_reference_t(A)*)L->buf[slot];
  else return (A)L->buf[slot];
}
template <class F, int I> inline arg_t<F, I> shared(int slot) { return (arg_t<F, I>)msl_rt_shared(slot); }
}  // namespace msl::host
