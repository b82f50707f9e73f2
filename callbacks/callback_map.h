#pragma once

#include <memory>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// The names of a Trainer's callbacks: the slot's name, the label, or the class name, with `_2`,
/// `_3` … appended if it is taken.
class CallbackNames {
 public:
  /// \param label  "" for none
  /// \throws UsageError  for an invalid label, or one that another callback has
  std::string add(const std::string& class_name, const std::string& label);

 private:
  bool is_free(const std::string& name) const;

  std::vector<std::string> taken_;
};

/// The ordered map name -> callback of a Trainer: core slots, then users' callbacks and loggers.
class CallbackMap {
 public:
  struct Entry {
    std::string name;        ///< see CallbackNames
    std::string class_name;  ///< for messages
    std::string origin;      ///< its place in the config file, such as "run.toml:12:3", or ""
    std::unique_ptr<Callback> callback;
    BatchHooks batch_hooks;  ///< a copy, so that iterating does not touch each callback
  };

  /// Adds a core callback under its slot's name.
  void add_slot(std::string slot,
                std::string class_name,
                std::string origin,
                std::unique_ptr<CoreCallback> callback);

  /// Adds a user's callback or a logger at the end, named after its label or its class.
  /// \throws UsageError  for a core callback, which belongs in a slot, and as CallbackNames
  void add(std::string class_name,
           const std::string& label,
           std::string origin,
           std::unique_ptr<Callback> callback);

  /// Moves an entry to the end.
  void move_to_end(const std::string& name);

  const std::vector<Entry>& entries() const { return entries_; }

  /// The callback of this name, or null.
  Callback* find(const std::string& name) const;

  bool contains(const Callback& callback) const;

  /// The name of `callback` in this map.
  /// \throws UsageError  when it is not in the map
  const std::string& name_of(const Callback& callback) const;

 private:
  void append(std::string name,
              std::string class_name,
              std::string origin,
              std::unique_ptr<Callback> callback);

  std::vector<Entry> entries_;
  CallbackNames names_;
};

}  // namespace rondo
