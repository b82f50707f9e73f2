// The C API of exported steps.

#include "rondo_step.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "trainer/exports.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("trainer/rondo_step");

using namespace rondo;
using namespace rondo::test;

namespace {

bool says(const std::string& fact) {
  return std::string(rondo_step_error()).find(fact) != std::string::npos;
}

}  // namespace

TEST_CASE("the signature says what the step takes and gives") {
  const TempDir dir;
  rondo_step* step = rondo_step_open(export_to(dir, options_for(dir)).c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  CHECK(rondo_step_inputs(step) == 2);
  rondo_tensor tensor{};
  REQUIRE(rondo_step_input(step, 0, &tensor));
  CHECK(std::string(tensor.name) == "x");
  CHECK(tensor.dtype == RONDO_FLOAT32);
  CHECK((tensor.dims == 2 && tensor.sizes[0] == 2 && tensor.sizes[1] == 4));
  CHECK(tensor.bytes == 32);
  CHECK_FALSE(rondo_step_input(step, 2, &tensor));
  REQUIRE(rondo_step_find(step, "loss", &tensor));
  CHECK((tensor.dims == 0 && tensor.bytes == 4));
  REQUIRE(rondo_step_find(step, "model.0.weight", &tensor));
  CHECK((tensor.sizes[0] == 8 && tensor.sizes[1] == 4));
  CHECK(std::string(rondo_step_manifest(step)).find("threads 1") != std::string::npos);
  rondo_step_close(step);
  rondo_step_close(nullptr);
}

TEST_CASE("mistakes are told, and change nothing") {
  const TempDir dir;
  rondo_step* step = rondo_step_open(export_to(dir, options_for(dir)).c_str());
  REQUIRE(step != nullptr);
  float x[8] = {};
  CHECK_FALSE(rondo_step_run(step));
  CHECK(says("\"x\""));
  CHECK_FALSE(rondo_step_bind(step, "y", x, sizeof x));
  CHECK(says("\"y\""));
  CHECK_FALSE(rondo_step_bind(step, "x", x, 12));
  CHECK((says("32") && says("12")));
  CHECK_FALSE(rondo_step_read(step, "model.7", x, sizeof x));
  CHECK(says("model.7"));
  CHECK_FALSE(rondo_step_read(step, "loss", x, sizeof x));
  CHECK_FALSE(rondo_step_run(nullptr));
  CHECK_FALSE(rondo_step_save(step, "/nowhere/at/all.step"));
  CHECK(says("/nowhere/at/all.step"));
  CHECK(rondo_step_bind(step, "x", x, sizeof x));
  CHECK(std::string(rondo_step_error()).empty());
  rondo_step_close(step);
}

TEST_CASE("a file that is broken, cut short, or something else does not open") {
  const TempDir dir;
  const std::string bytes = real_file_system()->read(export_to(dir, options_for(dir)));
  const std::string path = (dir / "broken.step").string();
  const auto opens = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    rondo_step* step = rondo_step_open(path.c_str());
    rondo_step_close(step);
    return step != nullptr;
  };
  CHECK(opens(bytes));
  for (int i = 0; i < 60; ++i) {
    std::string flipped = bytes;
    flipped[bytes.size() * static_cast<size_t>(i) / 60] ^= 0x10;
    CHECK_MESSAGE(!opens(flipped), i);
    CHECK(!std::string(rondo_step_error()).empty());
    CHECK_FALSE(opens(bytes.substr(0, bytes.size() * static_cast<size_t>(i) / 60)));
  }
  CHECK(rondo_step_open((dir / "none.step").c_str()) == nullptr);
  const std::string other = (dir / "other.pt").string();
  write_checkpoint(*real_file_system(), other, StateDict{{"model", StateDict{}}});
  CHECK(rondo_step_open(other.c_str()) == nullptr);
  CHECK(says("not a step"));
}

TEST_CASE("a batch with another answer than was exported is an error that changes nothing") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  ProbeCallback::Options hooks;
  hooks.before_forward = [](Batch& input) { CHECK_FALSE((input["x"] > 100).any().item<bool>()); };
  options.callbacks = {use<ProbeCallback>(hooks)};
  rondo_step* step = rondo_step_open(export_to(dir, options).c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  float x[8] = {};
  const int64_t label[2] = {};
  REQUIRE(rondo_step_bind(step, "x", x, sizeof x));
  REQUIRE(rondo_step_bind(step, "label", label, sizeof label));
  const auto weight = [&] {
    std::vector<float> numbers(32);
    REQUIRE(rondo_step_read(step, "model.0.weight", numbers.data(), 32 * sizeof(float)));
    return numbers;
  };
  REQUIRE(rondo_step_run(step) == 1);
  const std::vector<float> before = weight();
  x[3] = 1000.0F;
  CHECK(rondo_step_run(step) == RONDO_STEP_GUARD);
  CHECK(says("aten::_local_scalar_dense in ProbeCallback.on_before_forward"));
  CHECK((says("false") && says("true")));
  CHECK(weight() == before);
  x[3] = 1.0F;
  CHECK(rondo_step_run(step) == 1);
  CHECK(weight() != before);
  rondo_step_close(step);
}

TEST_CASE("a step that a file cannot hold is refused with the read that stands in the way") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  ProbeCallback::Options hooks;
  SUBCASE("a flag after the update") {
    hooks.after_optimizer_step = [](Trainer& trainer, Optimizer&) {
      const at::Tensor weight = trainer.state().model->module().parameters()[0];
      CHECK(weight.isfinite().all().item<bool>());
    };
    options.callbacks = {use<ProbeCallback>(hooks)};
    CHECK_THROWS_WITH_AS(export_to(dir, options),
                         doctest::Contains("ProbeCallback.on_after_optimizer_step"),
                         NotSupportedError);
  }
  SUBCASE("a number") {
    hooks.before_forward = [](Batch& input) { CHECK(input["x"].sum().item<float>() < 1e9F); };
    options.callbacks = {use<ProbeCallback>(hooks)};
    CHECK_THROWS_WITH_AS(export_to(dir, options),
                         doctest::Contains("ProbeCallback.on_before_forward"),
                         CaptureError);
  }
}

TEST_SUITE_END();
