#include "core/metric_values.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

namespace rondo {

namespace {

struct TextOf {
  std::string operator()(double value) const { return fmt::format("{}", value); }

  std::string operator()(int64_t value) const { return std::to_string(value); }

  std::string operator()(const std::string& value) const { return value; }

  std::string operator()(const at::Tensor& value) const {
    return fmt::format("tensor of {} elements", value.defined() ? value.numel() : 0);
  }
};

}  // namespace

void Metrics::set(std::string_view name, MetricValue value) {
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::string(name), std::move(value));
}

std::optional<double> Metrics::number(std::string_view name) const {
  for (const Item& item : items_) {
    if (item.first != name) {
      continue;
    }
    const MetricValue value = to_host(item.second);
    if (const double* number = std::get_if<double>(&value)) {
      return *number;
    }
    if (const int64_t* integer = std::get_if<int64_t>(&value)) {
      return static_cast<double>(*integer);
    }
  }
  return std::nullopt;
}

MetricValue to_host(const MetricValue& value) {
  const at::Tensor* tensor = std::get_if<at::Tensor>(&value);
  if (tensor == nullptr || !tensor->defined()) {
    return value;
  }
  if (tensor->dim() > 0) {
    return tensor->detach().cpu().clone();
  }
  if (at::isIntegralType(tensor->scalar_type(), /*includeBool=*/true)) {
    return tensor->item<int64_t>();
  }
  return tensor->item<double>();
}

std::string to_string(const MetricValue& value) {
  return std::visit(TextOf{}, value);
}

}  // namespace rondo
