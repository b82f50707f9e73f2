#include "rondo_train.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/contains.h"
#include "support/temp_dir.h"

using namespace rondo::test;

namespace {

std::string write_run(const TempDir& dir, const std::string& ring, int updates) {
  std::ofstream(dir / "run.toml")
      << "[trainer.fit]\ntrain_dataloader = { dataset = \"SampleRing\", " << ring
      << ", batch_size = 4 }\n[trainer.init]\nmodel_dir = \"" << (dir / "run").string()
      << "\"\nmodel = { name = \"Mlp\", sizes = [2, 3], input = \"x\" }\noptimizer = { SGD = { lr "
         "= "
         "0.1 } }\nloop = { max_steps = "
      << updates << " }\nseed = 1\n";
  return (dir / "run.toml").string();
}

const int64_t kTwo = 2;

int push(rondo_trainer* trainer, int64_t value) {
  const float x[] = {static_cast<float>(value), 1.0F};
  const int64_t label = value % 3;
  const rondo_array sample[] = {{"x", RONDO_FLOAT32, 1, &kTwo, x},
                                {"label", RONDO_INT64, 0, nullptr, &label}};
  return rondo_push(trainer, sample, 2);
}

/// The logits of one sample.
std::vector<float> infer(rondo_trainer* trainer) {
  const int64_t sizes[] = {1, 2};
  const float x[] = {1, 2};
  const rondo_array batch = {"x", RONDO_FLOAT32, 2, sizes, x};
  std::vector<float> logits(3);
  size_t needed = 0;
  REQUIRE(rondo_infer(trainer, &batch, 1, "logits", logits.data(), 12, &needed) == RONDO_OK);
  CHECK(needed == 12);
  return logits;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/rondo_train");

TEST_CASE("a program pushes samples, trains in pieces, infers and saves") {
  const TempDir dir;
  rondo_trainer* trainer = nullptr;
  const std::string run = write_run(dir, "capacity = 100, draw = \"in_order\"", 6);
  REQUIRE_MESSAGE(rondo_open(run.c_str(), &trainer) == RONDO_OK, rondo_last_error());
  const std::vector<float> before = infer(trainer);
  for (int64_t i = 0; i < 8; ++i) {
    CHECK(push(trainer, i) == RONDO_OK);
  }
  CHECK(rondo_train_steps(trainer, 2) == RONDO_OK);  // with the last of what was pushed
  CHECK(rondo_updates(trainer) == 2);
  CHECK(infer(trainer) != before);
  std::thread producer([&] {
    for (int64_t i = 0; i < 16; ++i) {
      push(trainer, i);
    }
  });
  int code = RONDO_OK;
  while (code == RONDO_OK) {
    code = rondo_train_for(trainer, 0.01);
  }
  producer.join();
  CHECK(code == RONDO_DONE);
  CHECK(rondo_updates(trainer) == 6);
  CHECK(rondo_train_steps(trainer, 1) == RONDO_DONE);
  CHECK(rondo_save(trainer) == RONDO_OK);
  CHECK(std::filesystem::exists(dir / "run/checkpoint_6.pt"));
  rondo_close(trainer);
}

TEST_CASE("a run that is opened again goes on as if it had not been closed, ring included") {
  const auto logits_after = [](bool is_closed_between) {
    const TempDir dir;
    const std::string run = write_run(dir, "capacity = 16", 8);
    rondo_trainer* trainer = nullptr;
    REQUIRE(rondo_open(run.c_str(), &trainer) == RONDO_OK);
    for (int64_t i = 0; i < 20; ++i) {
      push(trainer, i);
    }
    REQUIRE(rondo_train_steps(trainer, 4) == RONDO_OK);
    REQUIRE(rondo_save(trainer) == RONDO_OK);
    if (is_closed_between) {
      rondo_close(trainer);
      REQUIRE(rondo_open(run.c_str(), &trainer) == RONDO_OK);
    }
    REQUIRE_MESSAGE(rondo_train_steps(trainer, 2) >= RONDO_OK, rondo_last_error());
    push(trainer, 20);
    REQUIRE_MESSAGE(rondo_train_steps(trainer, 2) >= RONDO_OK, rondo_last_error());
    const std::vector<float> logits = infer(trainer);
    rondo_close(trainer);
    return logits;
  };
  CHECK(logits_after(true) == logits_after(false));
}

TEST_CASE("full rings, other samples and missing ones have codes of their own") {
  const TempDir dir;
  rondo_trainer* trainer = nullptr;
  const std::string ring = "capacity = 2, when_full = \"drop\", min_samples = 2, timeout = 0.01";
  REQUIRE(rondo_open(write_run(dir, ring, 6).c_str(), &trainer) == RONDO_OK);
  CHECK(push(trainer, 0) == RONDO_OK);
  CHECK(rondo_train_steps(trainer, 1) == RONDO_ERROR);
  CHECK(contains(rondo_last_error(), "1 are there"));
  CHECK(rondo_train_steps(trainer, 1) == RONDO_BAD_USE);  // that fit is over
  CHECK(push(trainer, 1) == RONDO_OK);
  CHECK(push(trainer, 2) == RONDO_DROPPED);
  const double y = 0;
  const rondo_array other = {"y", RONDO_FLOAT64, 0, nullptr, &y};
  CHECK(rondo_push(trainer, &other, 1) == RONDO_MISMATCH);
  rondo_close(trainer);
}

TEST_CASE("wrong calls are errors with a text") {
  const TempDir dir;
  rondo_trainer* trainer = nullptr;
  CHECK(rondo_open("/nowhere/run.toml", &trainer) < RONDO_OK);
  CHECK(trainer == nullptr);
  CHECK(contains(rondo_last_error(), "/nowhere/run.toml"));
  CHECK(rondo_open(write_run(dir, "capacity = \"many\"", 1).c_str(), &trainer) == RONDO_BAD_CONFIG);
  CHECK(contains(rondo_last_error(), "capacity"));
  CHECK(rondo_open(nullptr, &trainer) == RONDO_BAD_USE);
  CHECK(rondo_push(nullptr, nullptr, 0) == RONDO_BAD_USE);
  CHECK(rondo_updates(nullptr) == -1);
  rondo_close(nullptr);
  REQUIRE(rondo_open(write_run(dir, "capacity = 4", 1).c_str(), &trainer) == RONDO_OK);
  CHECK(rondo_train_steps(trainer, -1) == RONDO_BAD_USE);
  CHECK(rondo_train_for(trainer, -1) == RONDO_BAD_USE);
  const int64_t negative = -1;
  const rondo_array bad_size = {"x", RONDO_FLOAT32, 1, &negative, &negative};
  CHECK(rondo_push(trainer, &bad_size, 1) == RONDO_BAD_USE);
  const rondo_array no_data = {"x", RONDO_FLOAT32, 0, nullptr, nullptr};
  CHECK(rondo_push(trainer, &no_data, 1) == RONDO_BAD_USE);
  const rondo_array bad_type = {"x", static_cast<rondo_dtype>(9), 0, nullptr, &negative};
  CHECK(rondo_push(trainer, &bad_type, 1) == RONDO_BAD_USE);
  const int64_t sizes[] = {1, 2};
  const float x[] = {1, 2};
  const rondo_array batch = {"x", RONDO_FLOAT32, 2, sizes, x};
  float small = 0;
  size_t needed = 0;
  CHECK(rondo_infer(trainer, &batch, 1, "logits", &small, 4, &needed) == RONDO_TOO_SMALL);
  CHECK(needed == 12);
  CHECK(rondo_infer(trainer, &batch, 1, "nothing", &small, 4, &needed) < RONDO_OK);
  rondo_close(trainer);
}

TEST_SUITE_END();
