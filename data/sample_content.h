#pragma once

#include <cstdint>
#include <string>

namespace rondo {

/// Base of data sets whose samples are cut or changed by chance: what a sample is made from.
class SampleContent {
 public:
  virtual ~SampleContent() = default;

  /// The same bytes for the same source, such as those of a picture's file.
  /// \param index  in [0, size())
  virtual std::string content_of(int64_t index) const = 0;
};

}  // namespace rondo
