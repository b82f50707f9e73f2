#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/nn/functional.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/traced_patterns");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;
using torch::indexing::None;
using torch::indexing::Slice;

namespace {

struct Pattern {
  const char* name;
  ProbeLoss loss;
};

at::Tensor logits(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return torch::addmm(b, x, w);
}

// A function of one's own with a backward in tensor operators.
struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {grads[0] * x * x * 3};
  }
};

// A backward that runs a backward.
struct Reentrant : torch::autograd::Function<Reentrant> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x.sin();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const torch::AutoGradMode enable(true);
    const at::Tensor x = context->get_saved_variables()[0].detach().set_requires_grad(true);
    return {torch::autograd::grad({x.sin().sum()}, {x})[0] * grads[0]};
  }
};

std::vector<Pattern> view_patterns() {
  return {
      {"views and in-place on views",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         at::Tensor h = logits(x, w, b);
         h.select(1, 0).add_(1.0);
         h.slice(0, 2, 5).mul_(0.5);
         h.narrow(1, 1, 2).copy_(x.narrow(1, 0, 2));
         return h.square().mean();
       }},
      {"index with tensors, index_put_",
       [](const auto& x, const auto& label, const auto& w, const auto& b) {
         at::Tensor h = logits(x, w, b).clone();
         const at::Tensor rows = torch::arange(x.size(0));
         const at::Tensor picked = h.index({rows, label});
         h = h.index_put({rows, label}, picked * 2);
         h.index_put_({Slice(0, 2), 1}, 0.25);
         return (h.index({Slice(), None, label.slice(0, 0, 3)}).sum() + picked.sum()) * 0.1;
       }},
      {"split, chunk, unbind, stack, cat",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         const auto halves = h.chunk(2, 0);
         const auto columns = h.unbind(1);
         const auto parts = h.split({1, 2}, 1);
         return (torch::cat({halves[1], halves[0]}, 0) * torch::stack(columns, 1)).sum() +
                parts[1].pow(2).mean();
       }},
      {"einsum, expand, permute, reshape",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = torch::einsum("bi,ij->bj", {x, w}) + b.expand({x.size(0), 3});
         return h.view({2, -1, 3}).permute({2, 0, 1}).reshape({3, -1}).softmax(1).square().sum();
       }},
  };
}

std::vector<Pattern> arithmetic_patterns() {
  const std::vector<at::Tensor> outside = torch::tensor({0.25F, 3.0F, 0.5F}).unbind();
  return {
      {"numbers that lie side by side outside of the step",
       [outside](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         return (h * outside[0] + outside[2].expand({3}) - h / outside[1]).square().mean();
       }},
      {"cross entropy",
       [](const auto& x, const auto& label, const auto& w, const auto& b) {
         return F::cross_entropy(logits(x, w, b), label);
       }},
      {"statistics",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         return h.var(0).sum() + h.std(1).mean() + h.norm() + h.norm(2, 1).sum();
       }},
      {"gather, scatter_add, topk, cumsum",
       [](const auto& x, const auto& label, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         const at::Tensor picked = h.gather(1, label.unsqueeze(1));
         const at::Tensor sums = torch::zeros({3}).scatter_add(0, label, picked.squeeze(1));
         return sums.sum() + std::get<0>(h.topk(2, 1)).mean() + h.cumsum(0).mean();
       }},
      {"where, clamp, detached branch",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         const at::Tensor gate = (h.detach() > 0).to(at::kFloat);
         return torch::where(h > 0.5, h, h * 0.1).clamp(-2, 2).mul(gate).sum() +
                (h * 0.5).exp().mean();
       }},
      {"activations with two kernels",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         return (F::silu(h) + F::gelu(h) + F::elu(h) + F::hardtanh(h) + torch::relu(h)).mean();
       }},
      {"numbers of the host keep their weak type",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor loss = logits(x, w, b).mean();
         return loss * 0.5 + 1 / (loss * loss + 2.0) - 3 * loss;
       }},
      {"a number that is made weak after it was made",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor number = torch::scalar_tensor(0.1, at::kDouble);
         number.unsafeGetTensorImpl()->set_wrapped_number(true);
         return logits(x, w, b).mean().mul(number);
       }},
      {"literals and a vector of the host",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor scale = torch::tensor({0.5f, 1.5f, 2.5f});
         const at::Tensor shift = torch::tensor(std::vector<float>{1.0f, 2.0f, 3.0f});
         return ((logits(x, w, b) + shift) * scale).mean();
       }},
      {"a vector of the host that is written afterwards",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         at::Tensor shift = torch::tensor(std::vector<float>{1.0f, 2.0f, 3.0f});
         shift.add_(b.detach());
         return (logits(x, w, b) + shift).square().mean();
       }},
      {"foreach operators and clipping by tensors",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         std::vector<at::Tensor> parts = {h.select(1, 0).clone(), h.select(1, 1).clone()};
         torch::_foreach_mul_(parts, std::vector<at::Scalar>{2.0, 3.0});
         const at::Tensor norm = torch::stack({parts[0].norm(), parts[1].norm()}).norm();
         return (h * (1.0 / (norm + 1e-6)).clamp_max(1.0)).square().sum();
       }},
  };
}

std::vector<Pattern> image_patterns() {
  return {
      {"bilinear interpolate",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor image = logits(x, w, b).view({2, 1, -1, 3});
         const auto twice = F::InterpolateFuncOptions()
                                .scale_factor(std::vector<double>{2.0, 2.0})
                                .mode(torch::kBilinear)
                                .align_corners(false);
         const auto sized = F::InterpolateFuncOptions()
                                .size(std::vector<int64_t>{3, 5})
                                .mode(torch::kBilinear)
                                .align_corners(true);
         return F::interpolate(image, twice).square().mean() +
                F::interpolate(image, sized).sin().sum();
       }},
      {"adaptive pooling",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor image = logits(x, w, b).view({2, 1, -1, 3});
         return torch::adaptive_avg_pool2d(image, {3, 2}).square().mean() +
                torch::adaptive_avg_pool2d(image, {1, 1}).sum() +
                std::get<0>(torch::adaptive_max_pool2d(image, {2, 2})).sin().sum();
       }},
  };
}

std::vector<Pattern> autograd_patterns() {
  return {
      {"a function of one's own",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         return Cube::apply(logits(x, w, b)).mean();
       }},
      {"reentrant backward",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         return Reentrant::apply(logits(x, w, b)).sum();
       }},
      {"double backward",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor loss = logits(x, w, b).pow(3).mean();
         const auto grads = torch::autograd::grad({loss}, {w}, {}, true, true);
         return loss + grads[0].square().sum();
       }},
      {"a weight used three times",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         return (x.mm(w).sin() + x.mm(w * 2).cos() + (x + 1).mm(w) + b).square().mean();
       }},
      {"a parameter without gradient",
       [](const auto& x, const auto&, const auto& w, const auto&) {
         return x.mm(w).square().mean();
       }},
      {"no_grad inside",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         at::Tensor target;
         {
           const torch::NoGradGuard no_grad;
           target = h.sign() * h.abs().mean();
         }
         return F::mse_loss(h, target);
       }},
  };
}

std::vector<Pattern> random_patterns() {
  return {
      {"dropout",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         return F::dropout(logits(x, w, b), F::DropoutFuncOptions().p(0.3)).square().mean();
       }},
      {"feature dropout",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b).view({2, -1, 3});
         return torch::feature_dropout(h, 0.4, true).square().mean();
       }},
      {"random factories",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor h = logits(x, w, b);
         const at::Tensor order = torch::randperm(x.size(0));
         return (h.index_select(0, order) * torch::rand({3}) + torch::randn_like(h))
                    .square()
                    .mean() +
                torch::empty({3}).uniform_(-1, 1).mul(b).sum();
       }},
      {"fresh memory that the host filled and the step changes",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         at::Tensor filled = torch::empty({3});
         std::copy_n(std::array{0.25F, 3.0F, 0.5F}.data(), 3, filled.data_ptr<float>());
         filled.add_(b.detach());
         return (logits(x, w, b) * filled).square().mean();
       }},
      {"fresh memory that the host filled and the step overwrites in part",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         at::Tensor filled = torch::empty({3});
         std::copy_n(std::array{0.25F, 3.0F, 0.5F}.data(), 3, filled.data_ptr<float>());
         filled.slice(0, 1, 2).fill_(2.0);
         return (logits(x, w, b) * filled).square().mean();
       }},
      {"fresh memory that the host filled in part",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor filled = torch::empty({64});
         std::copy_n(std::array{0.25F, 3.0F, 0.5F, 1.0F}.data(), 4, filled.data_ptr<float>());
         return (logits(x, w, b) * filled.slice(0, 0, 3)).square().mean();
       }},
      {"fresh memory that an operator fills by and by",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         const at::Tensor order = torch::randperm(x.size(0));
         const at::Tensor inverse =
             torch::empty_like(order).scatter_(0, order, torch::arange(x.size(0)));
         return (logits(x, w, b).index_select(0, inverse) * torch::rand({3})).square().mean();
       }},
      {"random numbers that nothing uses still shift the stream",
       [](const auto& x, const auto&, const auto& w, const auto& b) {
         torch::rand({5});
         return (logits(x, w, b) * torch::rand({3})).square().mean();
       }},
  };
}

/// Descent with gradients that `clip` changes in place after the backward.
StepProbe clipped_descent(const std::function<void(const std::vector<at::Tensor>&)>& clip) {
  const at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
  const at::Tensor b = torch::randn({3}).set_requires_grad(true);
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"w", w}, {"b", b}, {"lr", lr}};
  probe.body = [=](Backend&, const Batch& batch) {
    w.mutable_grad().reset();
    b.mutable_grad().reset();
    const at::Tensor loss = logits(batch["x"], w, b).square().mean();
    loss.backward();
    clip({w, b});
    descend({w, b}, lr);
    return Outputs{{"loss", loss}};
  };
  return probe;
}

}  // namespace

TEST_CASE("clipping by norm replays bit for bit when its result is not read on the host") {
  const auto clip = [](const std::vector<at::Tensor>& parameters) {
    const torch::NoGradGuard no_grad;
    std::vector<at::Tensor> norms;
    for (const at::Tensor& parameter : parameters) {
      norms.push_back(parameter.grad().norm());
    }
    const at::Tensor norm = torch::stack(norms).norm();
    for (const at::Tensor& parameter : parameters) {
      parameter.grad().mul_((0.01 / (norm + 1e-6)).clamp_max(1.0));
    }
  };
  CHECK(traced_against_eager([&] { return clipped_descent(clip); }) == "");
}

TEST_CASE("clip_grad_norm_ of LibTorch reads its norm on the host, used or not, and is refused") {
  const auto clip = [](const std::vector<at::Tensor>& parameters) {
    torch::nn::utils::clip_grad_norm_(parameters, 0.01);
  };
  const std::string message = capture_error([&] { return clipped_descent(clip); });
  CHECK(message.find("aten::_local_scalar_dense") != std::string::npos);
}

TEST_CASE("what a step may do replays as it was written, bit for bit") {
  std::vector<Pattern> patterns;
  SUBCASE("views") {
    patterns = view_patterns();
  }
  SUBCASE("arithmetic") {
    patterns = arithmetic_patterns();
  }
  SUBCASE("images") {
    patterns = image_patterns();
  }
  SUBCASE("autograd") {
    patterns = autograd_patterns();
  }
  SUBCASE("random numbers") {
    patterns = random_patterns();
  }
  for (const Pattern& pattern : patterns) {
    CAPTURE(std::string(pattern.name));
    CHECK(traced_against_eager([&] { return descent(pattern.loss); }) == "");
  }
}

TEST_SUITE_END();
