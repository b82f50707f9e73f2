#pragma once

#include <memory>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// The names of a Trainer's callbacks: a slot's, a label, or the class name, which gets `_2`, `_3`
/// … where it is taken.
class CallbackNames {
 public:
  /// \param label  "" for none
  /// \throws UsageError  for a label that is none, or that another callback has
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
    std::string origin;      ///< where a config file has it, such as "run.toml:12:3", or ""
    std::unique_ptr<Callback> callback;
    BatchHooks batch_hooks;  ///< the callback's, where going through all does not touch each
  };

  /// Adds a core callback under its slot's name.
  void add_slot(std::string slot,
                std::string class_name,
                std::string origin,
                std::unique_ptr<CoreCallback> callback);

  /// Adds a user's callback or a logger at the end, named after its label or its class.
  /// \throws UsageError  for a core callback, which has its own place, and as CallbackNames does
  void add(std::string class_name,
           const std::string& label,
           std::string origin,
           std::unique_ptr<Callback> callback);

  /// Moves an entry behind all others.
  void move_to_end(const std::string& name);

  const std::vector<Entry>& entries() const { return entries_; }

  /// The callback of this name, or null.
  Callback* find(const std::string& name) const;

  bool contains(const Callback& callback) const;

  /// The name under which `callback` stands here.
  /// \throws UsageError  when it does not
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
