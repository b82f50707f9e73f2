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

/// What a checkpoint holds: names in the order in which they were set, each with a value.
/// A path with "/" walks into nested dictionaries in `find` and `at`; names themselves may hold
/// dots.
class StateDict {
 public:
  using Item = std::pair<std::string, StateValue>;

  StateDict() = default;
  StateDict(std::initializer_list<Item> items);

  /// The value at `path`, or null. A name that itself holds "/" is found whole first.
  const StateValue* find(std::string_view path) const;
  StateValue* find(std::string_view path);

  /// \throws CheckpointError  when there is no such path; names what there is
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

  /// Of a temporary: a list of its own, to be iterated safely.
  std::vector<Item> items() &&;

  std::vector<std::string> names() const;

 private:
  std::vector<Item> items_;
};

/// None, a truth value, an integer, a float, a text, a tensor, a list or a dictionary. Floats come
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

  /// Each throws CheckpointError, naming the kind that was found, when the value is another one.
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

/// Path of the first entry in which two states differ, bytes compared (NaN and -0.0 included);
/// "" when they are equal.
std::string first_difference(const StateDict& a, const StateDict& b);

/// The same dictionaries with tensors of their own memory.
StateDict deep_copy(const StateDict& state);

/// Same dtype, shape, device type and bytes.
bool equal_bytes(const at::Tensor& a, const at::Tensor& b);

}  // namespace rondo
