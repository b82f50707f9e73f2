#include "callbacks/core/precision_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "callbacks/core/precision_speed.h"
#include "core/error.h"

using namespace rondo;

namespace {

CanCompute only(std::vector<at::ScalarType> known) {
  return [known = std::move(known)](at::ScalarType dtype) {
    return std::find(known.begin(), known.end(), dtype) != known.end();
  };
}

PrecisionChoice choose(const std::string& dtype,
                       const std::string& on_unsupported,
                       const CanCompute& can) {
  PrecisionOptions options;
  options.dtype = dtype;
  options.on_unsupported = on_unsupported;
  return choose_precision(options, c10::kCPU, can);
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/precision_choice");

TEST_CASE("a format that the device knows is taken without a word") {
  const CanCompute all = only({at::kFloat, at::kDouble, at::kBFloat16, at::kHalf});
  for (const char* dtype : {"fp32", "fp64", "bf16", "fp16", "bf16_pure"}) {
    for (const char* way : {"fallback", "error", "emulate"}) {
      const PrecisionChoice choice = choose(dtype, way, all);
      CHECK(choice.dtype == dtype);
      CHECK(choice.note == "");
      CHECK(!choice.is_emulated);
    }
  }
}

TEST_CASE("T92: fp16 falls back to bf16, and what cannot run bf16 to fp32, with a note") {
  const CanCompute cpu = only({at::kFloat, at::kDouble, at::kBFloat16});
  const PrecisionChoice half = choose("fp16", "fallback", cpu);
  CHECK(half.dtype == "bf16");
  CHECK(half.note.find("fp16") != std::string::npos);
  CHECK(half.note.find("bf16") != std::string::npos);
  const CanCompute old = only({at::kFloat});
  for (const char* dtype : {"fp64", "bf16", "fp16", "bf16_pure"}) {
    CHECK(choose(dtype, "fallback", old).dtype == "fp32");
    CHECK(choose(dtype, "fallback", old).note.find(dtype) != std::string::npos);
  }
  CHECK(choose("bf16", "emulate", old).dtype == "fp32");
}

TEST_CASE("C43: where nothing else is to be taken, it is an error that names device and format") {
  try {
    choose("fp16", "error", only({at::kFloat, at::kBFloat16}));
    FAIL("no error");
  } catch (const NotSupportedError& error) {
    const std::string message = error.what();
    CHECK(message.find("cpu") != std::string::npos);
    CHECK(message.find("fp16") != std::string::npos);
  }
}

TEST_CASE("fp16 can be emulated") {
  const PrecisionChoice choice = choose("fp16", "emulate", only({at::kFloat, at::kBFloat16}));
  CHECK(choice.dtype == "fp16");
  CHECK(choice.is_emulated);
  CHECK(choice.note != "");
}

TEST_CASE("CPUs compute in all formats but float16") {
  CHECK(can_compute(c10::kCPU, at::kBFloat16));
  CHECK(can_compute(c10::kCPU, at::kDouble));
  CHECK(!can_compute(c10::kCPU, at::kHalf));
}

TEST_CASE("a run says that bf16 is slower only where it is, with the ratio") {
  for (const SpeedProbe probe : {SpeedProbe::Linear, SpeedProbe::Convolutional}) {
    CHECK(slowness_note("bf16", probe, 0.7) == "");
    CHECK(slowness_note("bf16", probe, 1.05) == "");
    const std::string note = slowness_note("bf16_pure", probe, 2.54);
    CHECK(note.find("2.5") != std::string::npos);
    CHECK(note.find("bf16_pure") != std::string::npos);
    CHECK((note.find("convolutional") != std::string::npos) ==
          (probe == SpeedProbe::Convolutional));
    CHECK(relative_time_of_bf16(probe) > 0.0);
  }
}

TEST_SUITE_END();
