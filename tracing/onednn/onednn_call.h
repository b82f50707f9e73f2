#pragma once

#include <cstdint>
#include <initializer_list>

namespace rondo {

/// Whether oneDNN can be called: not where rondo was built without it, or LibTorch has one of its
/// own inside.
bool has_onednn();

/// A primitive of oneDNN, compiled for its shapes and the threads of its time. Tensors in another
/// layout than it works on are copied inside.
class OneDnnCall {
 public:
  OneDnnCall() = default;
  OneDnnCall(const OneDnnCall&) = delete;
  OneDnnCall& operator=(const OneDnnCall&) = delete;
  virtual ~OneDnnCall() = default;

  /// \param tensors  addresses, in the order that is said where the call is prepared. One extra
  ///                 address at the end is ignored (the absent bias).
  virtual void run(std::initializer_list<const void*> tensors) = 0;

  /// Memory that it keeps.
  virtual int64_t bytes() const = 0;
};

}  // namespace rondo
