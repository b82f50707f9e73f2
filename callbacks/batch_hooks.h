#pragma once

#include <type_traits>

namespace rondo {

/// Which of the hooks that are called in every batch a class of callbacks overrides. Most override
/// none, and to call what does nothing is not free: a step drives callbacks out of the caches
/// (docs/decisions/020-steps-are-timed-on-batches-of-their-own.md says what that takes).
struct BatchHooks {
  bool dataloader_start = true;
  bool dataloader_end = true;
  bool train_start = true;
  bool train_end = true;
  bool validate_start = true;
  bool validate_end = true;
};

namespace detail {

/// Whether `T` overrides a hook, also where it hides it: it is private or overloaded there.
/// \param hook  callable: for a pointer to an object, a pointer to the hook of its class
template <class Base, class T, class HookOf>
constexpr bool overrides(const HookOf& /*hook*/) {
  if constexpr (std::is_invocable_v<HookOf, T*>) {
    return !std::is_same_v<std::invoke_result_t<HookOf, T*>, std::invoke_result_t<HookOf, Base*>>;
  } else {
    return true;
  }
}

}  // namespace detail

/// Those of class `T`, which derives from `Base`.
template <class Base, class T>
constexpr BatchHooks batch_hooks_of() {
  const auto dataloader_start =
      [](auto* object) -> decltype(&std::decay_t<decltype(*object)>::on_dataloader_start) {
    return {};
  };
  const auto dataloader_end =
      [](auto* object) -> decltype(&std::decay_t<decltype(*object)>::on_dataloader_end) {
    return {};
  };
  const auto train_start =
      [](auto* object) -> decltype(&std::decay_t<decltype(*object)>::on_train_batch_start) {
    return {};
  };
  const auto train_end =
      [](auto* object) -> decltype(&std::decay_t<decltype(*object)>::on_train_batch_end) {
    return {};
  };
  const auto validate_start =
      [](auto* object) -> decltype(&std::decay_t<decltype(*object)>::on_validate_batch_start) {
    return {};
  };
  const auto validate_end =
      [](auto* object) -> decltype(&std::decay_t<decltype(*object)>::on_validate_batch_end) {
    return {};
  };
  return {detail::overrides<Base, T>(dataloader_start),
          detail::overrides<Base, T>(dataloader_end),
          detail::overrides<Base, T>(train_start),
          detail::overrides<Base, T>(train_end),
          detail::overrides<Base, T>(validate_start),
          detail::overrides<Base, T>(validate_end)};
}

}  // namespace rondo
