#include "callbacks/builtin/check_gradients.h"

#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/algorithms/algorithms.h"
#include "callbacks/builtin/log_input_summaries.h"

#include "core/error.h"
#include "core/file_system.h"
#include "models/from_module.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Squares, with a gradient that is three times too large.
struct WrongSquare : torch::autograd::Function<WrongSquare> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list grads) {
    return {grads[0] * context->get_saved_variables()[0] * 6};
  }
};

struct SquareImpl : torch::nn::Module {
  explicit SquareImpl(bool is_wrong) : is_wrong_(is_wrong) {
    linear_ = register_module("linear", torch::nn::Linear(4, 3));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = linear_(x);
    return is_wrong_ ? WrongSquare::apply(y) : y * y;
  }

  bool is_wrong_;
  torch::nn::Linear linear_ = nullptr;
};

TORCH_MODULE(Square);

TrainerOptions checked(const std::filesystem::path& run) {
  TrainerOptions options = tiny_options(run);
  options.precision.dtype = "fp64";
  options.loop.max_steps = 2;
  options.callbacks = {use<CheckGradients>()};
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/check_gradients");

TEST_CASE("right gradients pass, also with dropout, and are written down") {
  const TempDir dir;
  TrainerOptions options = checked(dir / "run");
  options.model = from_module(
      [] {
        return torch::nn::Sequential(
            torch::nn::Linear(4, 5), torch::nn::Dropout(0.5), torch::nn::Linear(5, 3));
      },
      "x",
      cross_entropy("label"));
  CHECK(Trainer(options, quiet_log()).fit(tiny_loader("train")).steps == 2);
  const std::string table = real_file_system()->read(dir / "run/logs/latest/gradients.txt");
  CHECK(table.find("0.weight[0]") != std::string::npos);
  CHECK(table.find("2.bias[") != std::string::npos);
}

TEST_CASE("a wrong backward is an error that names a parameter") {
  for (const bool is_wrong : {false, true}) {
    const TempDir dir;
    TrainerOptions options = checked(dir / "run");
    options.model =
        from_module([is_wrong] { return Square(is_wrong); }, "x", cross_entropy("label"));
    std::string what;
    try {
      Trainer(options, quiet_log()).fit(tiny_loader("train"));
    } catch (const HookError&) {
      what = describe(std::current_exception());
    }
    CHECK((what.find("linear.") != std::string::npos) == is_wrong);
  }
}

TEST_CASE("gradients are checked of what the step computes: layers changed, batches weighted") {
  const TempDir dir;
  TrainerOptions options = checked(dir / "run");
  options.model = from_module(
      [] { return torch::nn::Sequential(torch::nn::Linear(4, 300), torch::nn::Linear(300, 3)); },
      "x",
      cross_entropy("label"));
  Factorize::Options factors;
  factors.min_features = 3;
  factors.latent_features = 2;
  LabelSmoothing::Options smoothing;
  smoothing.smoothing = 0.2;
  options.algorithms = {use<Factorize>(factors), use<LabelSmoothing>(smoothing)};
  options.loop.grad_accum_steps = 2;
  std::vector<MemoryLogger::Entry> entries;
  options.loggers = {use<MemoryLogger>({&entries, nullptr})};
  options.callbacks.push_back(use<LogInputSummaries>());
  CHECK(Trainer(options, quiet_log()).fit(tiny_loader("train")).steps == 2);
  const std::string table = real_file_system()->read(dir / "run/logs/latest/gradients.txt");
  CHECK(table.find("factor_in[") != std::string::npos);
  // What the repeated passes log is dropped.
  std::map<std::pair<int64_t, std::string>, int> times;
  for (const MemoryLogger::Entry& entry : entries) {
    ++times[{entry.update, entry.name}];
  }
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& item) { return item.second <= 2; }));
}

TEST_CASE("recorded steps and other precisions are refused") {
  const TempDir dir;
  TrainerOptions options = checked(dir / "run");
  options.precision.dtype = "fp32";
  CHECK_THROWS_AS(Trainer(options, quiet_log()), HookError);
  options = checked(dir / "traced");
  options.backend.mode = "traced";
  CHECK_THROWS_AS(Trainer(options, quiet_log()), HookError);
}

TEST_SUITE_END();
