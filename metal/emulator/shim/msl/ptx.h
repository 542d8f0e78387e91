// PTX back end: clang writes PTX that an NVIDIA driver compiles. No CUDA toolkit,
// headers or libdevice have a part in it. A simdgroup is a warp.
#pragma once
#include "args.h"

namespace msl_math {
// The GPU's own instructions; about 2 ulp.
inline float exp2(float x) { return __nvvm_ex2_approx_f(x); }
inline float log2(float x) { return __nvvm_lg2_approx_f(x); }
inline float exp(float x) { return __nvvm_ex2_approx_f(x * 1.44269504088896341f); }
inline float log(float x) { return __nvvm_lg2_approx_f(x) * 0.693147180559945309f; }
inline float sqrt(float x) { return __nvvm_sqrt_rn_f(x); }
inline float rsqrt(float x) { return __nvvm_rsqrt_approx_f(x); }
inline float sin(float x) { return __nvvm_sin_approx_f(x); }
inline float cos(float x) { return __nvvm_cos_approx_f(x); }
inline float floor(float x) { return __nvvm_floor_f(x); }
inline float ceil(float x) { return __nvvm_ceil_f(x); }
inline float trunc(float x) { return __nvvm_trunc_f(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float fabs(float x) { return __nvvm_fabs_f(x); }
inline float fma(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
inline float tanh(float x) {
  const float a = __nvvm_fabs_f(x);
  const float e = exp(-2.0f * a), t = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -t : t;
}
}  // namespace msl_math

#define MSL_UNPAREN(...) __VA_ARGS__
#define MSL_TGVAR(name, dims, ...) __attribute__((__shared__)) __VA_ARGS__ name MSL_UNPAREN dims
#define MSL_TGSCALAR(name, ...) __attribute__((__shared__)) __VA_ARGS__ name
#define MSL_CONST_VAR static __attribute__((__constant__)) const
// Loads of msl_constant_N become the number itself before the PTX is compiled.
#define MSL_FUNCTION_CONSTANT(index, type, name) \
  extern "C" { __attribute__((__constant__)) type name asm("msl_constant_" #index); }

namespace msl::ptx {
inline dim3 threads_per_threadgroup() { return {unsigned(__nvvm_read_ptx_sreg_ntid_x()), unsigned(__nvvm_read_ptx_sreg_ntid_y()), unsigned(__nvvm_read_ptx_sreg_ntid_z())}; }
inline dim3 thread_position_in_threadgroup() { return {unsigned(__nvvm_read_ptx_sreg_tid_x()), unsigned(__nvvm_read_ptx_sreg_tid_y()), unsigned(__nvvm_read_ptx_sreg_tid_z())}; }
inline dim3 threadgroup_position_in_grid() { return {unsigned(__nvvm_read_ptx_sreg_ctaid_x()), unsigned(__nvvm_read_ptx_sreg_ctaid_y()), unsigned(__nvvm_read_ptx_sreg_ctaid_z())}; }
inline dim3 threadgroups_per_grid() { return {unsigned(__nvvm_read_ptx_sreg_nctaid_x()), unsigned(__nvvm_read_ptx_sreg_nctaid_y()), unsigned(__nvvm_read_ptx_sreg_nctaid_z())}; }
inline dim3 thread_position_in_grid() {
  const dim3 g = threadgroup_position_in_grid(), n = threads_per_threadgroup(), t = thread_position_in_threadgroup();
  return {g.x * n.x + t.x, g.y * n.y + t.y, g.z * n.z + t.z};
}
inline dim3 threads_per_grid() {
  const dim3 g = threadgroups_per_grid(), n = threads_per_threadgroup();
  return {g.x * n.x, g.y * n.y, g.z * n.z};
}
inline dim3 thread_index_in_threadgroup() {
  const dim3 n = threads_per_threadgroup(), t = thread_position_in_threadgroup();
  return {(t.z * n.y + t.y) * n.x + t.x, 0, 0};
}
inline unsigned lane() { return unsigned(__nvvm_read_ptx_sreg_laneid()); }
inline dim3 thread_index_in_simdgroup() { return {lane(), 0, 0}; }
inline dim3 simdgroup_index_in_threadgroup() { return {thread_index_in_threadgroup().x / 32, 0, 0}; }
inline dim3 simdgroups_per_threadgroup() {
  const dim3 n = threads_per_threadgroup();
  return {n.x * n.y * n.z / 32, 0, 0};
}
inline dim3 threads_per_simdgroup() { return {32, 0, 0}; }

// Tells the back end that a pointer parameter is global memory.
template <class T> inline T* global(T* p) { return (T*)(__attribute__((address_space(1))) T*)p; }
template <class T> inline T& global(T& v) { return v; }

// What the launch's bytes of threadgroup memory are for: [[threadgroup(0)]].
extern __attribute__((__shared__)) uint4 dynamic[];
template <class F, int I> inline arg_t<F, I> shared() { return (arg_t<F, I>)dynamic; }

// A warp shuffle of any value of up to 16 bytes, word by word.
template <class T, class F> inline T words(T x, F f) {
  if constexpr (sizeof(T) <= 4) {
    unsigned w = 0;
    __builtin_memcpy(&w, &x, sizeof(T));
    w = f(w);
    T r;
    __builtin_memcpy(&r, &w, sizeof(T));
    return r;
  } else {
    unsigned w[(sizeof(T) + 3) / 4];
    __builtin_memcpy(w, &x, sizeof(T));
    for (unsigned i = 0; i < sizeof(w) / 4; i++) w[i] = f(w[i]);
    T r;
    __builtin_memcpy(&r, w, sizeof(T));
    return r;
  }
}
constexpr unsigned kAll = 0xffffffffu;
}  // namespace msl::ptx

namespace metal {
template <class T> inline T simd_shuffle(T x, ushort s) { return msl::ptx::words(x, [=](unsigned w) { return unsigned(__nvvm_shfl_sync_idx_i32(msl::ptx::kAll, int(w), s, 31)); }); }
template <class T> inline T simd_shuffle_xor(T x, ushort m) { return msl::ptx::words(x, [=](unsigned w) { return unsigned(__nvvm_shfl_sync_bfly_i32(msl::ptx::kAll, int(w), m, 31)); }); }
template <class T> inline T simd_shuffle_down(T x, ushort d) { return msl::ptx::words(x, [=](unsigned w) { return unsigned(__nvvm_shfl_sync_down_i32(msl::ptx::kAll, int(w), d, 31)); }); }
template <class T> inline T simd_shuffle_up(T x, ushort d) { return msl::ptx::words(x, [=](unsigned w) { return unsigned(__nvvm_shfl_sync_up_i32(msl::ptx::kAll, int(w), d, 0)); }); }
template <class T> inline T simd_broadcast(T x, ushort s) { return simd_shuffle(x, s); }
template <class T> inline T simd_broadcast_first(T x) { return simd_shuffle(x, ushort(0)); }

#define MSL_REDUCE(name, expr)                                    \
  template <class T> inline T name(T x) {                         \
    for (ushort o = 16; o; o >>= 1) {                             \
      const T a = x, b = simd_shuffle_xor(x, o);                  \
      x = T(expr);                                                \
    }                                                             \
    return x;                                                     \
  }
MSL_REDUCE(simd_sum, a + b)
MSL_REDUCE(simd_product, a * b)
MSL_REDUCE(simd_max, a < b ? b : a)
MSL_REDUCE(simd_min, b < a ? b : a)
MSL_REDUCE(simd_or, a | b)
MSL_REDUCE(simd_and, a & b)
#undef MSL_REDUCE
inline bool simd_any(bool x) { return simd_or(uint(x)) != 0; }
inline bool simd_all(bool x) { return simd_and(uint(x)) != 0; }
template <class T> inline T simd_prefix_inclusive_sum(T x) {
  for (ushort o = 1; o < 32; o <<= 1) {
    const T y = simd_shuffle_up(x, o);
    if (msl::ptx::lane() >= o) x += y;
  }
  return x;
}
template <class T> inline T simd_prefix_exclusive_sum(T x) {
  const T y = simd_shuffle_up(simd_prefix_inclusive_sum(x), ushort(1));
  return msl::ptx::lane() == 0 ? T(0) : y;
}

inline void threadgroup_barrier(mem_flags) { __syncthreads(); }
inline void simdgroup_barrier(mem_flags) { __nvvm_bar_warp_sync(msl::ptx::kAll); }

// 8 × 8 matrices in the lanes' layout of host.h, multiplied in float by way of
// shuffles: exact, and fast enough for the whole model.
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
inline uint mlane(uint r, uint c) { return ((r & 4) << 2) | ((r & 3) << 1) | ((c & 4) << 1) | ((c >> 1) & 1); }
}
template <class T, int C, int R> inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T v) { return simdgroup_matrix<T, C, R>(v); }
template <class T> inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& d, const T* src, ulong stride = 8, ulong2 origin = ulong2{0, 0}, bool transpose = false) {
  const uint r = detail::mrow(msl::ptx::lane()), c = detail::mcol(msl::ptx::lane());
  for (uint k = 0; k < 2; k++) {
    const ulong y = origin.y + (transpose ? c + k : r), x = origin.x + (transpose ? r : c + k);
    d.e[k] = src[y * stride + x];
  }
}
template <class T> inline void simdgroup_store(simdgroup_matrix<T, 8, 8> s, T* dst, ulong stride = 8, ulong2 origin = ulong2{0, 0}, bool transpose = false) {
  const uint r = detail::mrow(msl::ptx::lane()), c = detail::mcol(msl::ptx::lane());
  for (uint k = 0; k < 2; k++) {
    const ulong y = origin.y + (transpose ? c + k : r), x = origin.x + (transpose ? r : c + k);
    dst[y * stride + x] = s.e[k];
  }
}
template <class D, class A, class B, class C> inline void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c) {
  const uint r = detail::mrow(msl::ptx::lane()), j = detail::mcol(msl::ptx::lane());
  float s0 = float(c.e[0]), s1 = float(c.e[1]);
#pragma unroll
  for (uint k = 0; k < 8; k += 2) {
    // One shuffle moves both elements of a 16-bit pair, two those of fp32.
    const vec<A, 2> av = simd_shuffle(a.e, ushort(detail::mlane(r, k)));
#pragma unroll
    for (uint h = 0; h < 2; h++) {
      const vec<B, 2> bv = simd_shuffle(b.e, ushort(detail::mlane(k + h, j)));
      s0 = __nvvm_fma_rn_f(float(av[h]), float(bv[0]), s0);
      s1 = __nvvm_fma_rn_f(float(av[h]), float(bv[1]), s1);
    }
  }
  d.e[0] = D(s0);
  d.e[1] = D(s1);
}
template <class D, class A, class B> inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, simdgroup_matrix<D, 8, 8>(D(0)));
}

template <class T> struct atomic { T v; };
typedef atomic<uint> atomic_uint;
typedef atomic<int> atomic_int;
typedef atomic<float> atomic_float;
template <class T> inline T atomic_load_explicit(const atomic<T>* p, memory_order) { return *(const volatile T*)&p->v; }
template <class T> inline void atomic_store_explicit(atomic<T>* p, T x, memory_order) { *(volatile T*)&p->v = x; }
inline uint atomic_fetch_add_explicit(atomic_uint* p, uint x, memory_order) { return __atomic_fetch_add(&p->v, x, __ATOMIC_RELAXED); }
inline int atomic_fetch_add_explicit(atomic_int* p, int x, memory_order) { return __atomic_fetch_add(&p->v, x, __ATOMIC_RELAXED); }
inline float atomic_fetch_add_explicit(atomic_float* p, float x, memory_order) { return __nvvm_atom_add_gen_f(&p->v, x); }
template <class T> inline T atomic_fetch_max_explicit(atomic<T>* p, T x, memory_order) { return __atomic_fetch_max(&p->v, x, __ATOMIC_RELAXED); }
template <class T> inline T atomic_fetch_min_explicit(atomic<T>* p, T x, memory_order) { return __atomic_fetch_min(&p->v, x, __ATOMIC_RELAXED); }
template <class T> inline T atomic_fetch_or_explicit(atomic<T>* p, T x, memory_order) { return __atomic_fetch_or(&p->v, x, __ATOMIC_RELAXED); }
template <class T> inline T atomic_exchange_explicit(atomic<T>* p, T x, memory_order) { return __atomic_exchange_n(&p->v, x, __ATOMIC_RELAXED); }
}  // namespace metal
