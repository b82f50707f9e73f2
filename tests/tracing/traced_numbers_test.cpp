#include <doctest/doctest.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <string>

#include "support/contains.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/traced_numbers");

using namespace rondo;
using namespace rondo::test;

namespace {

// A step whose loss is scaled by what `number` reads on the host.
StepProbe scaled(const std::function<double(const at::Tensor& x)>& number) {
  return descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
    return plain_loss(x, label, w, b) * number(x);
  });
}

std::string error_of(const std::function<double(const at::Tensor& x)>& number) {
  return capture_error([=] { return scaled(number); });
}

// As torch.jit.trace writes `x.view(x.shape[0] // 2 * 2, -1)`: the shape becomes tensors, and
// numbers again.
at::Tensor reshaped_by_traced_code(const at::Tensor& x) {
  static const auto function = [] {
    auto graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(R"IR(
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %rest : int = prim::Constant[value=-1]()
  %rows : int = aten::size(%x, %zero)
  %n : Tensor = prim::NumToTensor(%rows)
  %divisor : Tensor = prim::NumToTensor(%two)
  %half : Tensor = aten::floor_divide(%n, %divisor)
  %whole : Tensor = aten::mul(%half, %divisor)
  %size : int = aten::Int(%whole)
  %shape : int[] = prim::ListConstruct(%size, %rest)
  %y : Tensor = aten::reshape(%x, %shape)
  return (%y))IR",
                        graph.get());
    return std::make_unique<torch::jit::GraphFunction>("traced", graph, nullptr);
  }();
  const torch::jit::GraphOptimizerEnabledGuard no_optimisation(false);
  torch::jit::Stack stack{x};
  function->run(stack);
  return stack.back().toTensor();
}

}  // namespace

TEST_CASE("code that torch.jit.trace wrote computes with shapes in tensors, and is replayed") {
  CHECK(traced_against_eager([] {
          return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
            return plain_loss(reshaped_by_traced_code(x), label, w, b);
          });
        }) == "");
}

TEST_CASE("a number that the host made may be read again: by any route of pure operators") {
  std::function<double(const at::Tensor&)> number;
  SUBCASE("of a shape") {
    number = [](const at::Tensor& x) { return torch::scalar_tensor(x.size(0)).item<double>(); };
  }
  SUBCASE("through an operator") {
    number = [](const at::Tensor& x) {
      return torch::full({}, x.size(1)).mul(3).sqrt().item<double>();
    };
  }
  SUBCASE("from a vector of the host") {
    number = [](const at::Tensor&) { return torch::tensor({2.0, 3.0}).sum().item<double>(); };
  }
  SUBCASE("a size that follows from such") {
    number = [](const at::Tensor& x) { return torch::arange(x.size(0)).nonzero().size(0); };
  }
  SUBCASE("by a mask that follows from such") {
    number = [](const at::Tensor& x) {
      const at::Tensor places = torch::arange(x.size(0));
      return static_cast<double>(x.index({places > 2}).size(0));
    };
  }
  SUBCASE("of a tensor whose shape alone is one of data") {
    number = [](const at::Tensor& x) { return torch::ones_like(x).sum().item<double>(); };
  }
  CHECK(traced_against_eager([&] { return scaled(number); }) == "");
}

TEST_CASE("a number that follows from data is still a host read, however it came about") {
  const std::string read = "aten::_local_scalar_dense";
  CHECK(contains(
      error_of([](const at::Tensor& x) { return (torch::full({}, 2.0) * x.sum()).item<double>(); }),
      read));
  CHECK(contains(error_of([](const at::Tensor& x) {
                   return torch::zeros({3}).copy_(x[0].slice(0, 0, 3)).sum().item<double>();
                 }),
                 read));
  CHECK(contains(error_of([](const at::Tensor& x) {
                   const at::Tensor numbers = torch::zeros({3});
                   numbers.select(0, 1).copy_(x[0][0]);
                   return numbers[2].item<double>();
                 }),
                 read));
  CHECK(contains(error_of([](const at::Tensor&) { return torch::rand({}).item<double>(); }), read));
  CHECK(contains(capture_error([] {
                   return descent(
                       [](const auto& x, const auto& label, const auto& w, const auto& b) {
                         return plain_loss(x, label, w, b) * b.detach()[0].template item<double>();
                       });
                 }),
                 read));
}

TEST_CASE("a counter that the host writes into a tensor and reads again shows as a difference") {
  double counter = 0.5;
  const std::string message = error_of([&](const at::Tensor&) {
    counter += 1;
    return torch::full({}, counter).item<double>();
  });
  CHECK(contains(message, "1.5"));
  CHECK(contains(message, "2.5"));
}

TEST_CASE(
    "a number from outside that changes between two steps is seen: the step is recorded anew") {
  const auto probe = [] {
    const auto number = std::make_shared<at::Tensor>(torch::full({}, 2.0));
    StepProbe made = descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
      const at::Tensor loss = plain_loss(x, label, w, b);
      return number->item<double>() > 2.5 ? loss : loss * *number;
    });
    made.batch = [=](int step) {
      if (step == 5) {
        number->fill_(3.0);
      }
      return random_batch(step);
    };
    return made;
  };
  CHECK(traced_against_eager(probe, 9, /*captures=*/4) == "");
}

TEST_SUITE_END();
