#include "loops/failed_batch.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <exception>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/tensor_dataset.h"
#include "loops/backend_modes.h"
#include "models/builtin/gpt.h"
#include "models/builtin/mlp.h"
#include "models/forward_error.h"
#include "models/from_module.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// 100 rows as a CsvTable of 4 columns and 3 classes has them.
TensorMap rows() {
  return {{"features", at::ones({100, 4})}, {"label", at::arange(100).remainder(3)}};
}

TensorMap rows_with(const std::string& name, const at::Tensor& tensor) {
  TensorMap tensors = rows();
  tensors.set(name, tensor);
  return tensors;
}

LoaderOptions batches_of(int64_t size, bool shuffle = false) {
  LoaderOptions options;
  options.batch_size = size;
  options.shuffle = shuffle;
  return options;
}

Factory<Model> mlp() {
  Mlp::Options options;
  options.sizes = {4, 6, 3};
  options.input = "features";
  return use<Mlp>(options);
}

TrainerOptions options_of(const TempDir& dir, const char* mode, Factory<Model> model) {
  TrainerOptions options = tiny_options(dir / "run");
  options.model = std::move(model);
  options.backend.mode = mode;
  options.loop.eval_frequency = 0;
  return options;
}

std::exception_ptr failure_of(Trainer& trainer, const DataLoader& train) {
  try {
    trainer.fit(train);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

template <class SomeError>
bool is_a(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const SomeError&) {
    return true;
  } catch (...) {
    return false;
  }
}

void check_facts(const std::exception_ptr& error, const std::vector<std::string>& facts) {
  REQUIRE(error != nullptr);
  const std::string text = describe(error);
  for (const std::string& fact : facts) {
    CHECK_MESSAGE(text.find(fact) != std::string::npos, fact << " is not in: " << text);
  }
}

/// Fails in the first batch, in both modes with the same error.
void check_first_batch(const Factory<Model>& model,
                       const DataLoader& train,
                       const std::vector<std::string>& facts) {
  for (const char* mode : kModes) {
    CAPTURE(mode);
    const TempDir dir;
    Trainer trainer(options_of(dir, mode, model), quiet_log());
    const std::exception_ptr error = failure_of(trainer, train);
    check_facts(error, facts);
    CHECK(is_a<ForwardError>(error));
    CHECK_FALSE(is_a<ForwardError>(root_cause(error)));
  }
}

}  // namespace

TEST_SUITE_BEGIN("loops/failed_batch");

TEST_CASE("an input of another width names model, module, tensors and samples") {
  const DataLoader train(
      "train", from_tensors(rows_with("features", at::ones({100, 5}))), batches_of(10));
  check_first_batch(mlp(),
                    train,
                    {"Mlp",
                     "layer0 (weight [6, 4])",
                     "\"features\" Float[10, 5]",
                     "\"label\" Long[10]",
                     "samples 0 to 9 of epoch 0",
                     "loader \"train\" of TensorDataset",
                     "10x5 and 4x6"});
}

TEST_CASE("labels of another dtype are named") {
  const DataLoader train(
      "train", from_tensors(rows_with("label", at::ones({100}))), batches_of(10));
  check_first_batch(mlp(), train, {"Mlp", "\"label\" is Float[10]", "loader \"train\""});
}

TEST_CASE("a loss of a user's own that fails is named, with what it got") {
  const auto loss = [](const at::Tensor& output, const Batch& batch) {
    return at::cross_entropy_loss(output, batch["label"]);
  };
  const auto model = from_module([] { return torch::nn::Sequential(torch::nn::Linear(4, 3)); },
                                 "features",
                                 LossFunction(loss));
  const DataLoader train(
      "train", from_tensors(rows_with("label", at::ones({100}))), batches_of(10));
  check_first_batch(
      model, train, {"its loss failed on \"logits\" Float[10, 3]", "\"label\" Float[10]"});
}

TEST_CASE("a batch norm of one sample names the module and drop_last") {
  const auto model = from_module(
      [] {
        return torch::nn::Sequential(
            torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 3));
      },
      "features",
      cross_entropy("label"));
  const DataLoader train("train", from_tensors(rows()), batches_of(33));
  check_first_batch(model, train, {"1 (running_mean [8])", "drop_last", "samples 99 to 99"});
}

TEST_CASE("a label out of range is named with its value, its limit and its sample") {
  constexpr int64_t kBad = 57;
  for (const bool shuffle : {false, true}) {
    for (const char* mode : kModes) {
      CAPTURE(shuffle);
      CAPTURE(mode);
      at::Tensor label = at::arange(100).remainder(3);
      label[kBad] = 7;
      const TempDir dir;
      Trainer trainer(options_of(dir, mode, mlp()), quiet_log());
      const DataLoader train(
          "train", from_tensors(rows_with("label", label)), batches_of(10, shuffle));
      const std::exception_ptr error = failure_of(trainer, train);
      check_facts(error,
                  {"Mlp",
                   "\"label\" Long[10]",
                   "\"label\"[",
                   "] is 7",
                   "sample 57 of the data set",
                   "Target 7"});
      const int64_t first = trainer.state().timestamp.sample_in_epoch;
      check_facts(error, {"samples " + std::to_string(first) + " to "});
      const std::string text = describe(error);
      const bool has_limit = text.find("[0, 3)") != std::string::npos ||
                             text.find("expected 0 to 2") != std::string::npos;
      CHECK_MESSAGE(has_limit, text);
    }
  }
}

TEST_CASE(
    "a token beyond the vocabulary is named with its place, and the embedding with its rows") {
  Gpt::Options gpt;
  gpt.vocabulary = 11;
  gpt.context = 6;
  gpt.layers = 1;
  gpt.heads = 1;
  gpt.width = 8;
  for (const int64_t bad : {3, 57}) {
    for (const char* mode : kModes) {
      CAPTURE(bad);
      CAPTURE(mode);
      at::Tensor tokens = at::arange(600).remainder(11).reshape({100, 6});
      tokens[bad][4] = 12;
      const TempDir dir;
      Trainer trainer(options_of(dir, mode, use<Gpt>(gpt)), quiet_log());
      const DataLoader train("text",
                             from_tensors({{"tokens", tokens},
                                           {"targets", at::full({100, 6}, -100, at::kLong) + 100}}),
                             batches_of(10));
      check_facts(failure_of(trainer, train),
                  {"\"tokens\"[" + std::to_string(bad % 10) + ", 4] is 12",
                   "sample " + std::to_string(bad) + " of the data set",
                   "has 11 rows",
                   "loader \"text\""});
    }
  }
}

TEST_CASE("a batch of a validation that fails is named by its loader") {
  for (const char* mode : kModes) {
    CAPTURE(mode);
    at::Tensor label = at::arange(100).remainder(3);
    label[57] = 7;
    const TempDir dir;
    Trainer trainer(options_of(dir, mode, mlp()), quiet_log());
    const DataLoader val("val", from_tensors(rows_with("label", label)), batches_of(10));
    std::exception_ptr error;
    try {
      trainer.validate(val);
    } catch (...) {
      error = std::current_exception();
    }
    check_facts(error, {"samples 50 to 59 of loader \"val\"", "sample 57 of the data set", "is 7"});
  }
}

TEST_CASE("a target missing from the batch is an error that says what the batch has") {
  const TempDir dir;
  Trainer trainer(options_of(dir, "eager", mlp()), quiet_log());
  const DataLoader train(
      "train", from_tensors({{"features", at::ones({10, 4})}, {"labels", at::ones({10})}}));
  const std::exception_ptr error = failure_of(trainer, train);
  check_facts(error, {"\"loss\"", "features, labels"});
}

TEST_SUITE_END();
