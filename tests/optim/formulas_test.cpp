// Optimizers against their papers' formulas, written once more in plain loops over doubles.

#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "optim/optimizers.h"
#include "parameters.h"
#include "support/every_optimizer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kSteps = 50;
constexpr double kRounding = 1e-10;

using Values = std::vector<double>;

/// What a formula sees of one parameter. States are zero at first.
struct Plain {
  Values& p;
  const Values& g;
  double step;  // from 1 on
  std::map<std::string, Values>& states;

  Values& state(const std::string& name) {
    Values& values = states[name];
    values.resize(p.size());
    return values;
  }
};

using Formula = std::function<void(Plain)>;

Values values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  const double* const data = flat.data_ptr<double>();
  return {data, data + flat.numel()};
}

/// Runs both for some updates. \param shape  of the one parameter
void check_formula(Optimizer& optimizer,
                   const Formula& formula,
                   const std::vector<int64_t>& shape = {37},
                   const std::function<void(int)>& before_step = {}) {
  const NamedTensors params = parameters(7, at::kDouble, {shape});
  optimizer.attach(params);
  Values plain = values_of(params[0].second);
  std::map<std::string, Values> states;
  for (int step = 0; step < kSteps; ++step) {
    give_gradients(params, params, step);
    if (before_step) {
      before_step(step);
    }
    const Values grad = values_of(params[0].second.grad());
    formula({plain, grad, step + 1.0, states});
    optimizer.step();
  }
  const Values trained = values_of(params[0].second);
  for (size_t i = 0; i < plain.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(trained[i] - plain[i]) <= kRounding * std::fabs(plain[i]) + kRounding * 1e-3);
  }
}

void set(Optimizer& optimizer, const char* number, double value) {
  *optimizer.groups()[0][number].data_ptr<double>() = value;
}

}  // namespace

TEST_SUITE_BEGIN("optim/formulas");

TEST_CASE("Lion") {
  Lion lion({1e-3, {0.8, 0.95}, 0.1});
  check_formula(lion, [](Plain x) {
    Values& m = x.state("m");
    for (size_t i = 0; i < x.p.size(); ++i) {
      const double c = 0.8 * m[i] + 0.2 * x.g[i];
      x.p[i] -= 1e-3 * ((c > 0) - (c < 0) + 0.1 * x.p[i]);
      m[i] = 0.95 * m[i] + 0.05 * x.g[i];
    }
  });
}

TEST_CASE("AdaBelief, with decoupled weight decay and with a penalty") {
  for (const bool is_decoupled : {true, false}) {
    CAPTURE(is_decoupled);
    AdaBelief adabelief({1e-2, {0.8, 0.95}, 1e-6, 0.1, is_decoupled});
    check_formula(adabelief, [=](Plain x) {
      Values& m = x.state("m");
      Values& s = x.state("s");
      for (size_t i = 0; i < x.p.size(); ++i) {
        const double g = is_decoupled ? x.g[i] : x.g[i] + 0.1 * x.p[i];
        if (is_decoupled) {
          x.p[i] -= 1e-2 * 0.1 * x.p[i];
        }
        m[i] = 0.8 * m[i] + 0.2 * g;
        s[i] = 0.95 * s[i] + 0.05 * (g - m[i]) * (g - m[i]) + 1e-6;
        const double m_hat = m[i] / (1 - std::pow(0.8, x.step));
        const double s_hat = s[i] / (1 - std::pow(0.95, x.step));
        x.p[i] -= 1e-2 * m_hat / (std::sqrt(s_hat) + 1e-6);
      }
    });
  }
}

TEST_CASE("DecoupledSGDW decays by the learning rate's share of the first one") {
  for (const bool nesterov : {false, true}) {
    CAPTURE(nesterov);
    DecoupledSGDW::Options options;
    options.momentum = 0.9;
    options.dampening = nesterov ? 0.0 : 0.2;
    options.weight_decay = 0.01;
    options.nesterov = nesterov;
    DecoupledSGDW sgdw(options);
    const auto lr_at = [](int step) { return 0.1 / (1 + step); };
    const Formula formula = [&](Plain x) {
      Values& b = x.state("b");
      const double lr = lr_at(static_cast<int>(x.step) - 1);
      for (size_t i = 0; i < x.p.size(); ++i) {
        b[i] = x.step == 1 ? x.g[i] : 0.9 * b[i] + (1 - options.dampening) * x.g[i];
        const double d = nesterov ? x.g[i] + 0.9 * b[i] : b[i];
        x.p[i] = x.p[i] * (1 - lr / 0.1 * 0.01) - lr * d;
      }
    };
    check_formula(sgdw, formula, {37}, [&](int step) { set(sgdw, "lr", lr_at(step)); });
  }
}

TEST_CASE("DecoupledAdamW decays by the learning rate's share of the first one") {
  for (const bool amsgrad : {false, true}) {
    CAPTURE(amsgrad);
    DecoupledAdamW::Options options;
    options.weight_decay = 0.01;
    options.amsgrad = amsgrad;
    DecoupledAdamW adamw(options);
    const auto lr_at = [](int step) { return 1e-3 * (step + 1) / kSteps; };
    const Formula formula = [&](Plain x) {
      Values& m = x.state("m");
      Values& v = x.state("v");
      Values& most = x.state("most");
      const double lr = lr_at(static_cast<int>(x.step) - 1);
      for (size_t i = 0; i < x.p.size(); ++i) {
        m[i] = 0.9 * m[i] + 0.1 * x.g[i];
        v[i] = 0.95 * v[i] + 0.05 * x.g[i] * x.g[i];
        most[i] = std::max(most[i], v[i]);
        const double v_hat = (amsgrad ? most[i] : v[i]) / (1 - std::pow(0.95, x.step));
        x.p[i] *= 1 - lr / 1e-3 * 0.01;
        x.p[i] -= lr * m[i] / (1 - std::pow(0.9, x.step)) / (std::sqrt(v_hat) + 1e-8);
      }
    };
    check_formula(adamw, formula, {37}, [&](int step) { set(adamw, "lr", lr_at(step)); });
  }
}

TEST_CASE("a group's own learning rate is the one that its decay counts from") {
  DecoupledSGDW::Options options;
  options.weight_decay = 0.5;
  options.params = {{{"p0"}, "", {{"lr", 0.01}}}};
  DecoupledSGDW sgdw(options);
  const NamedTensors params = {{"p0", at::ones({3}).requires_grad_()},
                               {"p1", at::ones({3}).requires_grad_()}};
  sgdw.attach(params);
  for (const NamedTensor& parameter : params) {
    parameter.second.mutable_grad() = at::zeros({3});
  }
  sgdw.step();
  CHECK(at::equal(params[0].second, at::full({3}, 0.5)));
  CHECK(at::equal(params[1].second, at::full({3}, 0.5)));
}

TEST_CASE(
    "every optimizer does in float32, and in tensors of any strides, what it does in float64") {
  const std::vector<std::vector<int64_t>> shapes = {{6, 8}, {5, 3, 2, 2}, {16}};
  for (const RegisteredOptimizer& one : every_optimizer()) {
    CAPTURE(one.name);
    CAPTURE(one.keys);
    const NamedTensors doubles = parameters(3, at::kDouble, shapes);
    const NamedTensors floats = parameters(3, at::kFloat, shapes);
    NamedTensors strided = parameters(3, at::kDouble, shapes);
    for (NamedTensor& parameter : strided) {
      const at::Tensor twice =
          at::stack({parameter.second.detach(), parameter.second.detach()}, -1);
      parameter.second = twice.select(-1, 1).requires_grad_();
    }
    const auto all = {&doubles, &floats, static_cast<const NamedTensors*>(&strided)};
    std::vector<std::unique_ptr<Optimizer>> optimizers;
    for (const NamedTensors* params : all) {
      optimizers.push_back(one.factory.make());
      optimizers.back()->attach(*params);
    }
    for (int step = 0; step < 3; ++step) {
      torch::manual_seed(step);
      for (size_t i = 0; i < shapes.size(); ++i) {
        const at::Tensor grad = torch::randn(shapes[i], at::kFloat);
        for (const NamedTensors* params : all) {
          (*params)[i].second.mutable_grad() = grad.to((*params)[i].second.scalar_type());
        }
      }
      for (const auto& optimizer : optimizers) {
        optimizer->step();
      }
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      CAPTURE(i);
      CHECK(at::allclose(floats[i].second.to(at::kDouble), doubles[i].second, 1e-5, 1e-6));
      CHECK(at::allclose(strided[i].second, doubles[i].second, 1e-12, 1e-13));
    }
  }
}

TEST_SUITE_END();
