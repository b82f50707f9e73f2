#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <utility>

namespace rondo {

/// The Options of a component that has none.
struct NoOptions {};

/// Whether a text may be a label: letters, digits, "_" and "-".
bool is_label(std::string_view text);

/// The class name without namespaces, for a name that `typeid` gave.
std::string class_name(const std::type_info& type);

namespace detail {

/// Throws an Error about the component that nests the exception at hand.
[[noreturn]] void throw_not_made(const std::string& component);

}  // namespace detail

/// A copyable description of a component of family `Base`: what to build, with which options. The
/// Trainer builds; until then nothing exists, so options can be checked and printed first.
template <class Base>
class Factory {
 public:
  using Make = std::function<std::unique_ptr<Base>()>;

  Factory() = default;

  /// \param name     shown to users; the registered name, or the class name
  /// \param options  what `type`'s key table describes; null when there are none to show
  /// \param origin   where a config file has it, such as "run.toml:12:3"; "" when made in code
  Factory(std::string name,
          std::type_index type,
          std::shared_ptr<const void> options,
          Make make,
          std::string origin = "")
      : name_(std::move(name)),
        type_(type),
        options_(std::move(options)),
        make_(std::move(make)),
        origin_(std::move(origin)) {}

  explicit operator bool() const { return static_cast<bool>(make_); }

  /// \throws Error  nesting what was thrown where that is no std::exception; else that itself
  std::unique_ptr<Base> make() const {
    try {
      return make_();
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      detail::throw_not_made(name_);
    }
  }

  const std::string& name() const { return name_; }

  std::type_index type() const { return type_; }

  const void* options() const { return options_.get(); }

  const std::string& origin() const { return origin_; }

  /// The same for a callback or logger that is to have this name in the Trainer, instead of its
  /// class's: `use<EarlyStopper>({"val/loss"}).labelled("patience")`. Letters, digits, "_" and "-".
  Factory labelled(std::string label) const {
    Factory copy = *this;
    copy.label_ = std::move(label);
    return copy;
  }

  /// "" for none.
  const std::string& label() const { return label_; }

 private:
  std::string name_;
  std::type_index type_ = typeid(void);
  std::shared_ptr<const void> options_;
  Make make_;
  std::string origin_;
  std::string label_;
};

/// The family of a component and the options that it takes.
template <class T>
using FamilyOf = typename T::Component;

namespace detail {

/// True when the family of `T` wants to know the class of what is made: when it has
/// `template <class T> void know_class()`.
template <class T, class = void>
struct WantsClass : std::false_type {};

template <class T>
struct WantsClass<T, std::void_t<decltype(std::declval<FamilyOf<T>&>().template know_class<T>())>>
    : std::true_type {};

template <class T>
std::unique_ptr<T> made_from(const typename T::Options& options) {
  if constexpr (std::is_constructible_v<T, const typename T::Options&>) {
    return std::make_unique<T>(options);
  } else {
    return std::make_unique<T>();
  }
}

/// True when `T` has `static void check(const Options&)`.
template <class T, class = void>
struct ChecksOptions : std::false_type {};

template <class T>
struct ChecksOptions<T, std::void_t<decltype(T::check(std::declval<const typename T::Options&>()))>>
    : std::true_type {};

/// What a component's class does with its options, without its type: what describes and reads
/// components is compiled once for a family, not once for each class.
template <class Base>
struct ComponentClass {
  std::type_index type;
  std::shared_ptr<void> (*default_options)();
  void (*check)(const void* options);  ///< null: nothing to check
  std::unique_ptr<Base> (*make)(const void* options);

  Factory<Base> factory(std::string name,
                        std::shared_ptr<const void> options,
                        std::string origin = "") const {
    auto made = [make = make, options] { return make(options.get()); };
    return Factory<Base>(
        std::move(name), type, std::move(options), std::move(made), std::move(origin));
  }
};

template <class T>
std::unique_ptr<FamilyOf<T>> make_component(const void* options) {
  std::unique_ptr<FamilyOf<T>> made =
      made_from<T>(*static_cast<const typename T::Options*>(options));
  if constexpr (WantsClass<T>::value) {
    made->template know_class<T>();
  }
  return made;
}

template <class T>
std::shared_ptr<void> default_options() {
  return std::make_shared<typename T::Options>();
}

template <class T>
void check_options(const void* options) {
  T::check(*static_cast<const typename T::Options*>(options));
}

template <class T>
ComponentClass<FamilyOf<T>> class_of() {
  static_assert(std::is_base_of_v<FamilyOf<T>, T>, "a component derives from its family");
  ComponentClass<FamilyOf<T>> found{typeid(T), default_options<T>, nullptr, make_component<T>};
  if constexpr (ChecksOptions<T>::value) {
    found.check = check_options<T>;
  }
  return found;
}

}  // namespace detail

/// Describes a `T` with these options: `use<AdamW>({2e-3})`. `T` derives from its family, names it
/// (`T::Component`), nests `Options`, and is constructed from `const Options&` or from nothing.
template <class T>
Factory<FamilyOf<T>> use(typename T::Options options = {}) {
  return detail::class_of<T>().factory(
      class_name(typeid(T)), std::make_shared<const typename T::Options>(std::move(options)));
}

}  // namespace rondo
