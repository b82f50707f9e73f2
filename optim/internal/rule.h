#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/vector_loop.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace rondo::detail {

/// A rule of an optimizer, compiled for every kind of tensor. Pointers to numbers are to as many as
/// the rule has; `tensors` are the parameter, its gradient, and its states.
struct CompiledRule {
  std::vector<std::string> states;    ///< names of what is kept for each parameter, of its shape
  std::vector<std::string> counters;  ///< names of the numbers that are kept for each parameter
  size_t given = 0;                   ///< how many numbers a group has
  size_t derived = 0;                 ///< how many numbers an update takes

  /// Moves a parameter's counters on and makes the numbers of its update.
  void (*derive)(const double* given, double* counters, double* derived) = nullptr;
  /// Updates `count` elements of flat arrays.
  void (*update_floats)(const double* derived,
                        float* const* tensors,
                        int64_t count,
                        InstructionSet set) = nullptr;
  void (*update_doubles)(const double* derived,
                         double* const* tensors,
                         int64_t count,
                         InstructionSet set) = nullptr;
  /// The same for tensors of any dtype and strides, out of place: makes the new parameter and
  /// states.
  std::vector<at::Tensor> (*update_tensors)(const double* derived,
                                            const std::vector<at::Tensor>& tensors) = nullptr;
  /// The same with numbers and counters that are tensors on the parameter's device: nothing is read
  /// on the host. Replaces the counters.
  std::vector<at::Tensor> (*update_on_device)(const std::vector<at::Tensor>& given,
                                              std::vector<at::Tensor>& counters,
                                              const std::vector<at::Tensor>& tensors) = nullptr;
};

/// While it lives, numbers too small for the format's exponent (below 1.2e-38 in float) are zero on
/// this thread. The moments of a unit that gets no gradient any more decay to such and stay there
/// for ever, and an Intel processor takes many times as long for each of them
/// (docs/decisions/012-updates-take-denormals-for-zero.md).
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

/// What every rule has unless it says otherwise. A rule is written once, as a template over the
/// value (an element of a loop, or a tensor) and its numbers, with the verbs of verbs.h:
///
///   struct LionRule : RuleDefaults {
///     static constexpr std::array kStates = {"exp_avg"};
///     template <class N> struct Given { N lr, beta1, beta2, weight_decay; };  // of a group
///     template <class N> struct Numbers { N minus_lr, keep, … };             // of an update
///     template <class N> static Numbers<N> numbers(const Given<N>&, Counters<N>&);
///     template <class By, class V>
///     RONDO_INLINE static void update(const By& by, V& param, const V& grad, V& exp_avg);
///   };
///
/// `Given` has the numbers of a group in the order of the optimizer's table, `Counters` what is
/// counted for each parameter, zero at first: `numbers` moves them on. Members of the three are
/// N's and nothing else. The file of a rule is in the list of rules in optim/CMakeLists.txt.
struct RuleDefaults {
  static constexpr std::array<const char*, 0> kStates = {};
  static constexpr std::array<const char*, 0> kCounters = {};

  template <class N>
  struct Counters {};

  /// Whether loops may take denormal numbers for zero.
  template <class By>
  static bool flushes(const By& /*by*/) {
    return true;
  }
};

/// The usual counter.
struct CountedRule : RuleDefaults {
  static constexpr std::array<const char*, 1> kCounters = {"step"};

  template <class N>
  struct Counters {
    N step;
  };
};

/// With less than this the root of a denormal number counts: it is up to 1e-19 in float.
inline constexpr double kLeastEpsToFlush = 1e-10;

/// One that adds `eps` to roots of squares.
struct EpsRule : CountedRule {
  template <class By>
  static bool flushes(const By& by) {
    return by.eps >= kLeastEpsToFlush;
  }
};

/// How many N's a struct of N's has.
template <template <class> class Struct>
constexpr size_t fields_of() {
  return sizeof(Struct<double>) / sizeof(double);
}

/// A struct of N's, from as many values.
template <template <class> class Struct, class N, class Value, size_t... I>
Struct<N> struct_of([[maybe_unused]] const Value* values, std::index_sequence<I...> /*fields*/) {
  return Struct<N>{static_cast<N>(values[I])...};
}

template <template <class> class Struct, class N, class Value>
Struct<N> struct_of(const Value* values) {
  return struct_of<Struct, N>(values, std::make_index_sequence<fields_of<Struct>()>());
}

/// The fields of a struct of N's, which lie side by side.
template <template <class> class Struct, class N>
void put_fields(const Struct<N>& from, N* values) {
  static_assert(fields_of<Struct>() == 0 || sizeof(from) == fields_of<Struct>() * sizeof(N));
  if constexpr (fields_of<Struct>() > 0) {
    const auto* const fields = reinterpret_cast<const N*>(&from);
    for (size_t i = 0; i < fields_of<Struct>(); ++i) {
      values[i] = fields[i];
    }
  }
}

/// One element of an update.
template <class Rule, class T, class States>
struct RuleElement;

template <class Rule, class T, size_t... S>
struct RuleElement<Rule, T, std::index_sequence<S...>> {
  typename Rule::template Numbers<T> by;
  T* tensors[2 + sizeof...(S)];

  RONDO_INLINE void operator()(int64_t i) const {
    T values[1 + sizeof...(S)] = {tensors[0][i], tensors[2 + S][i]...};
    const T grad = tensors[1][i];
    Rule::update(by, values[0], grad, values[1 + S]...);
    tensors[0][i] = values[0];
    ((tensors[2 + S][i] = values[1 + S]), ...);
  }
};

template <class Rule>
class RuleCompiler {
 public:
  static CompiledRule compiled() {
    CompiledRule rule;
    rule.states.assign(Rule::kStates.begin(), Rule::kStates.end());
    rule.counters.assign(Rule::kCounters.begin(), Rule::kCounters.end());
    rule.given = fields_of<Given>();
    rule.derived = fields_of<Numbers>();
    rule.derive = &derive;
    rule.update_floats = &update_elements<float>;
    rule.update_doubles = &update_elements<double>;
    rule.update_tensors = &update_tensors;
    rule.update_on_device = &update_on_device;
    return rule;
  }

 private:
  template <class N>
  using Given = typename Rule::template Given<N>;
  template <class N>
  using Counters = typename Rule::template Counters<N>;
  template <class N>
  using Numbers = typename Rule::template Numbers<N>;
  using States = std::make_index_sequence<Rule::kStates.size()>;

  static_assert(fields_of<Counters>() == Rule::kCounters.size());

  static void derive(const double* given, double* counters, double* derived) {
    auto counts = struct_of<Counters, double>(counters);
    const Numbers<double> numbers =
        Rule::template numbers<double>(struct_of<Given, double>(given), counts);
    put_fields<Counters, double>(counts, counters);
    put_fields<Numbers, double>(numbers, derived);
  }

  template <class T>
  static void update_elements(const double* derived,
                              T* const* tensors,
                              int64_t count,
                              InstructionSet set) {
    update_elements<T>(derived, tensors, count, set, States());
  }

  // Numbers are rounded once from double, as LibTorch rounds its scalars.
  template <class T, size_t... S>
  static void update_elements(const double* derived,
                              T* const* tensors,
                              int64_t count,
                              InstructionSet set,
                              std::index_sequence<S...> /*states*/) {
    const RuleElement<Rule, T, States> element = {struct_of<Numbers, T>(derived),
                                                  {tensors[0], tensors[1], tensors[2 + S]...}};
    [[maybe_unused]] const FlushDenormals scope(Rule::flushes(struct_of<Numbers, double>(derived)));
    vector_loop(element, count, set);
  }

  static std::vector<at::Tensor> update_tensors(const double* derived,
                                                const std::vector<at::Tensor>& tensors) {
    return updated(struct_of<Numbers, double>(derived), tensors, States());
  }

  static std::vector<at::Tensor> update_on_device(const std::vector<at::Tensor>& given,
                                                  std::vector<at::Tensor>& counters,
                                                  const std::vector<at::Tensor>& tensors) {
    auto counts = struct_of<Counters, at::Tensor>(counters.data());
    const Numbers<at::Tensor> numbers =
        Rule::template numbers<at::Tensor>(struct_of<Given, at::Tensor>(given.data()), counts);
    put_fields<Counters, at::Tensor>(counts, counters.data());
    return updated(numbers, tensors, States());
  }

  // An assignment in a rule rebinds a tensor: what is given stays as it is.
  template <class By, size_t... S>
  static std::vector<at::Tensor> updated(const By& by,
                                         const std::vector<at::Tensor>& tensors,
                                         std::index_sequence<S...> /*states*/) {
    std::vector<at::Tensor> values = {tensors[0], tensors[2 + S]...};
    Rule::update(by, values[0], tensors[1], values[1 + S]...);
    return values;
  }
};

}  // namespace rondo::detail
