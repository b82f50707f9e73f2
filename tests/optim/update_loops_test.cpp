#include "optim/internal/update_loops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/random.h"

using namespace rondo;
using namespace rondo::detail;

namespace {

template <class T>
std::vector<T> values(uint64_t seed, size_t count, bool is_positive = false) {
  KeyedRandom random(seed);
  std::vector<T> made(count);
  for (T& value : made) {
    const double x = random.normal() * std::exp(4.0 * random.normal());
    value = static_cast<T>(is_positive ? std::fabs(x) : x);
  }
  return made;
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<std::vector<T>> after_sgd(SgdNumbers<T> numbers,
                                      bool has_momentum,
                                      InstructionSet set) {
  const size_t count = 1021;
  std::vector<std::vector<T>> all = {values<T>(1, count), values<T>(2, count), values<T>(3, count)};
  sgd_loop<T>(
      numbers, {all[0].data(), all[1].data(), has_momentum ? all[2].data() : nullptr}, count, set);
  return all;
}

template <class T>
std::vector<std::vector<T>> after_adam(T weight_decay, bool amsgrad, InstructionSet set) {
  const size_t count = 1021;
  std::vector<std::vector<T>> all = {values<T>(1, count),
                                     values<T>(2, count),
                                     values<T>(3, count),
                                     values<T>(4, count, true),
                                     values<T>(5, count, true)};
  const AdamNumbers<T> numbers = {T(0.999),
                                  weight_decay,
                                  T(0.9),
                                  T(1 - 0.9),
                                  T(0.999),
                                  T(1 - 0.999),
                                  T(0.3),
                                  T(1e-8),
                                  T(-1e-3)};
  T* const largest = amsgrad ? all[4].data() : nullptr;
  adam_loop<T>(
      numbers, {all[0].data(), all[1].data(), all[2].data(), all[3].data(), largest}, count, set);
  return all;
}

template <class T>
void check_same(const std::vector<std::vector<T>>& a, const std::vector<std::vector<T>>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bytes(a[i], b[i]));
  }
}

template <class T>
void check_all_loops() {
  const auto baseline = InstructionSet::Baseline;
  const auto widest = widest_instruction_set();
  for (const bool flag : {false, true}) {
    for (const T decay : {T(0), T(0.01)}) {
      CAPTURE(flag);
      CAPTURE(decay);
      const SgdNumbers<T> first = {T(-0.1), decay, T(0.9), T(0.7), flag, true};
      SgdNumbers<T> later = first;
      later.is_first = false;
      check_same(after_sgd(first, false, baseline), after_sgd(first, false, widest));
      check_same(after_sgd(first, true, baseline), after_sgd(first, true, widest));
      check_same(after_sgd(later, true, baseline), after_sgd(later, true, widest));
      check_same(after_adam(decay, flag, baseline), after_adam(decay, flag, widest));
    }
  }
}

}  // namespace

TEST_SUITE_BEGIN("optim/update_loops");

TEST_CASE("every instruction set gives the same bits") {
  if (widest_instruction_set() == InstructionSet::Baseline) {
    MESSAGE("this machine has the baseline only");
  }
  check_all_loops<float>();
  check_all_loops<double>();
}

#ifdef __SSE2__
TEST_CASE(
    "moments that decay below the format's range are zero, on this thread in the loops only") {
  volatile float tiny = 2 * std::numeric_limits<float>::min();
  float param = 1.0F;
  const float grad = 0.0F;
  float buffer = tiny;
  SgdNumbers<float> sgd = {-0.1F, 0.0F, 0.25F, 1.0F, false, false};
  sgd_loop<float>(sgd, {&param, &grad, &buffer}, 1, InstructionSet::Baseline);
  CHECK(buffer == 0.0F);
  float exp_avg = tiny;
  float exp_avg_sq = tiny;
  const AdamNumbers<float> adam = {1.0F, 0.0F, 0.25F, 0.75F, 0.25F, 0.75F, 1.0F, 1e-8F, -0.1F};
  adam_loop<float>(
      adam, {&param, &grad, &exp_avg, &exp_avg_sq, nullptr}, 1, InstructionSet::Baseline);
  CHECK(exp_avg == 0.0F);
  CHECK(exp_avg_sq == 0.0F);
  CHECK(param == 1.0F);
  CHECK(tiny * 0.25F > 0.0F);
}

TEST_CASE("without an eps to speak of denormal squares still divide") {
  float param = 1.0F;
  const float grad = 1e-18F;
  float exp_avg = 0.0F;
  float exp_avg_sq = 0.0F;
  const AdamNumbers<float> adam = {1.0F, 0.0F, 0.9F, 0.1F, 0.999F, 1e-3F, 0.0316F, 0.0F, -1e-2F};
  adam_loop<float>(
      adam, {&param, &grad, &exp_avg, &exp_avg_sq, nullptr}, 1, InstructionSet::Baseline);
  CHECK(exp_avg_sq > 0.0F);
  CHECK(param == doctest::Approx(0.999));
}
#endif

TEST_SUITE_END();
