// Optimizers against their papers' formulas, written once more in plain loops over doubles.

#include <ATen/ops/allclose.h>
#include <ATen/ops/svd.h>
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

double norm_of(const Values& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value * value;
  }
  return std::sqrt(sum);
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

TEST_CASE("LAMB") {
  LAMB lamb({1e-2, {0.8, 0.95}, 1e-6, 0.1});
  check_formula(lamb, [](Plain x) {
    Values& m = x.state("m");
    Values& v = x.state("v");
    Values u(x.p.size());
    for (size_t i = 0; i < x.p.size(); ++i) {
      m[i] = 0.8 * m[i] + 0.2 * x.g[i];
      v[i] = 0.95 * v[i] + 0.05 * x.g[i] * x.g[i];
      const double m_hat = m[i] / (1 - std::pow(0.8, x.step));
      const double v_hat = v[i] / (1 - std::pow(0.95, x.step));
      u[i] = m_hat / (std::sqrt(v_hat) + 1e-6) + 0.1 * x.p[i];
    }
    const double trust = norm_of(x.p) / norm_of(u);
    for (size_t i = 0; i < x.p.size(); ++i) {
      x.p[i] -= 1e-2 * trust * u[i];
    }
  });
}

TEST_CASE("LARS") {
  LARS lars({0.1, 0.9, 0.05, 0.01, 1e-8});
  check_formula(lars, [](Plain x) {
    Values& v = x.state("v");
    const double size = norm_of(x.p);
    const double rate = 0.1 * 0.01 * size / (norm_of(x.g) + 0.05 * size + 1e-8);
    for (size_t i = 0; i < x.p.size(); ++i) {
      v[i] = 0.9 * v[i] + rate * (x.g[i] + 0.05 * x.p[i]);
      x.p[i] -= v[i];
    }
  });
}

TEST_CASE("steps in proportion to a parameter move one that is zero") {
  for (const char* name : {"LAMB", "LARS"}) {
    CAPTURE(name);
    const NamedTensors params = {{"p", at::zeros({3}).requires_grad_()}};
    for (const RegisteredOptimizer& one : every_optimizer()) {
      if (one.name == name) {
        const auto optimizer = one.factory.make();
        optimizer->attach(params);
        params[0].second.mutable_grad() = at::ones({3});
        optimizer->step();
      }
    }
    CHECK(params[0].second.lt(0).all().item<bool>());
  }
}

/// What Adafactor does once it has the mean of squares.
void adafactor_step(Plain& x, const Values& mean, double size) {
  Values u(x.p.size());
  for (size_t i = 0; i < u.size(); ++i) {
    u[i] = x.g[i] / std::sqrt(std::max(mean[i], 1e-24));
  }
  const double root = std::sqrt(static_cast<double>(u.size()));
  const double excess = std::max(1.0, norm_of(u) / root / 0.9);
  for (size_t i = 0; i < u.size(); ++i) {
    x.p[i] -= size / excess * u[i];
  }
}

double adafactor_size(const Plain& x) {
  const double root = std::sqrt(static_cast<double>(x.p.size()));
  return std::max(1e-3, norm_of(x.p) / root) * std::min(0.05, 1 / std::sqrt(x.step));
}

TEST_CASE("Adafactor, of a vector and of a matrix by rows and columns") {
  const Adafactor::Options options = {0.05, -0.7, {1e-12, 1e-3}, 0.9, 0.1};
  Adafactor of_vector(options);
  check_formula(of_vector, [](Plain x) {
    Values& mean = x.state("mean");
    const double size = adafactor_size(x);
    const double share = std::pow(x.step, -0.7);
    for (size_t i = 0; i < x.p.size(); ++i) {
      x.p[i] *= 1 - 0.05 * 0.1;
      mean[i] += share * (x.g[i] * x.g[i] - mean[i]);
    }
    adafactor_step(x, mean, size);
  });
  constexpr size_t kRows = 4;
  constexpr size_t kColumns = 6;
  Adafactor of_matrix(options);
  check_formula(of_matrix,
                [](Plain x) {
                  Values& rows = x.state("rows");
                  Values& columns = x.state("columns");
                  const double size = adafactor_size(x);
                  const double share = std::pow(x.step, -0.7);
                  Values row_mean(kRows);
                  Values column_mean(kColumns);
                  for (size_t i = 0; i < x.p.size(); ++i) {
                    x.p[i] *= 1 - 0.05 * 0.1;
                    row_mean[i / kColumns] += x.g[i] * x.g[i] / kColumns;
                    column_mean[i % kColumns] += x.g[i] * x.g[i] / kRows;
                  }
                  double mean_of_rows = 0;
                  for (size_t r = 0; r < kRows; ++r) {
                    rows[r] += share * (row_mean[r] - rows[r]);
                    mean_of_rows += rows[r] / kRows;
                  }
                  for (size_t c = 0; c < kColumns; ++c) {
                    columns[c] += share * (column_mean[c] - columns[c]);
                  }
                  Values mean(x.p.size());
                  for (size_t i = 0; i < mean.size(); ++i) {
                    mean[i] =
                        rows[i / kColumns] * columns[i % kColumns] / std::max(mean_of_rows, 1e-12);
                  }
                  adafactor_step(x, mean, size);
                },
                {kRows, kColumns});
  CHECK(of_matrix.groups()[0].params[0].state("row_var").sizes() == at::IntArrayRef({4, 1}));
  CHECK(of_matrix.groups()[0].params[0].state("col_var").sizes() == at::IntArrayRef({1, 6}));
}

/// a b, of matrices with so many rows, sums, columns.
Values product(const Values& a, const Values& b, size_t rows, size_t sums, size_t columns) {
  Values made(rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < sums; ++k) {
      for (size_t c = 0; c < columns; ++c) {
        made[r * columns + c] += a[r * sums + k] * b[k * columns + c];
      }
    }
  }
  return made;
}

Values transposed(const Values& a, size_t rows, size_t columns) {
  Values made(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    made[i % columns * rows + i / columns] = a[i];
  }
  return made;
}

/// The iteration on a wide matrix.
Values newton_schulz(Values x, size_t rows, size_t columns) {
  const double norm = norm_of(x) + 1e-7;
  for (double& value : x) {
    value /= norm;
  }
  for (int i = 0; i < 5; ++i) {
    const Values a = product(x, transposed(x, rows, columns), rows, columns, rows);
    const Values aa = product(a, a, rows, rows, rows);
    Values b(a.size());
    for (size_t k = 0; k < a.size(); ++k) {
      b[k] = -4.7750 * a[k] + 2.0315 * aa[k];
    }
    const Values bx = product(b, x, rows, rows, columns);
    for (size_t k = 0; k < x.size(); ++k) {
      x[k] = 3.4445 * x[k] + bx[k];
    }
  }
  return x;
}

void check_muon(size_t rows, size_t columns) {
  Muon::Options options;
  options.weight_decay = 0.1;
  Muon muon(options);
  const Formula formula = [=](Plain x) {
    Values& m = x.state("m");
    Values u(x.p.size());
    for (size_t i = 0; i < u.size(); ++i) {
      m[i] = 0.95 * m[i] + 0.05 * x.g[i];
      u[i] = 0.05 * x.g[i] + 0.95 * m[i];
    }
    const bool is_tall = rows > columns;
    u = is_tall
            ? transposed(newton_schulz(transposed(u, rows, columns), columns, rows), columns, rows)
            : newton_schulz(u, rows, columns);
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    for (size_t i = 0; i < u.size(); ++i) {
      x.p[i] = x.p[i] * (1 - 0.02 * 0.1) - 0.02 * scale * u[i];
    }
  };
  check_formula(muon, formula, {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
}

TEST_CASE("Muon of wide and of tall matrices") {
  check_muon(3, 7);
  check_muon(8, 2);
}

TEST_CASE("Muon brings the singular values of a step near 1, of a convolution by its filters") {
  Muon::Options options;
  options.lr = 1.0;
  options.momentum = 0.0;
  Muon muon(options);
  const NamedTensors params = {{"w", at::zeros({4, 3, 2, 2}, at::kDouble).requires_grad_()}};
  muon.attach(params);
  params[0].second.mutable_grad() = gradient_like(params[0].second);
  muon.step();
  const at::Tensor step = params[0].second.detach().flatten(1);
  const at::Tensor values = std::get<1>(at::svd(step));
  CHECK(values.min().item<double>() > 0.3);
  CHECK(values.max().item<double>() < 1.3);
}

TEST_CASE("Muon leaves vectors, and what its globs name, to AdamW") {
  Muon::Options options;
  options.weight_decay = 0.1;
  options.adamw = {"head"};
  Muon muon(options);
  AdamW adamw({3e-4, {0.9, 0.95}, 1e-8, 0.1});
  const auto made = [] {
    NamedTensors params = parameters(2, at::kDouble, {{5}, {4, 6}, {4, 6}});
    params[1].first = "head";
    return params;
  };
  const NamedTensors ours = made();
  const NamedTensors theirs = made();
  muon.attach(ours);
  adamw.attach(theirs);
  for (int step = 0; step < 10; ++step) {
    give_gradients(ours, theirs, step);
    muon.step();
    adamw.step();
  }
  CHECK(at::allclose(ours[0].second, theirs[0].second, 1e-12, 1e-13));
  CHECK(at::allclose(ours[1].second, theirs[1].second, 1e-12, 1e-13));
  CHECK_FALSE(at::allclose(ours[2].second, theirs[2].second));
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
