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
    const auto* attributes =
        dict.attributes ? std::get_if<PickleDict>(&objects_[*dict.attributes]) : nullptr;
    StateDict state;
    std::unordered_set<std::string_view> names;  // views into `state`, whose items must not move
    state.items().reserve(dict.items.size() +
                          (attributes != nullptr ? attributes->items.size() : 0));
    add(dict, depth, state, names);
    if (attributes != nullptr) {
      add(*attributes, depth, state, names);
    }
    return is_module(state, dict.class_name == nullptr ? "" : *dict.class_name) ? tensors_of(state)
                                                                                : state;
  }

 private:
  static constexpr uint64_t kValueCost = 64;

  void add(const PickleDict& dict,
           int depth,
           StateDict& state,
           std::unordered_set<std::string_view>& names) {
    for (const auto& [key, item] : dict.items) {
      std::string name = name_of(objects_[key]);
      spend(name.size());
      state.items().emplace_back(std::move(name), value(item, depth + 1));
      if (!names.insert(state.items().back().first).second) {
        throw Malformed("a dictionary has two entries " + in_quotes(state.items().back().first));
      }
    }
  }

  /// True for the attributes of a torch.nn.Module, or of a module of TorchScript.
  static bool is_module(const StateDict& state, const std::string& class_name) {
    constexpr std::string_view kScript = "__torch__.";
    return class_name.compare(0, kScript.size(), kScript) == 0 ||
           (!class_name.empty() && state.find("_parameters") != nullptr &&
            state.find("_modules") != nullptr);
  }

  /// A module's tensors by dotted names. Python keeps them, and the modules in it, in dictionaries
  /// of their kinds; in TorchScript they are attributes.
  StateDict tensors_of(const StateDict& module) {
    StateDict tensors;
    const bool is_python = module.find("_modules") != nullptr;
    for (const auto& [name, value] : module.items()) {
      const bool is_holder = is_python && value.is_dict();
      if (is_holder && (name == "_parameters" || name == "_buffers" || name == "_modules")) {
        for (const auto& [inner, held] : value.as_dict().items()) {
          add_tensors(inner, held, tensors);
        }
      } else if (!is_python) {
        add_tensors(name, value, tensors);
      }
    }
    return tensors;
  }

  void add_tensors(const std::string& name, const StateValue& value, StateDict& tensors) {
    spend(kValueCost + name.size());
    if (value.is_tensor()) {
      tensors.items().emplace_back(name, value);
    } else if (value.is_dict()) {
      for (const auto& [inner, tensor] : value.as_dict().items()) {
        if (tensor.is_tensor()) {
          spend(kValueCost + name.size() + inner.size());
          tensors.items().emplace_back(name + "." + inner, tensor);
        }
      }
    }
  }

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

  StateValue value_of(const PickleGlobal& global, int) {
    if (global.kind == PickleGlobal::Other) {
      return *global.name;
    }
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
    if (const auto* global = std::get_if<PickleGlobal>(&key);
        global != nullptr && global->kind == PickleGlobal::Other) {
      return *global->name;
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
