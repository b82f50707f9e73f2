#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/internal/pickle_objects.h"

namespace rondo::detail {

/// Gives the elements of storage `key`, shape [numel]. \throws Malformed  when there is none
using LoadStorage =
    std::function<at::Tensor(at::ScalarType type, const std::string& key, int64_t numel)>;

/// What becomes of classes and functions that a checkpoint does not need.
enum class OtherClasses {
  Refused,
  Inert  ///< a call of one, whatever it is, makes an object without attributes and does nothing
};

/// The whole list of what a pickle can make rondo do: know five names, load a storage, and call
/// four of the five. All throw Malformed for anything else.
class PickleCalls {
 public:
  /// \param objects  what the pickle has built so far; borrowed
  PickleCalls(const std::vector<PickleObject>& objects,
              LoadStorage load_storage,
              OtherClasses other_classes)
      : objects_(objects), load_storage_(std::move(load_storage)), other_classes_(other_classes) {}

  PickleGlobal global(std::string_view module, std::string_view name) const;

  /// The storage that ("storage", class, key, device, elements) stands for.
  PickleObject persistent(const PickleObject& id) const;

  /// The result of calling `function` with the tuple `arguments`.
  PickleObject call(const PickleObject& function, const PickleObject& arguments) const;

 private:
  PickleObject rebuild_tensor(const std::vector<ObjectId>& arguments) const;
  std::vector<int64_t> integers(ObjectId tuple) const;

  template <class T>
  const T& get(ObjectId id, const char* what) const;

  const std::vector<PickleObject>& objects_;
  LoadStorage load_storage_;
  OtherClasses other_classes_;
};

}  // namespace rondo::detail
