#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "tracing/find_instruction.h"
#include "tracing/kernel_checks.h"
#include "tracing/plan/out_variant.h"
#include "tracing/plan/probe.h"
#include "tracing/recording/objection.h"
#include "tracing/recording/tensor_rules.h"

TEST_SUITE_BEGIN("tracing/devices");

using namespace rondo;
using namespace rondo::test;

namespace {

StepProgram exponential() {
  return Recorded([](const Batch& batch) { return std::vector{batch["x"].exp()}; },
                  {{"x", at::ones({64})}})
      .program;
}

/// The same program with its tensors elsewhere.
StepProgram moved(StepProgram program, c10::Device device) {
  for (Slot& slot : program.slots) {
    slot.device = device;
  }
  return program;
}

}  // namespace

TEST_CASE("a recorded tensor says where it is, and its text does unless it is on the CPU") {
  const StepProgram program = exponential();
  for (const Slot& slot : program.slots) {
    CHECK(slot.device == c10::Device(c10::kCPU));
    CHECK(to_text(slot).find("cpu") == std::string::npos);
  }
  CHECK(to_text(moved(program, c10::Device(c10::kCUDA, 1)).slots[0]).find("cuda:1") !=
        std::string::npos);
}

TEST_CASE("kernels take tensors of their own device only") {
  const StepProgram here = exponential();
  const StepProgram there = moved(here, c10::kMeta);
  const Instruction& instruction = find(here, "aten::exp");
  CHECK(is_on(here, instruction, c10::kCPU));
  CHECK_FALSE(is_on(there, instruction, c10::kCPU));
  CHECK(find_own_kernel(there, find(there, "aten::exp")) == nullptr);
  CHECK(find_out_variant(instruction.op, c10::kCPU).has_value());
  CHECK_FALSE(find_out_variant(instruction.op, c10::DeviceType::IPU).has_value());
}

TEST_CASE("a plan is made of tensors on the CPU only") {
  CHECK_THROWS_AS(make_plan(moved(exponential(), c10::kMeta)), NotSupportedError);
}

TEST_CASE("a tensor on another device is objected to, and the device is named") {
  const c10::Storage elsewhere(c10::Storage::use_byte_size_t(),
                               0,
                               c10::DataPtr(nullptr, c10::Device(c10::DeviceType::IPU, 1)),
                               /*allocator=*/nullptr,
                               /*resizable=*/false);
  const at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(elsewhere),
                                               c10::DispatchKeySet(c10::DispatchKey::CPU),
                                               caffe2::TypeMeta::Make<float>());
  try {
    object_to_device(tensor, "output \"y\"", c10::kCPU);
    FAIL("no objection");
  } catch (const Objection& objection) {
    CHECK(objection.what == "used device ipu:1 for output \"y\"");
  }
  object_to_device(at::ones({2}), "output \"y\"", c10::kCPU);
  object_to_device(at::ones({2}), "output \"y\"", c10::kMeta);  // graphs mirror numbers
  object_to_device(at::ones({2}, at::kMeta), "output \"y\"", c10::kMeta);
}

TEST_CASE("tensors without bytes leave no trace in a program") {
  const StepProgram program = Recorded(
                                  [](const Batch& batch) {
                                    const at::Tensor shape = batch["x"].to(at::kMeta);
                                    CHECK((shape + shape).size(0) == 64);
                                    return std::vector{batch["x"].exp()};
                                  },
                                  {{"x", at::ones({64})}})
                                  .program;
  CHECK(program.instructions.size() == exponential().instructions.size());
}

TEST_SUITE_END();
