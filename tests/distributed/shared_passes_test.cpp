#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/listeners.h"
#include "data/dataset.h"
#include "forked_ranks.h"
#include "loops/predict.h"
#include "metrics/accuracy.h"
#include "models/from_module.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace nn = torch::nn;

namespace {

/// Numbered samples; notes which of them were read.
class NotedRows final : public Dataset {
 public:
  struct Options {
    int64_t size = 0;
    std::vector<int64_t>* read = nullptr;
  };

  explicit NotedRows(const Options& options) : options_(options) {}

  int64_t size() const override { return options_.size; }

  Sample get(int64_t index) const override {
    if (options_.read != nullptr) {
      const std::lock_guard lock(mutex_);
      options_.read->push_back(index);
    }
    Sample sample;
    sample.set("x", at::arange(4 * index, 4 * index + 4, at::kFloat).div(100).sin());
    sample.set("label", at::full({}, index % 3, at::kLong));
    return sample;
  }

 private:
  Options options_;
  mutable std::mutex mutex_;
};

DataLoader rows(int64_t size, int64_t batch_size, std::vector<int64_t>* read = nullptr) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.prefetch = 0;
  return DataLoader("rows", use<NotedRows>({size, read}), options);
}

/// A model whose evaluation draws random numbers.
Factory<Model> noisy_model() {
  return from_module(
      [] {
        return nn::Sequential(
            nn::Functional([](const at::Tensor& x) { return x + at::rand_like(x); }),
            nn::Linear(4, 3));
      },
      "x",
      cross_entropy("label"));
}

TrainerOptions shared_options(const std::filesystem::path& dir,
                              const std::shared_ptr<Communicator>& communicator,
                              int64_t virtual_ranks) {
  TrainerOptions options = tiny_options(dir);
  options.model = noisy_model();
  options.metrics = {use<Accuracy>()};
  options.communicator = communicator;
  options.distributed.emplace();
  options.distributed->virtual_ranks = virtual_ranks;
  return options;
}

StateDict numbers_of(const Metrics& metrics) {
  StateDict values;
  for (const Metrics::Item& item : metrics.items()) {
    values.set(item.first, *metrics.number(item.first));
  }
  return values;
}

/// Largest value; processes cannot add it.
class LargestLoss final : public Metric {
 public:
  std::string name() const override { return "largest_loss"; }

  void update(const Outputs& outputs, const Batch&) override {
    largest_.copy_(at::maximum(largest_, outputs["loss"].detach()));
  }

  double compute() const override { return largest_.item<double>(); }

  std::vector<NamedTensor> state() override { return {{"largest", largest_}}; }

  void reset() override { largest_.zero_(); }

  void to(c10::Device device) override { largest_ = largest_.to(device); }

 private:
  at::Tensor largest_ = at::full({}, 0.0, at::kFloat);
};

class NeedsAll final : public Callback, public HearsWholePasses {};

}  // namespace

TEST_SUITE_BEGIN("distributed/shared_passes");

TEST_CASE("C83: processes share a validation, whose metrics have the bits of one process") {
  for (const int64_t samples : {1, 7, 16, 21}) {
    CAPTURE(samples);
    const auto validate = [&](const auto& communicator) {
      const TempDir dir;
      Trainer trainer(shared_options(dir.path(), communicator, 4), quiet_log());
      std::vector<int64_t> read;
      StateDict values = numbers_of(trainer.validate(rows(samples, 2, &read)));
      values.set("read", static_cast<int64_t>(read.size()));
      return values;
    };
    StateDict alone = on_processes(1, validate)[0];
    REQUIRE(alone.find("read") != nullptr);
    CHECK(alone.size() == 3);  // loss and accuracy too
    CHECK(alone.at("read").as_int() == samples);
    for (const int processes : {2, 4}) {
      CAPTURE(processes);
      int64_t read = 0;
      for (StateDict& values : on_processes(processes, validate)) {
        REQUIRE(values.find("read") != nullptr);
        read += values.at("read").as_int();
        values.set("read", samples);
        CHECK(first_difference(alone, values) == "");
      }
      CHECK(read == samples);
    }
  }
}

TEST_CASE("processes share the validations of a fit, and its end has the bits of one process") {
  const auto fit = [](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = shared_options(dir.path(), communicator, 4);
    options.loop.max_steps = 4;
    options.loop.eval_frequency = 2;
    Trainer trainer(options, quiet_log());
    trainer.fit(rows(24, 8), {rows(11, 2)});
    StateDict bits = bits_of(trainer);
    bits.set("loss", *trainer.state().last_metrics.number("rows/loss"));
    return bits;
  };
  const StateDict alone = on_processes(1, fit)[0];
  REQUIRE(alone.find("model") != nullptr);
  for (const int processes : {2, 4}) {
    for (const StateDict& bits : on_processes(processes, fit)) {
      CHECK(first_difference(alone, bits) == "");
    }
  }
}

TEST_CASE("a validation of the first batches is shared too") {
  const auto validate = [](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = shared_options(dir.path(), communicator, 2);
    options.loop.eval_steps = 3;
    Trainer trainer(options, quiet_log());
    std::vector<int64_t> read;
    trainer.validate(rows(20, 2, &read));
    return StateDict{{"read", static_cast<int64_t>(read.size())}};
  };
  const std::vector<StateDict> ends = on_processes(2, validate);
  CHECK(ends[0].at("read").as_int() == 4);
  CHECK(ends[1].at("read").as_int() == 2);
}

TEST_CASE("where a metric is no sum, or a callback needs all batches, each process has them all") {
  for (const bool is_metric : {true, false}) {
    CAPTURE(is_metric);
    const auto validate = [&](const auto& communicator) {
      const TempDir dir;
      TrainerOptions options = shared_options(dir.path(), communicator, 2);
      if (is_metric) {
        options.metrics.push_back(use<LargestLoss>());
      } else {
        options.callbacks.push_back(use<NeedsAll>());
      }
      Trainer trainer(options, quiet_log());
      std::vector<int64_t> read;
      trainer.validate(rows(7, 2, &read));
      return StateDict{{"read", static_cast<int64_t>(read.size())}};
    };
    for (const StateDict& end : on_processes(2, validate)) {
      REQUIRE(end.find("read") != nullptr);
      CHECK(end.at("read").as_int() == 7);
    }
  }
}

TEST_CASE("a validation that one process stops has no result in any") {
  const auto validate = [](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = shared_options(dir.path(), communicator, 2);
    ProbeCallback::Options probe;
    probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
      if (communicator->rank() == 1) {
        trainer.request_stop("asked by the test");
      }
    };
    options.callbacks.push_back(use<ProbeCallback>(probe));
    Trainer trainer(options, quiet_log());
    const bool is_empty = trainer.validate(rows(12, 2)).items().empty();
    return StateDict{{"is_empty", is_empty}, {"stopped", trainer.stop_reason() != nullptr}};
  };
  for (const StateDict& end : on_processes(2, validate)) {
    REQUIRE(end.find("is_empty") != nullptr);
    CHECK(end.at("is_empty").as_bool());
    CHECK(end.at("stopped").as_bool());
  }
}

TEST_CASE("P20: predictions of all processes are gathered in order, and one process writes them") {
  for (const int64_t samples : {1, 7, 20}) {
    CAPTURE(samples);
    const auto predicted = [&](const auto& communicator) {
      const TempDir dir;
      Trainer trainer(shared_options(dir / "run", communicator, 4), quiet_log());
      const DataLoader data = rows(samples, 2);
      StateDict found{{"logits", trainer.predict(data, LoadFrom::nothing())["logits"]}};
      PredictOptions pieces;
      pieces.return_outputs = false;
      bool is_in_order = true;
      int64_t batches = 0;
      pieces.write = [&](const Outputs& outputs, int64_t batch_idx) {
        is_in_order = is_in_order && batch_idx == batches++ &&
                      outputs["logits"].size(0) == std::min<int64_t>(2, samples - 2 * batch_idx);
      };
      predict(trainer, data, pieces, LoadFrom::nothing());
      is_in_order = is_in_order && batches == (samples + 1) / 2;
      found.set("is_in_order", is_in_order);
      found.set("writes", std::filesystem::exists(trainer.state().artifact_dir / "predictions.pt"));
      return found;
    };
    const StateDict alone = on_processes(1, predicted)[0];
    REQUIRE(alone.find("logits") != nullptr);
    for (const int processes : {2, 4}) {
      CAPTURE(processes);
      const std::vector<StateDict> ends = on_processes(processes, predicted);
      for (size_t rank = 0; rank < ends.size(); ++rank) {
        REQUIRE(ends[rank].find("logits") != nullptr);
        CHECK(equal_bytes(alone.at("logits").as_tensor(), ends[rank].at("logits").as_tensor()));
        CHECK(ends[rank].at("is_in_order").as_bool());
        CHECK(ends[rank].at("writes").as_bool() == (rank == 0));
      }
    }
  }
}

TEST_CASE("a process reads its own samples of each training batch, and no others") {
  const auto fit = [](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = shared_options(dir.path(), communicator, 4);
    options.loop.num_epochs = 1;
    options.loop.max_steps.reset();
    Trainer trainer(options, quiet_log());
    std::vector<int64_t> read;
    trainer.fit(rows(20, 8, &read));
    StateDict bits = bits_of(trainer);
    bits.set("read", at::tensor(read));
    return bits;
  };
  const StateDict alone = on_processes(1, fit)[0];
  const std::vector<StateDict> ends = on_processes(2, fit);
  const std::vector<std::vector<int64_t>> expected = {{0, 1, 2, 3, 8, 9, 10, 11, 16, 17},
                                                      {4, 5, 6, 7, 12, 13, 14, 15, 18, 19}};
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    REQUIRE(ends[rank].find("read") != nullptr);
    CHECK(equal_bytes(ends[rank].at("read").as_tensor(), at::tensor(expected[rank])));
    CHECK(equal_bytes(alone.at("model/1.weight").as_tensor(),
                      ends[rank].at("model/1.weight").as_tensor()));
  }
}

TEST_CASE("batch_size = per_rank counts the samples of one virtual rank") {
  const auto fit = [](const auto& communicator, const std::string& counts, int64_t batch_size) {
    const TempDir dir;
    TrainerOptions options = shared_options(dir.path(), communicator, 4);
    options.distributed->batch_size = counts;
    options.loop.max_steps = 4;
    Trainer trainer(options, quiet_log());
    trainer.fit(rows(40, batch_size));
    return bits_of(trainer);
  };
  const StateDict global =
      on_processes(1, [&](const auto& communicator) { return fit(communicator, "global", 8); })[0];
  REQUIRE(global.find("model") != nullptr);
  for (const int processes : {1, 2}) {
    for (const StateDict& bits : on_processes(processes, [&](const auto& communicator) {
           return fit(communicator, "per_rank", 2);
         })) {
      CHECK(first_difference(global, bits) == "");
    }
  }
}

TEST_SUITE_END();
