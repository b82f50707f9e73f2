#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "core/config_value.h"
#include "core/option_types.h"

namespace rondo {

/// A rule for a config value beyond its type: `at_least(1)`, `one_of({"a", "b"})`.
struct OptionCheck {
  std::string text;  ///< ">= 1": completes "expected an integer …"
  std::function<bool(const ConfigValue&)> accepts;
};

OptionCheck at_least(double least);
OptionCheck greater_than(double bound);
OptionCheck between(double least, double most);
/// At least 0 and below 1: a share that is not the whole.
OptionCheck below_one();
/// A list of at least `least_size` elements, each of which passes `element`.
OptionCheck each(size_t least_size, OptionCheck element);
OptionCheck one_of(std::vector<std::string> words);

/// One documented key of an options struct, without the struct's type.
struct OptionKey {
  std::string name;
  std::string type;   ///< "an integer"
  std::string check;  ///< "" or the text of its check
  std::string doc;
  bool is_required = false;
  std::vector<OptionKey> nested;  ///< the keys of a table, for `describe`

  /// Reads `value` into the struct, or says in `faults` why it cannot.
  std::function<void(const ConfigValue& value, void* options, FaultSink& faults)> read;
  /// The field as a config value; absent for an empty optional.
  std::function<ConfigValue(const void* options)> write;
};

/// The keys of one options struct, without its type: the source of schema checks, error messages,
/// `describe` and the reference docs.
class KeyList {
 public:
  const std::vector<OptionKey>& keys() const& { return keys_; }

  /// Of a table that ends with the expression.
  std::vector<OptionKey> keys() && { return std::move(keys_); }

  /// Reads every key of `table` into `options`; absent keys keep the struct's value. Unknown keys,
  /// wrong types, values out of range and missing required keys become faults.
  void read(const ConfigTable& table,
            const SourcePosition& at,
            void* options,
            FaultSink& faults) const;

  /// Every key with its value.
  ConfigTable write(const void* options) const;

  void add(OptionKey key) { keys_.push_back(std::move(key)); }

  /// Adds the keys of another list of the same struct.
  void add_all(const KeyList& others);

  /// Makes the last added key required.
  void mark_last_required() { keys_.back().is_required = true; }

 private:
  std::vector<OptionKey> keys_;
};

namespace detail {

/// "expected an integer >= 1, got 0".
void add_mismatch(const ConfigValue& found,
                  const std::string& type,
                  const std::string& check,
                  FaultSink& faults);

/// Bytes from the beginning of a struct to one of its fields. By them one key reads the fields of
/// all structs that have the same type, and is compiled once.
template <class Field, class Options>
size_t offset_of(Field Options::*field) {
  alignas(Options) static unsigned char place[sizeof(Options)];
  const auto* options =
      reinterpret_cast<const Options*>(place);  // only its fields' addresses count
  return static_cast<size_t>(reinterpret_cast<const unsigned char*>(&(options->*field)) - place);
}

template <class Field>
Field& field_at(void* options, size_t offset) {
  return *reinterpret_cast<Field*>(static_cast<unsigned char*>(options) + offset);
}

template <class Field>
const Field& field_at(const void* options, size_t offset) {
  return *reinterpret_cast<const Field*>(static_cast<const unsigned char*>(options) + offset);
}

template <class Field, class Type>
OptionKey make_key(std::string name, size_t offset, Type type, OptionCheck check, std::string doc) {
  OptionKey key;
  key.name = std::move(name);
  key.type = type.name();
  key.check = check.text;
  key.doc = std::move(doc);
  key.read = [offset, type, check](const ConfigValue& value, void* options, FaultSink& faults) {
    if (check.accepts && !check.accepts(value)) {
      add_mismatch(value, type.name(), check.text, faults);
    } else if (auto read = type.read(value, faults)) {
      field_at<Field>(options, offset) = std::move(*read);
    }
  };
  key.write = [offset, type](const void* options) {
    return type.write(field_at<Field>(options, offset));
  };
  return key;
}

/// The key of a field that is read by its C++ type.
template <class Field>
struct FieldKey {
  static OptionKey make(std::string name, size_t offset, OptionCheck check, std::string doc);
};

template <class Field>
OptionKey FieldKey<Field>::make(std::string name,
                                size_t offset,
                                OptionCheck check,
                                std::string doc) {
  return make_key<Field>(
      std::move(name), offset, OptionType<Field>{}, std::move(check), std::move(doc));
}

// What most fields are: compiled once, in options.cpp.
extern template struct FieldKey<bool>;
extern template struct FieldKey<int64_t>;
extern template struct FieldKey<double>;
extern template struct FieldKey<std::string>;
extern template struct FieldKey<std::filesystem::path>;
extern template struct FieldKey<Time>;
extern template struct FieldKey<std::optional<int64_t>>;
extern template struct FieldKey<std::optional<double>>;
extern template struct FieldKey<std::vector<int64_t>>;
extern template struct FieldKey<std::vector<double>>;
extern template struct FieldKey<std::vector<std::string>>;

}  // namespace detail

/// The keys of options struct `Options`, built key by key.
template <class Options>
class KeyTable : public KeyList {
 public:
  template <class Field>
  KeyTable& key(std::string name, Field Options::*field, std::string doc) {
    return key(std::move(name), field, OptionCheck{}, std::move(doc));
  }

  template <class Field>
  KeyTable& key(std::string name, Field Options::*field, OptionCheck check, std::string doc) {
    add(detail::FieldKey<Field>::make(
        std::move(name), detail::offset_of(field), std::move(check), std::move(doc)));
    return *this;
  }

  /// A key that needs more than its C++ type to be read, such as a table or a component. `Type` has
  /// `name()`, `read(value, faults) -> optional<Field>`, `write(field)`.
  template <class Field, class Type>
  KeyTable& key_of(std::string name, Field Options::*field, Type type, std::string doc) {
    add(detail::make_key<Field>(
        std::move(name), detail::offset_of(field), std::move(type), OptionCheck{}, std::move(doc)));
    return *this;
  }

  /// A nested table with the keys of `table`.
  template <class Field>
  KeyTable& table(std::string name, Field Options::*field, KeyTable<Field> table, std::string doc);

  /// Makes the last added key required.
  KeyTable& required() {
    mark_last_required();
    return *this;
  }
};

template <class Options>
template <class Field>
KeyTable<Options>& KeyTable<Options>::table(std::string name,
                                            Field Options::*field,
                                            KeyTable<Field> table,
                                            std::string doc) {
  OptionKey key;
  key.name = std::move(name);
  key.type = "a table";
  key.doc = std::move(doc);
  key.nested = table.keys();
  const auto kept = std::make_shared<const KeyTable<Field>>(std::move(table));
  key.read = [field, kept](const ConfigValue& value, void* options, FaultSink& faults) {
    if (const auto* inner = value.get_if<ConfigTable>()) {
      kept->read(*inner, value.position(), &(static_cast<Options*>(options)->*field), faults);
    } else {
      detail::add_mismatch(value, "a table", "", faults);
    }
  };
  key.write = [field, kept](const void* options) {
    return ConfigValue(kept->write(&(static_cast<const Options*>(options)->*field)));
  };
  add(std::move(key));
  return *this;
}

}  // namespace rondo
