#include "loops/backward_error.h"

#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/tensor_dataset.h"
#include "loops/backend_modes.h"
#include "models/from_module.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// y = x, whose backward throws.
struct Throwing : torch::autograd::Function<Throwing> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.mul(1); }

  static variable_list backward(AutogradContext*, variable_list) {
    throw std::runtime_error("no gradient today");
  }
};

/// y = x, whose gradient has another shape.
struct Misshapen : torch::autograd::Function<Misshapen> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.mul(1); }

  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0].narrow(1, 0, 1)};
  }
};

/// y = x, whose backward looks rows of its gradient up.
struct LooksUp : torch::autograd::Function<LooksUp> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& rows) {
    context->save_for_backward({rows});
    return x.mul(1);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {grads[0].index_select(0, context->get_saved_variables()[0]), at::Tensor()};
  }
};

/// A function on the stack.
__attribute__((noinline)) at::Tensor exp_and_one(const at::Tensor& x) {
  at::Tensor y = x.exp();
  y.add_(1);  // the gradient of exp needs it as it was
  return y;
}

using Middle = std::function<at::Tensor(const at::Tensor& hidden, const at::Tensor& x)>;

/// Two layers, with what is tested between them.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(Middle between) : middle(std::move(between)) {
    first = register_module("first", torch::nn::Linear(4, 6));
    second = register_module("second", torch::nn::Linear(6, 3));
  }

  at::Tensor forward(const at::Tensor& x) { return second(middle(first(x), x)); }

  Middle middle;
  torch::nn::Linear first = nullptr;
  torch::nn::Linear second = nullptr;
};

TORCH_MODULE(Net);

/// What training ends with.
std::string failure(const char* mode, const Middle& middle, const at::Tensor& x) {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.model = from_module([middle] { return Net(middle); }, "x", cross_entropy("label"));
  options.backend.mode = mode;
  options.loop.eval_frequency = 0;
  LoaderOptions batches;
  batches.batch_size = 10;
  batches.shuffle = false;
  const DataLoader train(
      "train", from_tensors({{"x", x}, {"label", at::arange(x.size(0)).remainder(3)}}), batches);
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(train);
  } catch (const std::exception&) {
    return describe(std::current_exception());
  }
  return "";
}

void check_facts(const std::string& text, const std::vector<std::string>& facts) {
  for (const std::string& fact : facts) {
    CHECK_MESSAGE(text.find(fact) != std::string::npos, fact << " is not in: " << text);
  }
}

}  // namespace

TEST_SUITE_BEGIN("loops/backward_error");

TEST_CASE("a function of a user's own that throws in its backward is named, with its module") {
  const auto middle = [](const at::Tensor& hidden, const at::Tensor&) {
    return Throwing::apply(hidden);
  };
  for (const char* mode : kModes) {
    CAPTURE(mode);
    const std::string text = failure(mode, middle, at::ones({100, 4}));
    check_facts(text,
                {".backward failed in ",
                 "Throwing, of an operator in or after module first",
                 "samples 0 to 9 of epoch 0",
                 "no gradient today"});
    CHECK(text.find("CppNode") == std::string::npos);
  }
}

TEST_CASE("a gradient of the wrong shape names the function that gave it, and its module") {
  const auto middle = [](const at::Tensor& hidden, const at::Tensor&) {
    return Misshapen::apply(hidden);
  };
  for (const char* mode : kModes) {
    CAPTURE(mode);
    check_facts(failure(mode, middle, at::ones({100, 4})),
                {".backward failed in ", "Misshapen, of an operator in or after module first"});
  }
}

TEST_CASE("a formula that fails names its node and the module, and where recorded the code") {
  const auto middle = [](const at::Tensor& hidden, const at::Tensor&) {
    return exp_and_one(hidden);
  };
  for (const char* mode : kModes) {
    CAPTURE(mode);
    const std::string text = failure(mode, middle, at::ones({100, 4}));
    check_facts(text,
                {".backward failed in ExpBackward0, of an operator in or after module first",
                 "samples 0 to 9",
                 "modified by an inplace operation"});
    const bool has_place = text.find("exp_and_one") != std::string::npos;
    CHECK_MESSAGE(has_place == (mode == std::string("traced")), text);
  }
}

TEST_CASE("a backward that fails by its data in a later step names module and samples") {
  const auto middle = [](const at::Tensor& hidden, const at::Tensor& x) {
    return LooksUp::apply(hidden, x.select(1, 0).toType(at::kLong));
  };
  at::Tensor x = at::ones({100, 4});
  x[57][0] = 11;  // of 10 rows
  for (const char* mode : kModes) {
    CAPTURE(mode);
    check_facts(failure(mode, middle, x), {"LooksUp", "first", "samples 50 to 59"});
  }
}

TEST_SUITE_END();
