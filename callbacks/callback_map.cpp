#include "callbacks/callback_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace rondo {

bool CallbackNames::is_free(const std::string& name) const {
  return std::find(taken_.begin(), taken_.end(), name) == taken_.end();
}

std::string CallbackNames::add(const std::string& class_name, const std::string& label) {
  std::string name = label;
  if (label.empty()) {
    name = class_name;
    for (int count = 2; !is_free(name); ++count) {
      name = fmt::format("{}_{}", class_name, count);
    }
  } else if (!is_label(label)) {
    throw UsageError(fmt::format(
        "{}: expected a label of letters, digits, \"_\" and \"-\", got \"{}\"", class_name, label));
  } else if (!is_free(label)) {
    throw UsageError(
        fmt::format("{}: the label \"{}\" is the name of another callback; choose another one",
                    class_name,
                    label));
  }
  taken_.push_back(name);
  return name;
}

void CallbackMap::add_slot(std::string slot,
                           std::string class_name,
                           std::string origin,
                           std::unique_ptr<CoreCallback> callback) {
  std::string name = names_.add(slot, "");
  append(std::move(name), std::move(class_name), std::move(origin), std::move(callback));
}

void CallbackMap::add(std::string class_name,
                      const std::string& label,
                      std::string origin,
                      std::unique_ptr<Callback> callback) {
  if (dynamic_cast<const CoreCallback*>(callback.get()) != nullptr) {
    throw UsageError(
        fmt::format("{} is a core callback and cannot be overridden among the callbacks; give it "
                    "in TrainerOptions::slots",
                    class_name));
  }
  std::string name = names_.add(class_name, label);
  append(std::move(name), std::move(class_name), std::move(origin), std::move(callback));
}

void CallbackMap::append(std::string name,
                         std::string class_name,
                         std::string origin,
                         std::unique_ptr<Callback> callback) {
  const BatchHooks batch_hooks = callback->batch_hooks();
  entries_.push_back({std::move(name),
                      std::move(class_name),
                      std::move(origin),
                      std::move(callback),
                      batch_hooks});
}

void CallbackMap::move_to_end(const std::string& name) {
  const auto at = std::find_if(
      entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
  if (at != entries_.end()) {
    std::rotate(at, at + 1, entries_.end());
  }
}

Callback* CallbackMap::find(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) {
      return entry.callback.get();
    }
  }
  return nullptr;
}

bool CallbackMap::contains(const Callback& callback) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.callback.get() == &callback;
  });
}

const std::string& CallbackMap::name_of(const Callback& callback) const {
  for (const Entry& entry : entries_) {
    if (entry.callback.get() == &callback) {
      return entry.name;
    }
  }
  throw UsageError(fmt::format("this {} is not one of the Trainer's own callbacks",
                               class_name(typeid(callback))));
}

}  // namespace rondo
