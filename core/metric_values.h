#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rondo {

/// A number, a text or a tensor to be logged.
using MetricValue = std::variant<double, int64_t, std::string, at::Tensor>;

/// Named values in the order in which they were logged.
class Metrics {
 public:
  using Item = std::pair<std::string, MetricValue>;

  Metrics() = default;

  Metrics(std::initializer_list<Item> items)
      : items_(items) {}  // NOLINT(google-explicit-constructor)

  /// Replaces or adds.
  void set(std::string_view name, MetricValue value);

  /// The value as a number; nothing when it is absent or not a number.
  std::optional<double> number(std::string_view name) const;

  const std::vector<Item>& items() const& { return items_; }

  std::vector<Item>& items() & { return items_; }

  /// Of a temporary, such as what `validate` returns: a list of its own, to be iterated safely.
  std::vector<Item> items() && { return std::move(items_); }

  bool empty() const { return items_.empty(); }

 private:
  std::vector<Item> items_;
};

/// The value on the host: a tensor with one element of any number type and no dimension becomes a
/// number, other tensors are copied to the CPU.  \capture host only
MetricValue to_host(const MetricValue& value);

/// As text, with the digits that tell it from its neighbours.
std::string to_string(const MetricValue& value);

}  // namespace rondo
