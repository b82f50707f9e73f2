#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/file_descriptor.h"
#include "data/images/decode.h"
#include "data/images/image.h"

namespace rondo {

/// Where decoded pictures are kept.
struct PictureCacheOptions {
  std::string folder = {};  ///< empty: none are
  int64_t side = 0;  ///< pixels that the shorter side is scaled to where it is longer; 0: none is

  bool is_there() const { return !folder.empty(); }
};

/// Keeps decoded pictures in files, so that later epochs and the next start need not decode them.
/// Several threads and several processes can use a folder at the same time: each cache adds to a
/// file of its own, and finds what was in the folder when it was made. A picture whose file
/// changed, or whose bytes here are damaged, counts as none. Where nothing more can be written,
/// pictures are decoded as if there were no cache.
class PictureCache {
 public:
  struct Kept {
    ImageSize size;  ///< of the picture's file
    Image image;     ///< perhaps smaller
  };

  /// \param channels  of the pictures
  ///
  /// \throws UsageError  for a side below 0
  /// \throws IoError     when there can be no such folder
  PictureCache(const PictureCacheOptions& options, int64_t channels);

  /// The picture of a file. \throws IoError, DataError  as reading and decoding it do
  Kept picture(const std::filesystem::path& path);

 private:
  struct Place {
    std::shared_ptr<detail::FileDescriptor> file;
    int64_t offset = 0;
  };

  void read_index(const std::filesystem::path& path);
  std::optional<Kept> find(uint64_t key) const;
  void add(uint64_t key, const Kept& picture);
  Kept decoded(const std::filesystem::path& path) const;

  PictureCacheOptions options_;
  int64_t channels_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Place> places_;
  std::shared_ptr<detail::FileDescriptor> own_;  // null until something is added
  int64_t end_ = 0;                              // of `own_`
  bool is_full_ = false;                         // writing failed
};

}  // namespace rondo
