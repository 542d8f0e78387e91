// Metal Shading Language on clang: types, vectors, math.
//
// One shim, three back ends, chosen by a macro:
//   MSL_CHECK  C++ for OpenCL front end, types only: address spaces are enforced.
//   MSL_PTX    CUDA front end without a CUDA toolkit: PTX for an NVIDIA driver.
//   otherwise  host C++ that runs on the fibres of runtime/.
//
// The shim is deliberately narrower than Metal. What it lacks fails to compile
// here, which is the safe direction; nothing here may accept more than Metal.
#pragma once

#if defined(MSL_CHECK)
#define kernel
#define device __global
#define constant __constant
#define threadgroup __local
#define thread __private
#else
#if defined(MSL_PTX)
// All that follows is device code, to the end of the source.
#pragma clang force_cuda_host_device begin
#else
#define MSL_HOST
#endif
// Inlined into its one entry point, which knows more about the arguments.
#define kernel static inline __attribute__((always_inline))
#define device
#define constant
#define threadgroup
#define thread
#endif

#define __METAL_VERSION__ 320
#define METAL_FUNC inline __attribute__((always_inline))

#if defined(MSL_CHECK)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
// Keywords of OpenCL, ordinary names in Metal.
#define local msl_local
#define global msl_global
// Types that clang declares by itself in OpenCL.
#define atomic_uint msl_atomic_uint
#define atomic_int msl_atomic_int
#define atomic_float msl_atomic_float
#else
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
#endif
typedef __bf16 bfloat;
typedef signed char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#define MSL_VECTORS(T)                                   \
  typedef T T##2 __attribute__((ext_vector_type(2)));    \
  typedef T T##3 __attribute__((ext_vector_type(3)));    \
  typedef T T##4 __attribute__((ext_vector_type(4)));
MSL_VECTORS(char) MSL_VECTORS(uchar) MSL_VECTORS(short) MSL_VECTORS(ushort)
MSL_VECTORS(int) MSL_VECTORS(uint) MSL_VECTORS(long) MSL_VECTORS(ulong)
MSL_VECTORS(float) MSL_VECTORS(half) MSL_VECTORS(bfloat)
#undef MSL_VECTORS


namespace metal {

// ---- type traits ---------------------------------------------------------
template <class T> struct remove_cvref_ { typedef __remove_cvref(T) type; };
template <class T> using remove_cvref_t = typename remove_cvref_<T>::type;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class A, class B> constexpr constant bool is_same_v = __is_same(A, B);

template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));

namespace detail {
template <class T> struct lanes { static constexpr constant int n = 1; typedef T elem; };
template <class T, int N> struct lanes<T __attribute__((ext_vector_type(N)))> {
  static constexpr constant int n = N;
  typedef T elem;
};
template <class V, class A> METAL_FUNC void put(thread V& r, thread int& i, A a) {
  typedef typename lanes<V>::elem E;
  if constexpr (lanes<A>::n == 1) r[i++] = E(a);
  else for (int j = 0; j < lanes<A>::n; j++) r[i++] = E(a[j]);
}
// Implements Metal's vector constructors: float4(half4), float4(f2, 1, 2), ...
template <class V, class... A> METAL_FUNC V make(A... a) {
  constexpr int total = (lanes<A>::n + ...);
  static_assert(total == lanes<V>::n || (sizeof...(A) == 1 && total == 1),
                "wrong number of components in a vector constructor");
  V r;
  if constexpr (total == 1) {
    typename lanes<V>::elem s[] = {typename lanes<V>::elem(a)...};
    for (int j = 0; j < lanes<V>::n; j++) r[j] = s[0];
  } else {
    int i = 0;
    (put(r, i, a), ...);
  }
  return r;
}
}  // namespace detail

template <class To, class From> METAL_FUNC To as_type(From x) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs equal sizes");
  return __builtin_bit_cast(To, x);
}

template <class T, int N> struct packed_vec {
  T v[N];
  packed_vec() = default;
  METAL_FUNC packed_vec(vec<T, N> x) { for (int i = 0; i < N; i++) v[i] = x[i]; }
  METAL_FUNC operator vec<T, N>() const {
    vec<T, N> r;
    for (int i = 0; i < N; i++) r[i] = v[i];
    return r;
  }
};
typedef packed_vec<float, 2> packed_float2;
typedef packed_vec<float, 3> packed_float3;
typedef packed_vec<float, 4> packed_float4;
typedef packed_vec<half, 2> packed_half2;
typedef packed_vec<half, 4> packed_half4;
typedef packed_vec<uint, 2> packed_uint2;
typedef packed_vec<uint, 3> packed_uint3;

enum memory_order { memory_order_relaxed = 0 };
enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
METAL_FUNC constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }

}  // namespace metal

#if defined(MSL_CHECK)
#include "check.h"
#elif defined(MSL_PTX)
#include "ptx.h"
#else
#include "host.h"
#endif

namespace metal {

// ---- math ------------------------------------------------------------------
// Each back end supplies msl_math::f(float); half, bfloat and vectors go
// through float, as a result rounded once.
#define MSL_MATH1(name)                                              \
  template <class T> METAL_FUNC T name(T x) {                        \
    if constexpr (detail::lanes<T>::n == 1) return T(msl_math::name(float(x))); \
    else {                                                           \
      T r;                                                           \
      typedef typename detail::lanes<T>::elem E;                     \
      for (int i = 0; i < detail::lanes<T>::n; i++) r[i] = E(msl_math::name(float(x[i]))); \
      return r;                                                      \
    }                                                                \
  }
#define MSL_MATH_ALL \
  MSL_MATH1(exp) MSL_MATH1(exp2) MSL_MATH1(log) MSL_MATH1(log2) MSL_MATH1(sqrt) MSL_MATH1(rsqrt) \
  MSL_MATH1(sin) MSL_MATH1(cos) MSL_MATH1(tanh) MSL_MATH1(floor) MSL_MATH1(ceil) MSL_MATH1(trunc) \
  MSL_MATH1(rint) MSL_MATH1(fabs)
MSL_MATH_ALL
namespace fast { MSL_MATH_ALL }
namespace precise { MSL_MATH_ALL }
#undef MSL_MATH_ALL
#undef MSL_MATH1

template <class T> METAL_FUNC T fma(T a, T b, T c) {
  if constexpr (detail::lanes<T>::n == 1) return T(msl_math::fma(float(a), float(b), float(c)));
  else { T r; for (int i = 0; i < detail::lanes<T>::n; i++) r[i] = fma(a[i], b[i], c[i]); return r; }
}
METAL_FUNC float pow(float x, float y) { return msl_math::exp2(y * msl_math::log2(x)); }
// Both arguments must have one type: Metal rejects min(uint, int) as ambiguous.
template <class T> METAL_FUNC T min(T a, T b) {
  if constexpr (detail::lanes<T>::n == 1) return b < a ? b : a;
  else { T r; for (int i = 0; i < detail::lanes<T>::n; i++) r[i] = b[i] < a[i] ? b[i] : a[i]; return r; }
}
template <class T> METAL_FUNC T max(T a, T b) {
  if constexpr (detail::lanes<T>::n == 1) return a < b ? b : a;
  else { T r; for (int i = 0; i < detail::lanes<T>::n; i++) r[i] = a[i] < b[i] ? b[i] : a[i]; return r; }
}
template <class T> METAL_FUNC T clamp(T x, T lo, T hi) { return min(max(x, lo), hi); }
template <class T> METAL_FUNC T abs(T x) { return x < T(0) ? T(-x) : x; }
template <class T> METAL_FUNC T saturate(T x) { return clamp(x, T(0), T(1)); }
template <class T> METAL_FUNC T mix(T a, T b, T t) { return a + (b - a) * t; }
template <class T> METAL_FUNC T select(T a, T b, bool c) { return c ? b : a; }
METAL_FUNC bool isnan(float x) { return (as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u; }
METAL_FUNC bool isinf(float x) { return (as_type<uint>(x) & 0x7fffffffu) == 0x7f800000u; }
template <class T, int N> METAL_FUNC T dot(vec<T, N> a, vec<T, N> b) {
  T s = a[0] * b[0];
  for (int i = 1; i < N; i++) s += a[i] * b[i];
  return s;
}
METAL_FUNC uint popcount(uint x) { return uint(__builtin_popcount(x)); }
METAL_FUNC uint clz(uint x) { return x ? uint(__builtin_clz(x)) : 32u; }
METAL_FUNC uint ctz(uint x) { return x ? uint(__builtin_ctz(x)) : 32u; }
METAL_FUNC uint extract_bits(uint x, uint off, uint n) { return n == 32u ? x >> off : (x >> off) & ((1u << n) - 1u); }

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

}  // namespace metal


#if defined(MSL_PTX)
// As in Metal, no kernel calls anything: arrays of the caller stay in registers,
// pointers keep their address space.
#define inline inline __attribute__((always_inline))
#endif

#ifndef INFINITY
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#endif
#define M_PI_F 3.14159265358979323846f
#define M_LN2_F 0.693147180559945309417f
#define FLT_MAX 3.402823466e+38f

// Vector constructor syntax. Function-like macros touch only `float4(...)`;
// `float4 x`, `device float4*` and `as_type<float4>(x)` are left alone.
#define MSL_CTOR(V, ...) ::metal::detail::make<V>(__VA_ARGS__)
#define char2(...) MSL_CTOR(char2, __VA_ARGS__)
#define char4(...) MSL_CTOR(char4, __VA_ARGS__)
#define uchar2(...) MSL_CTOR(uchar2, __VA_ARGS__)
#define uchar4(...) MSL_CTOR(uchar4, __VA_ARGS__)
#define short2(...) MSL_CTOR(short2, __VA_ARGS__)
#define short4(...) MSL_CTOR(short4, __VA_ARGS__)
#define ushort2(...) MSL_CTOR(ushort2, __VA_ARGS__)
#define ushort4(...) MSL_CTOR(ushort4, __VA_ARGS__)
#define int2(...) MSL_CTOR(int2, __VA_ARGS__)
#define int3(...) MSL_CTOR(int3, __VA_ARGS__)
#define int4(...) MSL_CTOR(int4, __VA_ARGS__)
#define uint2(...) MSL_CTOR(uint2, __VA_ARGS__)
#define uint3(...) MSL_CTOR(uint3, __VA_ARGS__)
#define uint4(...) MSL_CTOR(uint4, __VA_ARGS__)
#define ulong2(...) MSL_CTOR(ulong2, __VA_ARGS__)
#define half2(...) MSL_CTOR(half2, __VA_ARGS__)
#define half3(...) MSL_CTOR(half3, __VA_ARGS__)
#define half4(...) MSL_CTOR(half4, __VA_ARGS__)
#define bfloat2(...) MSL_CTOR(bfloat2, __VA_ARGS__)
#define bfloat4(...) MSL_CTOR(bfloat4, __VA_ARGS__)
#define float2(...) MSL_CTOR(float2, __VA_ARGS__)
#define float3(...) MSL_CTOR(float3, __VA_ARGS__)
#define float4(...) MSL_CTOR(float4, __VA_ARGS__)
