#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/traced_refusals");

using namespace rondo;
using namespace rondo::test;

namespace {

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string error_of(const ProbeLoss& loss) {
  return capture_error([&] { return descent(loss); });
}

// The plain step, with something done in a hook before the loss.
StepProbe in_hook(const std::function<void(Backend&, const at::Tensor& x)>& hook) {
  StepProbe probe = plain_descent();
  const auto body = probe.body;
  probe.body = [=](Backend& backend, const Batch& batch) {
    backend.set_location("Meddler", "on_before_forward");
    hook(backend, batch["x"]);
    backend.set_location("", "");
    return body(backend, batch);
  };
  return probe;
}

}  // namespace

TEST_CASE("a host read that is no guard is an error that names callback, hook, operator and step") {
  std::string op;
  std::function<void(const at::Tensor&)> read;
  SUBCASE("item") {
    op = "aten::_local_scalar_dense";
    read = [](const at::Tensor& x) { x.sum().item<float>(); };
  }
  SUBCASE("a condition") {
    op = "aten::";
    read = [](const at::Tensor& x) { static_cast<void>(x.sum().is_nonzero()); };
  }
  SUBCASE("a size, given in a tensor") {
    op = "aten::masked_select";
    read = [](const at::Tensor& x) {
      at::Tensor selected = torch::empty({0});
      at::masked_select_out(selected, x, x > 0);
    };
  }
  const std::string message =
      capture_error([&] { return in_hook([&](Backend&, const at::Tensor& x) { read(x); }); });
  CHECK(has(message, "Meddler.on_before_forward"));
  CHECK(has(message, op.c_str()));
  CHECK(has(message, "train/update"));
}

TEST_CASE("a host read in a backward is an error too, though autograd wraps what it throws") {
  struct Peek : torch::autograd::Function<Peek> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
      return x * 2;
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list grads) {
      return {grads[0] * grads[0].sum().item<float>()};
    }
  };

  const std::string message =
      error_of([](const auto& x, const auto&, const auto& w, const auto& b) {
        return Peek::apply(torch::addmm(b, x, w)).square().mean();
      });
  CHECK(has(message, "aten::_local_scalar_dense"));
}

TEST_CASE("an error that the body swallows is still one") {
  CHECK(has(capture_error([] {
              return in_hook([](Backend&, const at::Tensor& x) {
                try {
                  x.sum().item<float>();
                } catch (const std::exception&) {
                }
              });
            }),
            "_local_scalar_dense"));
}

TEST_CASE("asking whether a tensor equals itself is not a host read") {
  CHECK(traced_against_eager([] {
          return in_hook([](Backend&, const at::Tensor& x) { CHECK(at::equal(x, x)); });
        }) == "");
}

TEST_CASE("least squares by the driver whose pivots are left to chance are an error") {
  const auto with_driver = [](c10::optional<c10::string_view> driver) {
    return error_of([=](const auto& x, const auto&, const auto& w, const auto& b) {
      const at::Tensor square = torch::addmm(b, x, w).t().mm(x);
      return std::get<0>(at::linalg_lstsq(square, square, c10::nullopt, driver)).square().mean();
    });
  };
  for (const auto& driver : {c10::optional<c10::string_view>(), {"gelsy"}}) {
    const std::string message = with_driver(driver);
    CHECK(has(message, "aten::linalg_lstsq"));
    CHECK(has(message, "gelsd"));
  }
  CHECK(with_driver("gelsd") == "");
}

TEST_CASE("a tensor from outside of the step is an error that names its shape and the operator") {
  const at::Tensor outside = torch::ones({3});
  const std::string message =
      error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
        return plain_loss(x, label, w, b * outside);
      });
  CHECK(has(message, "[3]"));
  CHECK(has(message, "aten::mul"));
}

TEST_CASE("memory of the host is an error") {
  std::vector<float> numbers = {1, 2, 3};
  CHECK(has(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
              return plain_loss(x, label, w, b + torch::from_blob(numbers.data(), {3}));
            }),
            "aten::add"));
}

TEST_CASE("a scalar from outside is a constant, unless it changes or is written") {
  const at::Tensor outside = torch::full({}, 2.0);
  SUBCASE("constant") {
    CHECK(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
            return plain_loss(x, label, w, b) * outside;
          }) == "");
  }
  SUBCASE("written by the step") {
    CHECK(has(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
                outside.add_(1);
                return plain_loss(x, label, w, b);
              }),
              "aten::add_"));
  }
  SUBCASE("changed between the captures") {
    int step = 0;
    CHECK(has(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
                return plain_loss(x, label, w, b) * torch::full({}, 1.0).fill_(++step);
              }),
              "aten::fill_"));
  }
}

TEST_CASE("a number of a large tensor from outside is an error that says what to do") {
  const at::Tensor number = torch::rand({1 << 19})[7];
  const auto scaled = [](const at::Tensor& by) {
    return [=](const auto& x, const auto& label, const auto& w, const auto& b) {
      return plain_loss(x, label, w, b) * by;
    };
  };
  CHECK(error_of(scaled(number)).find("clone") != std::string::npos);
  CHECK(error_of(scaled(number.clone())) == "");
}

TEST_CASE("a counter that is baked shows when the two captures are compared") {
  double counter = 0.5;
  const std::string message =
      error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
        counter += 1;
        return plain_loss(x, label, w, b) * counter;
      });
  CHECK(has(message, "1.5"));
  CHECK(has(message, "2.5"));
  CHECK(has(message, "aten::mul"));
}

TEST_CASE("a value read through a pointer shows when the two captures are compared") {
  CHECK(has(error_of([](const auto& x, const auto& label, const auto& w, const auto& b) {
              const double peek = x.template data_ptr<float>()[0];
              return plain_loss(x, label, w, b) * peek;
            }),
            "aten::mul"));
}

TEST_CASE("a vector of the host that changes shows when the two captures are compared") {
  float next = 0;
  CHECK(has(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
              next += 1;
              return plain_loss(x, label, w, b + torch::tensor(std::vector<float>{next, 0, 0}));
            }),
            "other bytes"));
}

TEST_CASE("an operator more or less in every other step shows when captures are compared") {
  bool is_odd = false;
  CHECK(has(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
              const at::Tensor loss = plain_loss(x, label, w, b);
              is_odd = !is_odd;
              return is_odd ? loss.clone() : loss;
            }),
            "aten::clone"));
}

TEST_CASE(
    "state that is made in the first step costs a third capture, but not beside a verified "
    "replay") {
  const auto make = [] { return with_momentum(plain_descent()); };
  CHECK(traced_against_eager(make, 8, 2) == "");
  CHECK(run_probe(make, *backend_of("traced", "off"), 8).replays() == 5);
}

TEST_CASE("a third capture is made by itself where memory does not hold a copy of the state") {
  const auto make = [](bool is_short) {
    StepProbe probe = with_momentum(plain_descent());
    const auto step = std::make_shared<int>(-1);
    probe.batch = [=](int next) {
      *step = next;
      return random_batch(next);
    };
    const auto had_none = std::make_shared<bool>(false);
    probe.more_state = [=, more_state = probe.more_state] {
      if (is_short && *step == 2 && !std::exchange(*had_none, true)) {
        throw std::bad_alloc();
      }
      return more_state();
    };
    return probe;
  };
  const auto run = [&](bool is_short, const char* mode) {
    return run_probe([&] { return make(is_short); }, *backend_of(mode), 8);
  };
  const ProbeRun expected = run(false, "eager");
  const ProbeRun got = run(true, "traced");
  CHECK(first_difference(expected.bytes, got.bytes) == "");
  CHECK(got.replays() == 5);
}

TEST_CASE("what lasts longer than two captures is found by the verification") {
  int step = 0;
  const ProbeLoss flag = [&](const auto& x, const auto& label, const auto& w, const auto& b) {
    return plain_loss(x, label, w, b) * (++step < 3 ? 1.0 : 2.0);
  };
  const std::string message = error_of(flag);
  CHECK(has(message, "\"w\""));
  CHECK(has(message, "aten::sub_"));
  step = 0;
  CHECK(capture_error([&] { return descent(flag); }, 8, "off") == "");
}

TEST_CASE("verification every N replays finds what changes later") {
  int step = 0;
  const ProbeLoss flag = [&](const auto& x, const auto& label, const auto& w, const auto& b) {
    return plain_loss(x, label, w, b) * (++step < 4 ? 1.0 : 2.0);
  };
  CHECK(capture_error([&] { return descent(flag); }, 8, "first") == "");
  step = 0;
  CHECK(has(capture_error([&] { return descent(flag); }, 8, "3"), "differs"));
}

TEST_CASE("sparse gradients are refused") {
  CHECK(has(error_of([](const auto&, const auto& label, const auto& w, const auto&) {
              return torch::embedding(w, label, -1, false, true).sum();
            }),
            "without plain memory"));
}

TEST_CASE("a generator of one's own is refused") {
  auto generator = at::detail::createCPUGenerator(3);
  CHECK(has(error_of([&](const auto& x, const auto& label, const auto& w, const auto& b) {
              return plain_loss(x, label, w, b + torch::zeros({3}).uniform_(0, 1, generator));
            }),
            "aten::uniform_"));
}

TEST_CASE("in-place changes of sizes and strides replay; more memory is refused") {
  CHECK(traced_against_eager([] {
          return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
            at::Tensor h = torch::addmm(b, x, w).detach().clone();
            h.transpose_(0, 1);
            h.unsqueeze_(0);
            h.squeeze_(0);
            h.t_();
            h.unsqueeze_(1);
            return plain_loss(x, label, w, b) * h.sum(1).square().mean();
          });
        }) == "");
  CHECK(has(error_of([](const auto& x, const auto& label, const auto& w, const auto& b) {
              torch::zeros({3}).resize_({30});
              return plain_loss(x, label, w, b);
            }),
            "aten::resize_"));
}

TEST_CASE("a tensor without value is refused as an output") {
  CHECK(has(capture_error([] {
              StepProbe probe;
              probe.body = [](Backend&, const Batch&) { return Outputs{{"loss", at::Tensor()}}; };
              return probe;
            }),
            "\"loss\""));
}

TEST_SUITE_END();
