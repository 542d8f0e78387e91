// Declarations only: back end of the strict type-check pass, run with clang's
// C++ for OpenCL front end, where device/constant/threadgroup/thread are real
// address spaces and generic pointers are off.
#pragma once

namespace msl_math {
float exp(float); float exp2(float); float log(float); float log2(float); float sqrt(float); float rsqrt(float);
float sin(float); float cos(float); float tanh(float); float floor(float); float ceil(float); float trunc(float);
float rint(float); float fabs(float); float fma(float, float, float);
}

// A name for the type first: `uint2 (&x)` would be taken for a constructor.
#define MSL_TGVAR(name, dims, ...) \
  typedef __VA_ARGS__ name##_element; \
  threadgroup name##_element (&name) MSL_UNPAREN dims = *(threadgroup name##_element (*) MSL_UNPAREN dims)(8)
#define MSL_TGSCALAR(name, ...) threadgroup __VA_ARGS__& name = *(threadgroup __VA_ARGS__*)(8)
#define MSL_UNPAREN(...) __VA_ARGS__
#define MSL_CONST_VAR constant
#define MSL_FUNCTION_CONSTANT(index, type, name) constant type name = type(1)

namespace metal {
template <class T> T simd_sum(T); template <class T> T simd_product(T);
template <class T> T simd_max(T); template <class T> T simd_min(T);
template <class T> T simd_prefix_exclusive_sum(T); template <class T> T simd_prefix_inclusive_sum(T);
template <class T> T simd_broadcast(T, ushort); template <class T> T simd_broadcast_first(T);
template <class T> T simd_shuffle(T, ushort); template <class T> T simd_shuffle_xor(T, ushort);
template <class T> T simd_shuffle_down(T, ushort); template <class T> T simd_shuffle_up(T, ushort);
bool simd_all(bool); bool simd_any(bool);
template <class T> T simd_or(T); template <class T> T simd_and(T);
void threadgroup_barrier(mem_flags); void simdgroup_barrier(mem_flags);

template <class T, int C, int R> struct simdgroup_matrix {
  vec<T, 2> e;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T);
  thread vec<T, 2>& thread_elements();
};
template <class T, int C, int R> simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T);
#define MSL_LS(AS)                                                                                             \
  template <class T> void simdgroup_load(thread simdgroup_matrix<T, 8, 8>&, const AS T*, ulong = 8, ulong2 = ulong2{0, 0}, bool = false); \
  template <class T> void simdgroup_store(simdgroup_matrix<T, 8, 8>, AS T*, ulong = 8, ulong2 = ulong2{0, 0}, bool = false);
MSL_LS(device) MSL_LS(threadgroup)
#undef MSL_LS
template <class D, class A, class B> void simdgroup_multiply(thread simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>);
template <class D, class A, class B, class C> void simdgroup_multiply_accumulate(
    thread simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>, simdgroup_matrix<C, 8, 8>);

template <class T> struct atomic { T v; };
typedef atomic<uint> atomic_uint; typedef atomic<int> atomic_int; typedef atomic<float> atomic_float;
#define MSL_ATOMIC(AS)                                                                      \
  template <class T> T atomic_load_explicit(AS const atomic<T>*, memory_order);             \
  template <class T> void atomic_store_explicit(AS atomic<T>*, T, memory_order);            \
  template <class T> T atomic_fetch_add_explicit(AS atomic<T>*, T, memory_order);           \
  template <class T> T atomic_fetch_max_explicit(AS atomic<T>*, T, memory_order);           \
  template <class T> T atomic_fetch_min_explicit(AS atomic<T>*, T, memory_order);           \
  template <class T> T atomic_fetch_or_explicit(AS atomic<T>*, T, memory_order);            \
  template <class T> T atomic_exchange_explicit(AS atomic<T>*, T, memory_order);
MSL_ATOMIC(device) MSL_ATOMIC(threadgroup)
#undef MSL_ATOMIC
}
