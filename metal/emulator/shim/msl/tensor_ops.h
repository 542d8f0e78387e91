// Metal 4 tensor_ops, the part worth using here: matmul2d at simdgroup scope on
// cooperative tensors held in registers.
//
// A cooperative tensor spreads its elements over the 32 lanes in a layout that
// belongs to the operation. Apple documents no layout, so kernels must ask:
// get_multidimensional_index(i) gives {column, row} of the lane's element i. The
// shim deals elements out in an order of its own (MSL_TENSOR_LAYOUT picks one of
// two), and a kernel that passes under both depends on neither.
#pragma once

#if defined(MSL_CHECK)
#error "the type check runs as C++17 and cannot take descriptors as template arguments; leave tensor kernels out of it"
#endif

#ifndef MSL_TENSOR_LAYOUT
#define MSL_TENSOR_LAYOUT 0
#endif


namespace metal {
struct execution_simdgroup {};
template <class T> struct remove_addrspace { typedef T type; };
template <class T> using remove_addrspace_t = typename remove_addrspace<T>::type;
}

namespace mpp {
namespace tensor_ops {

struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;
  bool transpose_left, transpose_right, relaxed;
  mode op;
  constexpr matmul2d_descriptor(int m_, int n_, int k_, bool tl = false, bool tr = false, bool relaxed_ = false,
                                mode op_ = mode::multiply)
      : m(m_), n(n_), k(k_), transpose_left(tl), transpose_right(tr), relaxed(relaxed_), op(op_) {}
};

namespace detail {
METAL_FUNC uint lane() {
  return msl_rt_lane();
}
template <class T, int ROWS, int COLS> struct cooperative {
  static constexpr constant int N = ROWS * COLS / 32;
  typedef T element_type;
  T e[N];
  METAL_FUNC uint16_t get_capacity() const { return N; }
  METAL_FUNC bool is_valid_element(uint16_t) const { return true; }
  // {column, row}, innermost dimension first.
  static METAL_FUNC int2 where(uint l, int i) {
    // Layout 0: fragments of 16 x 16; rows r and r + 8, four columns each.
    // Layout 1: lane-strided, unlike any hardware.
    int2 p;
    if (MSL_TENSOR_LAYOUT == 0 && ROWS % 16 == 0 && COLS % 16 == 0) {
      const int frag = i / 8, j = i % 8;
      p[1] = int(((l >> 2) & 4) | ((l >> 1) & 3)) + 8 * (j / 4) + 16 * (frag / (COLS / 16));
      p[0] = int(((l >> 2) & 2) | (l & 1)) * 4 + j % 4 + 16 * (frag % (COLS / 16));
    } else {
      const int at = i * 32 + int(l);
      p[0] = at % COLS;
      p[1] = at / COLS;
    }
    return p;
  }
  METAL_FUNC int2 get_multidimensional_index(uint16_t i) const { return where(lane(), i); }
  METAL_FUNC T& operator[](uint16_t i) { return e[i]; }
  METAL_FUNC T operator[](uint16_t i) const { return e[i]; }
};
}  // namespace detail

template <matmul2d_descriptor D, class Scope> class matmul2d {
  static_assert(__is_same(Scope, metal::execution_simdgroup), "only simdgroup scope is emulated");

 public:
  template <class A, class B, class C> using left_t = detail::cooperative<A, D.transpose_left ? D.k : D.m, D.transpose_left ? D.m : D.k>;
  template <class A, class B, class C> using right_t = detail::cooperative<B, D.transpose_right ? D.n : D.k, D.transpose_right ? D.k : D.n>;
  template <class C> using dest_t = detail::cooperative<C, D.m, D.n>;
  template <class A, class B, class C> METAL_FUNC left_t<A, B, C> get_left_input_cooperative_tensor() const { return {}; }
  template <class A, class B, class C> METAL_FUNC right_t<A, B, C> get_right_input_cooperative_tensor() const { return {}; }
  template <class L, class R, class C> METAL_FUNC dest_t<C> get_destination_cooperative_tensor() const { return {}; }

  template <class L, class R, class C> MSL_RT void run(L& a, R& b, C& c, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    struct Frag { L* a; R* b; C* c; };
    Frag* s = (Frag*)msl_rt_slots();
    s[detail::lane()] = {&a, &b, &c};  // lanes wait here, so the addresses stay good
    if (msl_rt_rendezvous("matmul2d::run", file, line)) all(s);
    msl_rt_rendezvous("matmul2d::run", file, line);
  }

 private:
  template <class F> __attribute__((no_sanitize("address", "thread", "memory"))) static void all(F* s) {
    static thread_local float A[D.m][D.k], B[D.k][D.n], O[D.m][D.n];
    for (uint l = 0; l < 32; l++) {
      for (int i = 0; i < s[l].a->N; i++) {
        const auto p = s[l].a->where(l, i);
        (D.transpose_left ? A[p[0]][p[1]] : A[p[1]][p[0]]) = float(s[l].a->e[i]);
      }
      for (int i = 0; i < s[l].b->N; i++) {
        const auto p = s[l].b->where(l, i);
        (D.transpose_right ? B[p[0]][p[1]] : B[p[1]][p[0]]) = float(s[l].b->e[i]);
      }
      for (int i = 0; i < s[l].c->N; i++) {
        const auto p = s[l].c->where(l, i);
        O[p[1]][p[0]] = D.op == matmul2d_descriptor::mode::multiply ? 0.0f : float(s[l].c->e[i]);
      }
    }
    for (int i = 0; i < D.m; i++)
      for (int k = 0; k < D.k; k++)
        for (int j = 0; j < D.n; j++) O[i][j] += A[i][k] * B[k][j];
    for (uint l = 0; l < 32; l++)
      for (int i = 0; i < s[l].c->N; i++) {
        const auto p = s[l].c->where(l, i);
        s[l].c->e[i] = O[p[1]][p[0]];
      }
  }
};

}  // namespace tensor_ops
}  // namespace mpp

