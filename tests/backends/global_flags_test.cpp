#include "backends/global_flags.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>

#include "core/fingerprint.h"
#include "core/torch_compat.h"

using namespace rondo;

TEST_SUITE_BEGIN("backends/global_flags");

namespace {

uint64_t flags() {
  Fingerprint fingerprint;
  add_global_flags(fingerprint);
  return fingerprint.value();
}

struct Switch {
  const char* name;
  std::function<void(bool)> turn;
};

const Switch kSwitches[] = {
    {"grad mode", [](bool on) { at::GradMode::set_enabled(!on); }},
    {"deterministic",
     [](bool on) { at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false); }},
    {"deterministic, warn only",
     [](bool on) { at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/on); }},
    {"default dtype",
     [](bool on) {
       c10::set_default_dtype(caffe2::TypeMeta::fromScalarType(on ? at::kDouble : at::kFloat));
     }},
    {"autocast", [](bool on) { compat::set_autocast(c10::kCPU, on); }},
    {"oneDNN", [](bool on) { at::globalContext().setUserEnabledMkldnn(!on); }},
    {"threads",
     [before = at::get_num_threads()](bool on) { at::set_num_threads(on ? before + 1 : before); }},
};

}  // namespace

TEST_CASE("each of LibTorch's switches that changes what code does is seen, and its way back") {
  const uint64_t before = flags();
  for (const Switch& one : kSwitches) {
    CAPTURE(one.name);
    one.turn(true);
    CHECK(flags() != before);
    one.turn(false);
    CHECK(flags() == before);
  }
}

TEST_CASE("the dtype of autocast is looked at where autocast is on") {
  constexpr c10::DeviceType kDevice = c10::kCUDA;  // LibTorch 1.13 has one dtype on the CPU
  const at::ScalarType before = compat::autocast_dtype(kDevice);
  compat::set_autocast(kDevice, true);
  const uint64_t on = flags();
  compat::set_autocast_dtype(kDevice, at::kBFloat16);
  CHECK(flags() != on);
  compat::set_autocast(kDevice, false);
  const uint64_t off = flags();
  compat::set_autocast_dtype(kDevice, before);
  CHECK(flags() == off);
}

TEST_SUITE_END();
