#pragma once

#include <string>
#include <vector>

namespace rondo {

class NameScopes;

/// Holds one name on the stack for as long as it lives.
class NameScope {
 public:
  NameScope(NameScopes& scopes, std::string name);
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  ~NameScope();

 private:
  NameScopes& scopes_;
};

/// The stack of names that metrics are prefixed with.
class NameScopes {
 public:
  /// The names from `depth` on, each followed by "/"; "" when there are none.
  std::string path(size_t depth = 0) const;

  size_t depth() const { return names_.size(); }

 private:
  friend class NameScope;
  std::vector<std::string> names_;
};

}  // namespace rondo
