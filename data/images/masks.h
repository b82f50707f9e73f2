#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/ignored_label.h"
#include "core/state_dict.h"
#include "data/images/image.h"
#include "data/images/picture_changes.h"

namespace rondo {

struct ImageSize;

/// How a sample is taken from a picture: a part of it, mirrored, then moved.
struct PictureView {
  ImageBox box = {};
  bool is_mirrored = false;
  PictureMove move = {};
};

/// Files that give each pixel of a picture its class.
struct MaskOptions {
  /// A folder with a PNG file for each picture, at the same path but for the ending; or such paths
  /// with `*` for the picture's path: "labels/*_mask.png". Empty: there are none.
  std::string files = {};
  std::vector<std::string> classes = {};  ///< their names; may be empty
  std::vector<int64_t> values = {};       ///< of the classes 0, 1, … in a file; empty: 0, 1, …
  std::vector<int64_t> ignored = {};      ///< values whose pixels no class has

  bool are_there() const { return !files.empty(); }
};

/// Reads masks of pictures.
class Masks {
 public:
  /// What a pixel has whose class does not count, for losses and metrics. Source: LibTorch's
  /// losses.
  static constexpr int64_t kIgnored = kIgnoredLabel;

  /// \param owner  for messages: "ImageFolder"
  /// \param base   of files that are not absolute
  ///
  /// \throws UsageError  for values out of range or given twice, and another number of values than
  ///                     of classes
  Masks(std::string owner, const MaskOptions& options, const std::filesystem::path& base);

  /// \param inside  path of the picture from the root of its data set on
  std::filesystem::path path_of(const std::filesystem::path& inside) const;

  /// 0: it is not known.
  int64_t count_of_classes() const { return count_; }

  /// What the classes are: their names and values.
  StateDict fitted() const;

  /// \throws DataError  when training had other classes, or labels and no masks
  void require_classes_of(const StateDict& fitted) const;

  /// What the view shows of a mask: int64 [height, width], `kIgnored` where a move brings in an
  /// edge. No value is made of two others.
  /// \param picture  the size that the mask must have
  ///
  /// \throws DataError   naming the file that is damaged or of another size
  /// \throws UsageError  naming the place of a value that stands for no class
  at::Tensor read(const std::filesystem::path& path,
                  const ImageSize& picture,
                  const PictureView& view,
                  int64_t height,
                  int64_t width) const;

 private:
  std::string owner_;
  std::vector<std::string> classes_;
  std::vector<int64_t> values_;
  std::filesystem::path before_;  // the picture's path
  std::string after_;
  int64_t count_ = 0;
  std::vector<int64_t> class_of_;  // by value
};

}  // namespace rondo
