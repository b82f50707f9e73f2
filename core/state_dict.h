#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rondo {

class StateValue;

using StateList = std::vector<StateValue>;

/// The content of a checkpoint: names in insertion order, each with a value. In `find` and `at` a
/// path with "/" walks into nested dictionaries; names may contain dots.
class StateDict {
 public:
  using Item = std::pair<std::string, StateValue>;

  StateDict() = default;
  StateDict(std::initializer_list<Item> items);

  /// The value at `path`, or null. A name that contains "/" itself takes precedence.
  const StateValue* find(std::string_view path) const;
  StateValue* find(std::string_view path);

  /// \throws CheckpointError  when there is no such path, naming those that exist
  const StateValue& at(std::string_view path) const;

  /// Replaces or adds the value under this name (a name, not a path).
  void set(std::string_view name, StateValue value);

  /// \return true when there was such a name
  bool erase(std::string_view name);

  bool contains(std::string_view path) const { return find(path) != nullptr; }

  bool empty() const;
  size_t size() const;

  const std::vector<Item>& items() const& { return items_; }

  std::vector<Item>& items() & { return items_; }

  /// Of a temporary: by value, so that iterating is safe.
  std::vector<Item> items() &&;

  std::vector<std::string> names() const;

 private:
  std::vector<Item> items_;
};

/// None, a boolean, an integer, a float, a string, a tensor, a list or a dictionary. Floats come
/// back from a file as 0-dim float64 tensors, which `as_double` accepts too.
class StateValue {
 public:
  using Variant = std::
      variant<std::monostate, bool, int64_t, double, std::string, at::Tensor, StateList, StateDict>;

  StateValue() = default;

  StateValue(bool value) : value_(value) {}  // NOLINT

  StateValue(int value) : value_(static_cast<int64_t>(value)) {}  // NOLINT

  StateValue(int64_t value) : value_(value) {}  // NOLINT

  StateValue(double value) : value_(value) {}  // NOLINT

  StateValue(const char* value) : value_(std::string(value)) {}  // NOLINT

  StateValue(std::string value) : value_(std::move(value)) {}  // NOLINT

  StateValue(at::Tensor value) : value_(std::move(value)) {}  // NOLINT

  StateValue(StateList value) : value_(std::move(value)) {}  // NOLINT

  StateValue(StateDict value) : value_(std::move(value)) {}  // NOLINT

  const Variant& variant() const { return value_; }

  /// Each throws CheckpointError, naming the actual kind, when the value is of another kind.
  bool as_bool() const;
  int64_t as_int() const;  ///< also a 0-dim integer tensor
  double as_double() const;
  const std::string& as_string() const;
  const at::Tensor& as_tensor() const;
  const StateList& as_list() const;
  const StateDict& as_dict() const;
  StateDict& as_dict();

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }

  bool is_tensor() const { return std::holds_alternative<at::Tensor>(value_); }

  bool is_dict() const { return std::holds_alternative<StateDict>(value_); }

  /// "a tensor float32[3, 4]", "an integer" … for messages.
  std::string kind() const;

 private:
  Variant value_;
};

inline std::vector<StateDict::Item> StateDict::items() && {
  return std::move(items_);
}

/// Path of the first entry in which two states differ, comparing bytes (NaN and -0.0 included); ""
/// when they are equal.
std::string first_difference(const StateDict& a, const StateDict& b);

/// A copy whose tensors have their own memory.
StateDict deep_copy(const StateDict& state);

/// Same dtype, shape, device type and bytes.
bool equal_bytes(const at::Tensor& a, const at::Tensor& b);

}  // namespace rondo
