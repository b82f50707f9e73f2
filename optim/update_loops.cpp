// Compiled with -ffp-contract=off (optim/CMakeLists.txt): what is fused is what says `fma` here, in
// every instruction set. Nothing but builtins may be called in the loops, so that no inline
// function of another header is compiled with instructions that the machine may lack.

#include "optim/internal/update_loops.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace rondo::detail {

namespace {

RONDO_INLINE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

RONDO_INLINE double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

RONDO_INLINE float square_root(float x) {
  return __builtin_sqrtf(x);
}

RONDO_INLINE double square_root(double x) {
  return __builtin_sqrt(x);
}

/// While it lives, numbers too small for the format's exponent are zero on this thread. The moments
/// of a unit that gets no gradient any more decay to such and stay there for ever, and an Intel
/// processor takes many times as long for each of them.
class FlushDenormals {
 public:
#ifdef __SSE2__
  explicit FlushDenormals(bool is_on) : saved_(_mm_getcsr()) {
    if (is_on) {
      _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
    }
  }

  ~FlushDenormals() {
    _mm_setcsr(saved_);
  }
#else
  explicit FlushDenormals(bool) {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#ifdef __SSE2__
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;

  unsigned saved_;
#endif
};

/// With less than this the root of a denormal number counts: it is up to 1e-19 in float.
constexpr double kLeastEpsToFlush = 1e-10;

enum class Momentum { None, First, Later };

template <class T, Momentum kMomentum>
struct SgdElement {
  SgdNumbers<T> by;
  SgdTensors<T> at;

  RONDO_INLINE void operator()(int64_t i) const {
    T step = at.grad[i];
    step = by.weight_decay != 0 ? fma(at.param[i], by.weight_decay, step) : step;
    if constexpr (kMomentum != Momentum::None) {
      T buffer = step;
      if constexpr (kMomentum == Momentum::Later) {
        buffer = fma(step, by.one_minus_dampening, at.buffer[i] * by.momentum);
      }
      at.buffer[i] = buffer;
      step = by.is_nesterov ? fma(buffer, by.momentum, step) : buffer;
    }
    at.param[i] = fma(step, by.minus_lr, at.param[i]);
  }
};

// The processor's estimates of roots and quotients, each with a step of Newton's method, were tried
// for `backend.exact = false`: on Zen 4 they take longer than the root and the divisions.
template <class T, bool kAmsgrad>
struct AdamElement {
  AdamNumbers<T> by;
  AdamTensors<T> at;

  RONDO_INLINE void operator()(int64_t i) const {
    const T param = at.param[i] * by.shrink;
    T grad = at.grad[i];
    grad = by.weight_decay != 0 ? fma(param, by.weight_decay, grad) : grad;
    const T exp_avg = fma(grad, by.one_minus_beta1, at.exp_avg[i] * by.beta1);
    const T exp_avg_sq = fma(by.one_minus_beta2 * grad, grad, at.exp_avg_sq[i] * by.beta2);
    at.exp_avg[i] = exp_avg;
    at.exp_avg_sq[i] = exp_avg_sq;
    T second_moment = exp_avg_sq;
    if constexpr (kAmsgrad) {
      const T largest = at.max_exp_avg_sq[i];
      second_moment = exp_avg_sq > largest || exp_avg_sq != exp_avg_sq ? exp_avg_sq : largest;
      at.max_exp_avg_sq[i] = second_moment;
    }
    const T denominator = square_root(second_moment) / by.sqrt_bias_correction2 + by.eps;
    at.param[i] = param + by.minus_step_size * exp_avg / denominator;
  }
};

template <class T>
struct ScaledElement {
  T by;
  T* elements;

  RONDO_INLINE void operator()(int64_t i) const { elements[i] = elements[i] * by; }
};

}  // namespace

template <class T>
void sgd_loop(const SgdNumbers<T>& numbers,
              SgdTensors<T> tensors,
              int64_t count,
              InstructionSet set) {
  [[maybe_unused]] const FlushDenormals scope(true);
  if (tensors.buffer == nullptr) {
    vector_loop(SgdElement<T, Momentum::None>{numbers, tensors}, count, set);
  } else if (numbers.is_first) {
    vector_loop(SgdElement<T, Momentum::First>{numbers, tensors}, count, set);
  } else {
    vector_loop(SgdElement<T, Momentum::Later>{numbers, tensors}, count, set);
  }
}

template <class T>
void adam_loop(const AdamNumbers<T>& numbers,
               AdamTensors<T> tensors,
               int64_t count,
               InstructionSet set) {
  [[maybe_unused]] const FlushDenormals scope(numbers.eps >= kLeastEpsToFlush);
  if (tensors.max_exp_avg_sq == nullptr) {
    vector_loop(AdamElement<T, false>{numbers, tensors}, count, set);
  } else {
    vector_loop(AdamElement<T, true>{numbers, tensors}, count, set);
  }
}

template <class T>
void scale_loop(T by, T* elements, int64_t count, InstructionSet set) {
  vector_loop(ScaledElement<T>{by, elements}, count, set);
}

template void sgd_loop(const SgdNumbers<float>&, SgdTensors<float>, int64_t, InstructionSet);
template void sgd_loop(const SgdNumbers<double>&, SgdTensors<double>, int64_t, InstructionSet);
template void adam_loop(const AdamNumbers<float>&, AdamTensors<float>, int64_t, InstructionSet);
template void adam_loop(const AdamNumbers<double>&, AdamTensors<double>, int64_t, InstructionSet);
template void scale_loop(float, float*, int64_t, InstructionSet);
template void scale_loop(double, double*, int64_t, InstructionSet);

}  // namespace rondo::detail
