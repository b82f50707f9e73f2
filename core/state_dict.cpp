#include "core/state_dict.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "core/error.h"

namespace rondo {

namespace {

[[noreturn]] void wrong_kind(const char* expected, const StateValue& found) {
  throw CheckpointError(fmt::format("expected {}, found {}", expected, found.kind()));
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

std::string first_difference(const StateValue& a, const StateValue& b, const std::string& path);

std::string first_difference(const StateDict& a, const StateDict& b, const std::string& path) {
  for (const StateDict::Item& item : a.items()) {
    const StateValue* other = b.find(item.first);
    const std::string here = joined(path, item.first);
    if (other == nullptr) {
      return here;
    }
    std::string inside = first_difference(item.second, *other, here);
    if (!inside.empty()) {
      return inside;
    }
  }
  for (const StateDict::Item& item : b.items()) {
    if (!a.contains(item.first)) {
      return joined(path, item.first);
    }
  }
  return "";
}

std::string first_difference(const StateList& a, const StateList& b, const std::string& path) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string here = joined(path, std::to_string(i));
    if (i >= a.size() || i >= b.size()) {
      return here;
    }
    std::string inside = first_difference(a[i], b[i], here);
    if (!inside.empty()) {
      return inside;
    }
  }
  return "";
}

std::string first_difference(const StateValue& a, const StateValue& b, const std::string& path) {
  if (a.variant().index() != b.variant().index()) {
    return path;
  }
  if (a.is_dict()) {
    return first_difference(a.as_dict(), b.as_dict(), path);
  }
  if (std::holds_alternative<StateList>(a.variant())) {
    return first_difference(a.as_list(), b.as_list(), path);
  }
  if (a.is_tensor()) {
    return equal_bytes(a.as_tensor(), b.as_tensor()) ? "" : path;
  }
  if (const double* number = std::get_if<double>(&a.variant())) {
    const double other = b.as_double();
    return std::memcmp(number, &other, sizeof other) == 0 ? "" : path;
  }
  const bool equal =
      a.is_none() || std::visit(
                         [&b](const auto& value) {
                           using T = std::decay_t<decltype(value)>;
                           if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                                         std::is_same_v<T, std::string>) {
                             return value == std::get<T>(b.variant());
                           } else {
                             return false;
                           }
                         },
                         a.variant());
  return equal ? "" : path;
}

}  // namespace

StateDict::StateDict(std::initializer_list<Item> items) : items_(items) {}

const StateValue* StateDict::find(std::string_view path) const {
  for (const Item& item : items_) {
    if (item.first == path) {
      return &item.second;
    }
  }
  for (const Item& item : items_) {
    const size_t length = item.first.size();
    if (item.second.is_dict() && path.size() > length + 1 && path[length] == '/' &&
        path.substr(0, length) == item.first) {
      if (const StateValue* inside = item.second.as_dict().find(path.substr(length + 1))) {
        return inside;
      }
    }
  }
  return nullptr;
}

StateValue* StateDict::find(std::string_view path) {
  return const_cast<StateValue*>(static_cast<const StateDict*>(this)->find(path));
}

const StateValue& StateDict::at(std::string_view path) const {
  if (const StateValue* value = find(path)) {
    return *value;
  }
  throw CheckpointError(
      fmt::format("there is no entry \"{}\"; there are: {}", path, fmt::join(names(), ", ")));
}

void StateDict::set(std::string_view name, StateValue value) {
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::string(name), std::move(value));
}

bool StateDict::erase(std::string_view name) {
  for (auto item = items_.begin(); item != items_.end(); ++item) {
    if (item->first == name) {
      items_.erase(item);
      return true;
    }
  }
  return false;
}

bool StateDict::empty() const {
  return items_.empty();
}

size_t StateDict::size() const {
  return items_.size();
}

std::vector<std::string> StateDict::names() const {
  std::vector<std::string> names;
  names.reserve(items_.size());
  for (const Item& item : items_) {
    names.push_back(item.first);
  }
  return names;
}

bool StateValue::as_bool() const {
  if (const bool* value = std::get_if<bool>(&value_)) {
    return *value;
  }
  wrong_kind("a truth value", *this);
}

int64_t StateValue::as_int() const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) {
    return *value;
  }
  if (is_tensor() && as_tensor().dim() == 0 &&
      at::isIntegralType(as_tensor().scalar_type(), false)) {
    return as_tensor().item<int64_t>();
  }
  wrong_kind("an integer", *this);
}

double StateValue::as_double() const {
  if (const double* value = std::get_if<double>(&value_)) {
    return *value;
  }
  if (const int64_t* value = std::get_if<int64_t>(&value_)) {
    return static_cast<double>(*value);
  }
  if (is_tensor() && as_tensor().dim() == 0 && at::isFloatingType(as_tensor().scalar_type())) {
    return as_tensor().item<double>();
  }
  wrong_kind("a number", *this);
}

const std::string& StateValue::as_string() const {
  if (const std::string* value = std::get_if<std::string>(&value_)) {
    return *value;
  }
  wrong_kind("a text", *this);
}

const at::Tensor& StateValue::as_tensor() const {
  if (const at::Tensor* value = std::get_if<at::Tensor>(&value_)) {
    return *value;
  }
  wrong_kind("a tensor", *this);
}

const StateList& StateValue::as_list() const {
  if (const StateList* value = std::get_if<StateList>(&value_)) {
    return *value;
  }
  wrong_kind("a list", *this);
}

const StateDict& StateValue::as_dict() const {
  if (const StateDict* value = std::get_if<StateDict>(&value_)) {
    return *value;
  }
  wrong_kind("a dictionary", *this);
}

StateDict& StateValue::as_dict() {
  return const_cast<StateDict&>(static_cast<const StateValue*>(this)->as_dict());
}

std::string StateValue::kind() const {
  if (is_tensor()) {
    const at::Tensor& tensor = as_tensor();
    return tensor.defined()
               ? fmt::format("a tensor {}[{}]",
                             c10::toString(tensor.scalar_type()),
                             fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "))
               : std::string("an undefined tensor");
  }
  constexpr const char* kKinds[] = {"nothing",
                                    "a truth value",
                                    "an integer",
                                    "a float",
                                    "a text",
                                    "a tensor",
                                    "a list",
                                    "a dictionary"};
  return kKinds[value_.index()];
}

std::string first_difference(const StateDict& a, const StateDict& b) {
  return first_difference(a, b, "");
}

namespace {

StateValue deep_copy(const StateValue& value) {
  if (value.is_dict()) {
    return rondo::deep_copy(value.as_dict());
  }
  if (value.is_tensor()) {
    const at::Tensor& tensor = value.as_tensor();
    const bool has_bytes = tensor.defined() && !tensor.is_meta();
    return has_bytes ? tensor.detach().clone() : tensor;
  }
  if (!std::holds_alternative<StateList>(value.variant())) {
    return value;
  }
  StateList copy;
  for (const StateValue& element : value.as_list()) {
    copy.push_back(deep_copy(element));
  }
  return copy;
}

}  // namespace

StateDict deep_copy(const StateDict& state) {
  StateDict copy;
  for (const StateDict::Item& item : state.items()) {
    copy.set(item.first, deep_copy(item.second));
  }
  return copy;
}

bool equal_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) {
    return false;
  }
  if (!a.defined()) {
    return true;
  }
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() ||
      a.device().type() != b.device().type()) {
    return false;
  }
  if (a.is_meta()) {
    return true;  // there are no bytes
  }
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  if (x.numel() == 0) {
    return true;
  }
  if (!x.is_cpu()) {  // compared there: a whole state would take long to get here
    return at::equal(x.view(-1).view(at::kByte), y.view(-1).view(at::kByte));
  }
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

}  // namespace rondo
