#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/internal/pickle_format.h"

namespace rondo::detail {

/// Puts one pickle together, operation by operation. Nothing is memoised: the values form a tree.
class PickleWriter {
 public:
  PickleWriter();

  void op(Op op) { bytes_.push_back(static_cast<char>(op)); }

  void none() { op(Op::None); }

  void boolean(bool value) { op(value ? Op::True : Op::False); }

  void integer(int64_t value);
  void text(std::string_view utf8);
  void integers(const std::vector<int64_t>& values);  ///< a tuple
  void global(std::string_view module, std::string_view name);

  /// Ends the pickle and hands it over.
  std::string finish();

 private:
  std::string bytes_;
};

}  // namespace rondo::detail
