#pragma once

#include <utility>

namespace rondo {

/// Gives a variable a value for a scope and its old one back afterwards.
template <class T>
class Scoped {
 public:
  Scoped(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}

  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

  ~Scoped() { place_ = std::move(before_); }

 private:
  T& place_;
  T before_;
};

}  // namespace rondo
