// What holds for the rule of every optimizer, each in all its variants.

#include "optim/internal/rule.h"

#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "optim/adam.h"
#include "optim/internal/update_operator.h"
#include "optim/sgd.h"

using namespace rondo;
using namespace rondo::detail;

namespace {

constexpr int64_t kCount = 1021;  // with a tail behind the vectors

/// Whether the rule takes the numbers.
bool takes(const CompiledRule& rule, const std::vector<double>& numbers) {
  std::vector<double> counters(rule.counters.size());
  std::vector<double> derived(rule.derived);
  try {
    rule.derive(numbers.data(), counters.data(), derived.data());
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

/// Numbers of a group that are in range and not zero, but for a momentum where there are no
/// buffers.
std::vector<double> numbers_of(const CompiledRule& rule) {
  std::vector<double> numbers(rule.given, 0.1);
  for (size_t i = 0; i < rule.given && !takes(rule, numbers); ++i) {
    numbers.assign(rule.given, 0.1);
    numbers[i] = 0.0;
  }
  return numbers;
}

/// Calls `check` with each rule and numbers for it.
void for_each_rule(
    const std::function<void(const CompiledRule&, const std::vector<double>&)>& check) {
  for (const UpdateOperator* op : builtin_update_operators()) {
    for (size_t variant = 0; variant < op->variants.size(); ++variant) {
      INFO(op->name << ", variant " << variant);
      check(op->variants[variant], numbers_of(op->variants[variant]));
    }
  }
}

template <class T>
std::vector<T> random_values(uint64_t seed, bool is_positive) {
  KeyedRandom random(seed);
  std::vector<T> made(kCount);
  for (T& value : made) {
    const double x = random.normal() * std::exp(2.0 * random.normal());
    value = static_cast<T>(is_positive ? std::fabs(x) : x);
  }
  return made;
}

/// Parameter, gradient and states. States are positive: some are sums of squares, and the others
/// smaller than a root of the first, as means beside means of squares are.
template <class T>
std::vector<std::vector<T>> arrays_of(const CompiledRule& rule) {
  std::vector<std::vector<T>> all = {random_values<T>(1, false), random_values<T>(2, false)};
  for (size_t s = 0; s < rule.states.size(); ++s) {
    all.push_back(random_values<T>(3, true));
    for (T& value : all.back()) {
      value = s == 0 ? value : std::sqrt(value) / static_cast<T>(10 * s);
    }
  }
  return all;
}

/// The numbers of an update, the second of a parameter.
std::vector<double> derived_of(const CompiledRule& rule, const std::vector<double>& numbers) {
  std::vector<double> counters(rule.counters.size());
  std::vector<double> derived(rule.derived);
  rule.derive(numbers.data(), counters.data(), derived.data());
  rule.derive(numbers.data(), counters.data(), derived.data());
  return derived;
}

void update(const CompiledRule& rule,
            const std::vector<double>& derived,
            float* const* tensors,
            InstructionSet set) {
  rule.update_floats(derived.data(), tensors, kCount, set);
}

void update(const CompiledRule& rule,
            const std::vector<double>& derived,
            double* const* tensors,
            InstructionSet set) {
  rule.update_doubles(derived.data(), tensors, kCount, set);
}

template <class T>
std::vector<std::vector<T>> updated(const CompiledRule& rule,
                                    const std::vector<double>& numbers,
                                    InstructionSet set) {
  std::vector<std::vector<T>> all = arrays_of<T>(rule);
  std::vector<T*> pointers;
  for (std::vector<T>& array : all) {
    pointers.push_back(array.data());
  }
  update(rule, derived_of(rule, numbers), pointers.data(), set);
  return all;
}

template <class T>
std::vector<at::Tensor> tensors_of(const std::vector<std::vector<T>>& arrays) {
  std::vector<at::Tensor> tensors;
  for (const std::vector<T>& array : arrays) {
    tensors.push_back(torch::tensor(array, torch::CppTypeToScalarType<T>::value));
  }
  return tensors;
}

at::Tensor number_tensor(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

template <class T>
void check_instruction_sets(const CompiledRule& rule, const std::vector<double>& numbers) {
  const auto baseline = updated<T>(rule, numbers, InstructionSet::Baseline);
  const auto widest = updated<T>(rule, numbers, widest_instruction_set());
  for (size_t i = 0; i < baseline.size(); ++i) {
    CAPTURE(i);
    CHECK(std::memcmp(baseline[i].data(), widest[i].data(), kCount * sizeof(T)) == 0);
  }
}

}  // namespace

TEST_SUITE_BEGIN("optim/rule");

TEST_CASE("every instruction set gives the same bits") {
  if (widest_instruction_set() == InstructionSet::Baseline) {
    MESSAGE("this machine has the baseline only");
  }
  for_each_rule([](const CompiledRule& rule, const std::vector<double>& numbers) {
    check_instruction_sets<float>(rule, numbers);
    check_instruction_sets<double>(rule, numbers);
  });
}

TEST_CASE("loops and tensors, and numbers on the device, do the same") {
  for_each_rule([](const CompiledRule& rule, const std::vector<double>& numbers) {
    const std::vector<at::Tensor> before = tensors_of(arrays_of<double>(rule));
    const std::vector<at::Tensor> looped =
        tensors_of(updated<double>(rule, numbers, InstructionSet::Baseline));
    const std::vector<at::Tensor> by_operators =
        rule.update_tensors(derived_of(rule, numbers).data(), before);
    std::vector<at::Tensor> given;
    for (const double value : numbers) {
      given.push_back(number_tensor(value));
    }
    std::vector<at::Tensor> counters(rule.counters.size());
    for (at::Tensor& counter : counters) {
      counter = number_tensor(0);
    }
    rule.update_on_device(given, counters, before);
    const std::vector<at::Tensor> on_device = rule.update_on_device(given, counters, before);
    REQUIRE(by_operators.size() == 1 + rule.states.size());
    REQUIRE(on_device.size() == by_operators.size());
    for (size_t i = 0; i < by_operators.size(); ++i) {
      CAPTURE(i);
      const at::Tensor& expected = looped[i == 0 ? 0 : i + 1];
      CHECK(at::allclose(by_operators[i], expected, 1e-12, 1e-12));
      CHECK(at::allclose(on_device[i], expected, 1e-12, 1e-12));
      CHECK_FALSE(at::equal(by_operators[0], before[0]));
    }
  });
}

TEST_CASE("an update in float is that in double, but for rounding") {
  for_each_rule([](const CompiledRule& rule, const std::vector<double>& numbers) {
    const std::vector<double> derived = derived_of(rule, numbers);
    const std::vector<at::Tensor> of_floats = tensors_of(arrays_of<float>(rule));
    std::vector<at::Tensor> of_doubles;
    for (const at::Tensor& tensor : of_floats) {
      of_doubles.push_back(tensor.to(at::kDouble));
    }
    const auto floats = rule.update_tensors(derived.data(), of_floats);
    const auto doubles = rule.update_tensors(derived.data(), of_doubles);
    for (size_t i = 0; i < floats.size(); ++i) {
      CAPTURE(i);
      CHECK(at::allclose(floats[i].to(at::kDouble), doubles[i], 1e-5, 1e-5));
    }
  });
}

#ifdef __SSE2__
TEST_CASE("moments that decay below the format's range are zero, in the loops only") {
  const CompiledRule& momentum = Sgd::update_operator().variants[1];
  volatile float tiny = 2 * std::numeric_limits<float>::min();
  float param = 1.0F;
  float grad = 0.0F;
  float buffer = tiny;
  float* const tensors[] = {&param, &grad, &buffer};
  momentum.update_floats(
      derived_of(momentum, {0.1, 0.25, 0.0, 0.0}).data(), tensors, 1, InstructionSet::Baseline);
  CHECK(buffer == 0.0F);
  CHECK(param == 1.0F);
  CHECK(tiny * 0.25F > 0.0F);
}

TEST_CASE("without an eps to speak of denormal squares still divide") {
  const CompiledRule& adam = AdamW::update_operator().variants[0];
  float param = 1.0F;
  float grad = 1e-18F;
  float exp_avg = 0.0F;
  float exp_avg_sq = 0.0F;
  float* const tensors[] = {&param, &grad, &exp_avg, &exp_avg_sq};
  std::vector<double> counters = {0.0};
  std::vector<double> derived(adam.derived);
  const double numbers[] = {1e-3, 0.9, 0.999, 0.0, 0.0};
  adam.derive(numbers, counters.data(), derived.data());
  adam.update_floats(derived.data(), tensors, 1, InstructionSet::Baseline);
  CHECK(exp_avg_sq > 0.0F);
  CHECK(param == doctest::Approx(0.999));
}
#endif

TEST_SUITE_END();
