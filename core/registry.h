#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "core/config_value.h"
#include "core/error.h"
#include "core/factory.h"
#include "core/glob.h"
#include "core/options.h"

namespace rondo {

/// What a config can name of one family: name, doc, keys and how to build each component. The only
/// place to touch when one is added; immutable after registration.
template <class Base>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string doc;
    std::type_index type;
    std::shared_ptr<KeyList> keys;
    /// Writes the keys of default options, for docs.
    std::function<ConfigTable()> defaults;
    /// Builds a description from config keys; what is wrong goes to `faults`.
    std::function<Factory<Base>(const ConfigTable&, const SourcePosition&, FaultSink&)> read;
  };

  /// \param family  as messages call it, such as "optimizer"
  explicit Registry(std::string family) : family_(std::move(family)) {}

  /// Adds component `T`; its keys are added to the table that is returned, which lives as long as
  /// the registry. What `T::check(options)` throws as UsageError, where `T` has such a function,
  /// becomes a fault of the config at the component: options that do not go together.
  /// \throws UsageError  when the name is taken
  template <class T>
  KeyTable<typename T::Options>& add(std::string name, std::string doc);

  /// The entry of this name, whatever its case, or null.
  const Entry* find(std::string_view name) const;
  const Entry* find(std::type_index type) const;

  const std::vector<Entry>& entries() const { return entries_; }

  const std::string& family() const { return family_; }

  /// Reads `{ Name = { key = value } }` or `{ Name = true }`. An empty Factory when faulty.
  Factory<Base> read_single(const ConfigValue& value, FaultSink& faults) const;

  /// Reads the component `name` from a table of its keys. An empty Factory when faulty.
  Factory<Base> read_named(const std::string& name,
                           const SourcePosition& name_position,
                           const ConfigTable& keys,
                           FaultSink& faults) const;

  /// The inverse of `read_single`; a component that is not registered shows only its name.
  ConfigValue write(const Factory<Base>& factory) const;

 private:
  void add_class(std::string name,
                 std::string doc,
                 const detail::ComponentClass<Base>& its_class,
                 const std::shared_ptr<KeyList>& keys);

  std::string family_;
  std::vector<Entry> entries_;
};

namespace detail {

/// Runs `read` with a sink of its own, then `check` when nothing was wrong: what does not go
/// together is only told of options that are right each by itself.
void read_then_check(const SourcePosition& at,
                     FaultSink& faults,
                     const std::function<void(FaultSink&)>& read,
                     const std::function<void()>& check);

bool same_name(std::string_view a, std::string_view b);

/// True when components of this family may be given a label: when `Base::kTakesLabel`.
template <class Base, class = void>
struct TakesLabel : std::false_type {};

template <class Base>
struct TakesLabel<Base, std::enable_if_t<Base::kTakesLabel>> : std::true_type {};

/// Takes `label`, which no component has as a key of its own, out of a table of keys. "" when it is
/// absent or faulty.
std::string take_label(ConfigTable& keys, FaultSink& faults);

/// The single key of a one-component table and its keys, or null with a fault.
const ConfigEntry* single_component(const ConfigValue& value,
                                    const std::string& family,
                                    FaultSink& faults);

}  // namespace detail

template <class Base>
template <class T>
KeyTable<typename T::Options>& Registry<Base>::add(std::string name, std::string doc) {
  static_assert(std::is_same_v<FamilyOf<T>, Base>, "this component belongs to another registry");
  auto keys = std::make_shared<KeyTable<typename T::Options>>();
  add_class(std::move(name), std::move(doc), detail::class_of<T>(), keys);
  return *keys;
}

template <class Base>
void Registry<Base>::add_class(std::string name,
                               std::string doc,
                               const detail::ComponentClass<Base>& its_class,
                               const std::shared_ptr<KeyList>& keys) {
  if (find(name) != nullptr) {
    throw UsageError("there is already a " + family_ + " called \"" + name + "\"");
  }
  auto read = [keys, name, its_class](
                  const ConfigTable& table, const SourcePosition& at, FaultSink& faults) {
    const std::shared_ptr<void> options = its_class.default_options();
    const auto read_keys = [&](FaultSink& sink) { keys->read(table, at, options.get(), sink); };
    detail::read_then_check(at, faults, read_keys, [&] {
      if (its_class.check != nullptr) {
        its_class.check(options.get());
      }
    });
    return its_class.factory(name, options, to_string(at));
  };
  auto defaults = [keys, its_class] { return keys->write(its_class.default_options().get()); };
  entries_.push_back({std::move(name),
                      std::move(doc),
                      its_class.type,
                      keys,
                      std::move(defaults),
                      std::move(read)});
}

template <class Base>
const typename Registry<Base>::Entry* Registry<Base>::find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (detail::same_name(entry.name, name)) {
      return &entry;
    }
  }
  return nullptr;
}

template <class Base>
const typename Registry<Base>::Entry* Registry<Base>::find(std::type_index type) const {
  for (const Entry& entry : entries_) {
    if (entry.type == type) {
      return &entry;
    }
  }
  return nullptr;
}

template <class Base>
Factory<Base> Registry<Base>::read_single(const ConfigValue& value, FaultSink& faults) const {
  const ConfigEntry* component = detail::single_component(value, family_, faults);
  if (component == nullptr) {
    return {};
  }
  const auto* keys = component->value.template get_if<ConfigTable>();
  return read_named(
      component->key, component->key_position, keys != nullptr ? *keys : ConfigTable{}, faults);
}

template <class Base>
Factory<Base> Registry<Base>::read_named(const std::string& name,
                                         const SourcePosition& name_position,
                                         const ConfigTable& keys,
                                         FaultSink& faults) const {
  const Entry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const Entry& known : entries_) {
      names.push_back(known.name);
    }
    faults.add(name_position, "unknown " + family_ + " \"" + name + "\"" + suggestion(name, names));
    return {};
  }
  FaultSink inside = faults.inside(entry->name);
  if constexpr (detail::TakesLabel<Base>::value) {
    ConfigTable own = keys;
    const std::string label = detail::take_label(own, inside);
    return entry->read(own, name_position, inside).labelled(label);
  } else {
    return entry->read(keys, name_position, inside);
  }
}

template <class Base>
ConfigValue Registry<Base>::write(const Factory<Base>& factory) const {
  ConfigTable component;
  const Entry* entry = find(factory.type());
  if (entry != nullptr && factory.options() != nullptr) {
    ConfigTable keys = entry->keys->write(factory.options());
    if (!factory.label().empty()) {
      keys.set("label", ConfigValue(factory.label()));
    }
    component.set(entry->name, ConfigValue(std::move(keys)));
  } else {
    component.set(factory.name(), ConfigValue(true));
  }
  return ConfigValue(std::move(component));
}

/// An option that names one component of a family: `{ AdamW = { lr = 1e-3 } }`.
template <class Base>
class ComponentOption {
 public:
  explicit ComponentOption(const Registry<Base>& registry) : registry_(&registry) {}

  std::string name() const { return "a table naming one " + registry_->family(); }

  std::optional<Factory<Base>> read(const ConfigValue& value, FaultSink& faults) const {
    Factory<Base> factory = registry_->read_single(value, faults);
    return factory ? std::optional<Factory<Base>>(std::move(factory)) : std::nullopt;
  }

  ConfigValue write(const Factory<Base>& factory) const {
    return factory ? registry_->write(factory) : ConfigValue();
  }

 private:
  const Registry<Base>* registry_;  // outlives the key table: both belong to one set of registries
};

/// An option that names several components of a family, in order.
template <class Base>
class ComponentListOption {
 public:
  explicit ComponentListOption(const Registry<Base>& registry) : registry_(&registry) {}

  std::string name() const { return "a list of tables, each naming one " + registry_->family(); }

  std::optional<std::vector<Factory<Base>>> read(const ConfigValue& value,
                                                 FaultSink& faults) const {
    const auto* array = value.get_if<ConfigArray>();
    if (array == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    std::vector<Factory<Base>> factories;
    for (const ConfigValue& element : *array) {
      if (Factory<Base> factory = registry_->read_single(element, faults)) {
        factories.push_back(std::move(factory));
      }
    }
    return factories;
  }

  ConfigValue write(const std::vector<Factory<Base>>& factories) const {
    ConfigArray array;
    for (const Factory<Base>& factory : factories) {
      array.push_back(registry_->write(factory));
    }
    return ConfigValue(std::move(array));
  }

 private:
  const Registry<Base>* registry_;
};

}  // namespace rondo
