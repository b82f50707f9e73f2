#include <torch/types.h>
#include <torch/utils.h>

#include "coverage/row.h"

// Operators that compute each element by itself, reductions, comparisons and random numbers.

namespace rondo::test {

namespace {

using at::Tensor;

using OfOne = Tensor (*)(const Tensor&);
using OfTwo = Tensor (*)(const Tensor&, const Tensor&);

void add_functions(Rows& rows) {
  const std::vector<std::pair<const char*, OfOne>> any = {{"abs", at::abs},
                                                          {"atan", at::atan},
                                                          {"asinh", at::asinh},
                                                          {"ceil", at::ceil},
                                                          {"cos", at::cos},
                                                          {"cosh", at::cosh},
                                                          {"erf", at::erf},
                                                          {"erfc", at::erfc},
                                                          {"exp", at::exp},
                                                          {"exp2", at::exp2},
                                                          {"expm1", at::expm1},
                                                          {"floor", at::floor},
                                                          {"frac", at::frac},
                                                          {"neg", at::neg},
                                                          {"positive", at::positive},
                                                          {"relu", at::relu},
                                                          {"round", at::round},
                                                          {"sgn", at::sgn},
                                                          {"sigmoid", at::sigmoid},
                                                          {"sign", at::sign},
                                                          {"sin", at::sin},
                                                          {"sinc", at::sinc},
                                                          {"sinh", at::sinh},
                                                          {"square", at::square},
                                                          {"tan", at::tan},
                                                          {"tanh", at::tanh},
                                                          {"trunc", at::trunc},
                                                          {"isfinite", at::isfinite},
                                                          {"isnan", at::isnan},
                                                          {"signbit", at::signbit},
                                                          {"special_i0", at::special_i0},
                                                          {"special_erfcx", at::special_erfcx}};
  for (const auto& [name, function] : any) {
    rows.function("torch::" + std::string(name), kMatrix, function);
  }
  // On (0.1, 0.9).
  const std::vector<std::pair<const char*, OfOne>> inside = {{"acos", at::acos},
                                                             {"asin", at::asin},
                                                             {"atanh", at::atanh},
                                                             {"digamma", at::digamma},
                                                             {"erfinv", at::erfinv},
                                                             {"lgamma", at::lgamma},
                                                             {"log", at::log},
                                                             {"log10", at::log10},
                                                             {"log1p", at::log1p},
                                                             {"log2", at::log2},
                                                             {"reciprocal", at::reciprocal},
                                                             {"rsqrt", at::rsqrt},
                                                             {"sqrt", at::sqrt},
                                                             {"special_ndtri", at::special_ndtri}};
  for (const auto& [name, function] : inside) {
    rows.function("torch::" + std::string(name), kMatrix, [f = function](const Tensor& x) {
      return f(x.sigmoid() * 0.8 + 0.1);
    });
  }
  rows.function("torch::acosh", kMatrix, [](const Tensor& x) { return at::acosh(x.abs() + 1.5); });
  rows.function("torch::logit", kMatrix, [](const Tensor& x) { return at::logit(x.sigmoid()); });
  rows.function(
      "torch::polygamma", kMatrix, [](const Tensor& x) { return at::polygamma(1, x.abs() + 1); });
  rows.function("torch::nan_to_num", kMatrix, [](const Tensor& x) {
    return at::nan_to_num(x.log(), 0.5, 3.0, -3.0);
  });
  rows.function("torch::clamp", kMatrix, [](const Tensor& x) { return at::clamp(x, -0.5, 0.5); });
  rows.function("torch::pow", kMatrix, [](const Tensor& x) { return at::pow(x, 3); });
  rows.function("torch::renorm", kMatrix, [](const Tensor& x) { return at::renorm(x, 2, 0, 1); });
}

void add_of_two(Rows& rows) {
  const std::vector<std::pair<const char*, OfTwo>> functions = {
      {"atan2", at::atan2},
      {"copysign", at::copysign},
      {"dist", [](const Tensor& a, const Tensor& b) { return at::dist(a, b); }},
      {"fmax", at::fmax},
      {"fmin", at::fmin},
      {"fmod", at::fmod},
      {"hypot", at::hypot},
      {"logaddexp", at::logaddexp},
      {"logaddexp2", at::logaddexp2},
      {"maximum", at::maximum},
      {"minimum", at::minimum},
      {"mul", at::mul},
      {"div", at::div},
      {"remainder", at::remainder},
      {"xlogy", [](const Tensor& a, const Tensor& b) { return at::xlogy(a, b.abs()); }},
      {"gt", at::gt},
      {"le", at::le},
      {"eq", at::eq},
      {"isclose", [](const Tensor& a, const Tensor& b) { return at::isclose(a, b); }},
      {"logical_and", at::logical_and}};
  for (const auto& [name, function] : functions) {
    rows.function("torch::" + std::string(name), kMatrix, [f = function](const Inputs& in) {
      return f(in.x, in.y);
    });
  }
  rows.function("torch::add", kMatrix, [](const Inputs& in) { return at::add(in.x, in.y, 2); });
  rows.function("torch::sub", kMatrix, [](const Inputs& in) { return at::sub(in.x, in.y, 2); });
  rows.function("torch::rsub", kMatrix, [](const Inputs& in) { return at::rsub(in.x, in.y); });
  rows.function("torch::addcdiv", kMatrix, [](const Inputs& in) {
    return at::addcdiv(in.x, in.y, in.x.abs() + 1, 0.5);
  });
  rows.function("torch::addcmul", kMatrix, [](const Inputs& in) {
    return at::addcmul(in.x, in.y, in.x, 0.5);
  });
  rows.function("torch::lerp", kMatrix, [](const Inputs& in) { return at::lerp(in.x, in.y, 0.3); });
  rows.function(
      "torch::where", kMatrix, [](const Inputs& in) { return at::where(in.y > 0, in.x, in.y); });
  rows.function("torch::heaviside", kMatrix, [](const Inputs& in) {
    return at::heaviside(in.y, at::ones({}));
  });
  rows.function(
      "torch::bitwise_and", kMatrix, [](const Inputs& in) { return at::bitwise_and(in.index, 3); });
  rows.function("torch::floor_divide", kMatrix, [](const Inputs& in) {
    return at::floor_divide(in.index, 2);
  });
}

void add_reductions(Rows& rows) {
  rows.function("torch::sum", kMatrix, [](const Tensor& x) { return at::sum(x, 1); });
  rows.function("torch::mean", kMatrix, [](const Tensor& x) { return at::mean(x, 0); });
  rows.function("torch::prod", kMatrix, [](const Tensor& x) { return at::prod(x, 1); });
  rows.function("torch::prod, of all", kMatrix, [](const Tensor& x) { return at::prod(x + 2); });
  rows.function("torch::var", kMatrix, [](const Tensor& x) { return at::var(x, 1); });
  rows.function("torch::std", kMatrix, [](const Tensor& x) { return at::std(x, 1); });
  rows.function("torch::std_mean", kMatrix, [](const Tensor& x) {
    const auto [deviation, mean] = at::std_mean(x, 1);
    return deviation + mean;
  });
  rows.function("torch::norm", kMatrix, [](const Tensor& x) { return at::norm(x); });
  rows.function("torch::logsumexp", kMatrix, [](const Tensor& x) { return at::logsumexp(x, 1); });
  rows.function("torch::max", kMatrix, [](const Tensor& x) { return at::max(x); });
  rows.function(
      "torch::max, of rows", kMatrix, [](const Tensor& x) { return std::get<0>(at::max(x, 1)); });
  rows.function(
      "torch::min, of rows", kMatrix, [](const Tensor& x) { return std::get<0>(at::min(x, 1)); });
  rows.function("torch::amax", kMatrix, [](const Tensor& x) { return at::amax(x, 1); });
  rows.function("torch::aminmax", kMatrix, [](const Inputs& in) {  // 1.13 has no gradient of it
    const auto [least, most] = at::aminmax(in.y, 1);
    return in.x * (least + most).unsqueeze(1);
  });
  rows.function(
      "torch::median", kMatrix, [](const Tensor& x) { return std::get<0>(at::median(x, 1)); });
  rows.function("torch::nanmedian", kMatrix, [](const Tensor& x) { return at::nanmedian(x); });
  rows.function(
      "torch::mode", kMatrix, [](const Tensor& x) { return std::get<0>(at::mode(x, 1)); });
  rows.function("torch::kthvalue", kMatrix, [](const Tensor& x) {
    return std::get<0>(at::kthvalue(x, 2, 1));
  });
  rows.function("torch::quantile", kMatrix, [](const Tensor& x) {
    return at::quantile(x, 0.3, c10::optional<int64_t>(1));
  });
  rows.function("torch::nansum", kMatrix, [](const Tensor& x) { return at::nansum(x, 1); });
  rows.function("torch::argmax", kMatrix, [](const Tensor& x) { return at::argmax(x, 1); });
  rows.function("torch::any", kMatrix, [](const Tensor& x) { return at::any(x > 1, 1); });
  rows.function("torch::all", kMatrix, [](const Tensor& x) { return at::all(x > -1, 1); });
  rows.function("torch::count_nonzero", kMatrix, [](const Tensor& x) {
    return at::count_nonzero(x > 0, at::IntArrayRef({1}));
  });
}

void add_scans(Rows& rows) {
  rows.function("torch::cumsum", kMatrix, [](const Tensor& x) { return at::cumsum(x, 1); });
  rows.function("torch::cumprod", kMatrix, [](const Tensor& x) { return at::cumprod(x, 1); });
  rows.function("torch::cumprod, with a zero", kMatrix, [](const Tensor& x) {
    return at::cumprod(at::relu(x), 1);
  });
  rows.function(
      "torch::cummax", kMatrix, [](const Tensor& x) { return std::get<0>(at::cummax(x, 1)); });
  rows.function(
      "torch::cummin", kMatrix, [](const Tensor& x) { return std::get<0>(at::cummin(x, 1)); });
  rows.function(
      "torch::logcumsumexp", kMatrix, [](const Tensor& x) { return at::logcumsumexp(x, 1); });
  rows.function("torch::diff", kMatrix, [](const Tensor& x) { return at::diff(x); });
  rows.function("torch::trapezoid", kMatrix, [](const Tensor& x) { return at::trapezoid(x); });
}

void add_random(Rows& rows) {
  rows.function("torch::rand_like", kMatrix, [](const Tensor& x) { return x * at::rand_like(x); });
  rows.function("torch::randn", kMatrix, [](const Tensor& x) { return x + torch::randn({6}); });
  rows.function("torch::randint", kMatrix, [](const Tensor& x) {
    return x.index_select(0, torch::randint(8, {5}, at::kLong));
  });
  rows.function("torch::randperm", kMatrix, [](const Tensor& x) {
    return x.index_select(0, torch::randperm(8, at::kLong)) * x;
  });
  rows.function("torch::bernoulli", kMatrix, [](const Tensor& x) {
    return x * at::bernoulli(x.detach().sigmoid());
  });
  rows.function("torch::multinomial", kMatrix, [](const Tensor& x) {
    return x.gather(1, at::multinomial(x.detach().softmax(1), 2));
  });
  rows.function(
      "torch::normal", kMatrix, [](const Tensor& x) { return x + at::normal(x.detach(), 0.5); });
  rows.function(
      "torch::poisson", kMatrix, [](const Tensor& x) { return x * at::poisson(x.detach().abs()); });
  rows.function("torch::binomial", kMatrix, [](const Tensor& x) {
    return x * at::binomial(at::full_like(x, 5), x.detach().sigmoid());
  });
  rows.function("Tensor::exponential_", kMatrix, [](const Tensor& x) {
    return x * at::empty_like(x.detach()).exponential_();
  });
  rows.function("Tensor::log_normal_", kMatrix, [](const Tensor& x) {
    return x * at::empty_like(x.detach()).log_normal_();
  });
  rows.function("Tensor::cauchy_", kMatrix, [](const Tensor& x) {
    return (x * at::empty_like(x.detach()).cauchy_()).tanh();
  });
  rows.function("Tensor::geometric_", kMatrix, [](const Tensor& x) {
    return x * at::empty_like(x.detach()).geometric_(0.5);
  });
  rows.function("torch::_sample_dirichlet", kMatrix, [](const Tensor& x) {
    return x * at::_sample_dirichlet(x.detach().abs() + 1);
  });
  rows.function("torch::_standard_gamma", kMatrix, [](const Tensor& x) {
    return at::_standard_gamma(x.abs() + 1);
  });
}

}  // namespace

std::vector<Row> elementwise_operators() {
  Rows rows("operator");
  add_functions(rows);
  add_of_two(rows);
  add_reductions(rows);
  add_scans(rows);
  add_random(rows);
  return rows.take();
}

}  // namespace rondo::test
