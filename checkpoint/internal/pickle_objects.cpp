#include "checkpoint/internal/pickle_objects.h"

#include <fmt/format.h>

#include <unordered_set>

#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/pickle_format.h"

namespace rondo::detail {

namespace {

class StateBuilder {
 public:
  /// An honest value takes at least a byte of the pickle and 64 bytes of memory. What references to
  /// one object may unfold to beyond that is bounded, or a few hundred bytes could fill the memory.
  StateBuilder(const std::vector<PickleObject>& objects, size_t pickle_size)
      : objects_(objects), budget_((uint64_t{16} << 20) + kValueCost * pickle_size) {}

  StateDict dict(const PickleDict& dict, int depth) {
    StateDict state;
    std::unordered_set<std::string_view> names;  // views into `state`, whose items must not move
    state.items().reserve(dict.items.size());
    for (const auto& [key, item] : dict.items) {
      std::string name = name_of(objects_[key]);
      spend(name.size());
      state.items().emplace_back(std::move(name), value(item, depth + 1));
      if (!names.insert(state.items().back().first).second) {
        throw Malformed("a dictionary has two entries " + in_quotes(state.items().back().first));
      }
    }
    return state;
  }

 private:
  static constexpr uint64_t kValueCost = 64;

  StateValue value(ObjectId id, int depth) {
    if (depth > kDeepestState) {
      throw Malformed(fmt::format("values nested deeper than {} levels", kDeepestState));
    }
    spend(kValueCost);
    return std::visit([&](const auto& object) { return value_of(object, depth); }, objects_[id]);
  }

  StateValue value_of(std::monostate, int) { return {}; }

  StateValue value_of(bool flag, int) { return flag; }

  StateValue value_of(int64_t number, int) { return number; }

  StateValue value_of(double number, int) { return number; }

  StateValue value_of(const at::Tensor& tensor, int) { return tensor; }

  StateValue value_of(const std::string& text, int) {
    spend(text.size());
    return text;
  }

  StateValue value_of(const PickleList& list, int depth) {
    StateList values;
    for (const ObjectId item : list.items) {
      values.push_back(value(item, depth + 1));
    }
    return values;
  }

  StateValue value_of(const PickleDict& object, int depth) { return dict(object, depth); }

  StateValue value_of(const PickleGlobal&, int) {
    throw Malformed("a class or function where a value should stand");
  }

  StateValue value_of(const PickleStorage&, int) {
    throw Malformed("a storage outside a tensor; save it as a tensor");
  }

  static std::string name_of(const PickleObject& key) {
    if (const auto* text = std::get_if<std::string>(&key)) {
      return *text;
    }
    if (const auto* number = std::get_if<int64_t>(&key)) {
      return std::to_string(*number);
    }
    throw Malformed("a dictionary with a name that is neither a text nor an integer");
  }

  void spend(uint64_t bytes) {
    if (bytes > budget_) {
      throw Malformed("the same values are referred to so often that they would fill the memory");
    }
    budget_ -= bytes;
  }

  const std::vector<PickleObject>& objects_;
  uint64_t budget_;
};

}  // namespace

StateDict to_state(const std::vector<PickleObject>& objects, ObjectId root, size_t pickle_size) {
  const auto* dict = std::get_if<PickleDict>(&objects[root]);
  if (dict == nullptr) {
    throw Malformed("the file holds a single value, not a dictionary");
  }
  return StateBuilder(objects, pickle_size).dict(*dict, 0);
}

}  // namespace rondo::detail
