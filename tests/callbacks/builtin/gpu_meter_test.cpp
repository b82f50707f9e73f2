#include "callbacks/builtin/gpu_meter.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "support/contains.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

/// The variable has this value, or none, while the object lives.
class Visible {
 public:
  explicit Visible(const char* names) {
    if (names != nullptr) {
      ::setenv(kVisible, names, 1);
    } else {
      ::unsetenv(kVisible);
    }
  }

  Visible(const Visible&) = delete;
  Visible& operator=(const Visible&) = delete;

  ~Visible() { ::unsetenv(kVisible); }
};

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/gpu_meter");

TEST_CASE("load, memory, power and temperature are read from the driver's library") {
  const Visible all(nullptr);
  const GpuMeter meter(0, RONDO_FAKE_NVML);
  CHECK(meter.problem().empty());
  const Metrics values = meter.read();
  CHECK(values.number("gpu_percent") == 75.0);
  CHECK(values.number("gpu_memory_percent") == 25.0);
  CHECK(values.number("gpu_memory_used_gb") == 2.0);
  CHECK(values.number("gpu_power_watts") == 250.5);
  CHECK(values.number("gpu_temperature_celsius") == 61.0);
}

TEST_CASE("a GPU without sensors tells the rest, by number or by the name that the process sees") {
  for (const char* visible : {"1,0", "GPU-second"}) {
    CAPTURE(std::string(visible));
    const Visible some(visible);
    const Metrics values = GpuMeter(0, RONDO_FAKE_NVML).read();
    CHECK(values.number("gpu_percent") == 5.0);
    CHECK_FALSE(values.number("gpu_power_watts"));
    CHECK_FALSE(values.number("gpu_temperature_celsius"));
  }
}

TEST_CASE("what cannot be read says why, and reads nothing") {
  const Visible all(nullptr);
  CHECK(
      contains(GpuMeter(0, "libno-such-driver.so").problem(), "there is no libno-such-driver.so"));
  const GpuMeter third(2, RONDO_FAKE_NVML);
  CHECK(third.problem() == "the driver knows no GPU 2");
  CHECK(third.read().empty());
}

TEST_CASE("the devices of a process are those that CUDA_VISIBLE_DEVICES lists") {
  CHECK(rondo::detail::name_of_gpu(1, nullptr) == "1");
  CHECK(rondo::detail::name_of_gpu(0, "3,GPU-abc") == "3");
  CHECK(rondo::detail::name_of_gpu(1, "3, 2") == "2");
  CHECK(rondo::detail::name_of_gpu(1, "3,GPU-abc") == "GPU-abc");
  CHECK(rondo::detail::name_of_gpu(2, "3,GPU-abc") == "2");
}

TEST_SUITE_END();
