#include "core/name_scopes.h"

#include <utility>

namespace rondo {

NameScope::NameScope(NameScopes& scopes, std::string name) : scopes_(scopes) {
  scopes_.names_.push_back(std::move(name));
}

NameScope::~NameScope() {
  scopes_.names_.pop_back();
}

std::string NameScopes::path(size_t depth) const {
  std::string path;
  for (size_t i = depth; i < names_.size(); ++i) {
    path += names_[i] + "/";
  }
  return path;
}

}  // namespace rondo
