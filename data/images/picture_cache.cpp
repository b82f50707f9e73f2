#include "data/images/picture_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/home_path.h"
#include "core/require.h"
#include "data/images/image_box.h"
#include "data/images/resample.h"
#include "data/internal/read_file.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;

/// What stands before the pixels of a picture.
struct Header {
  static constexpr uint64_t kMagic = 0x3150'4f44'4e4f'5201;  // and the version

  uint64_t magic = kMagic;
  uint64_t key = 0;
  int64_t file_height = 0;
  int64_t file_width = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t bytes = 0;
  uint32_t is_wide = 0;
  uint32_t reserved = 0;
  uint64_t checksum = 0;  // of the pixels, and of what stands before
};

uint64_t checksum_of(Header header, const std::vector<uint8_t>& bytes) {
  const std::hash<std::string_view> hash;
  header.checksum = hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return hash({reinterpret_cast<const char*>(&header), sizeof header});
}

/// Another one when another file has the name, or the file another size or other times.
uint64_t key_of(const fs::path& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) {
    throw IoError(path.string() + ": cannot be looked at", errno);
  }
  return std::hash<std::string>{}(fmt::format("{} {}:{} {} {}.{:09} {}.{:09}",
                                              fs::absolute(path).string(),
                                              found.st_dev,
                                              found.st_ino,
                                              found.st_size,
                                              found.st_mtim.tv_sec,
                                              found.st_mtim.tv_nsec,
                                              found.st_ctim.tv_sec,
                                              found.st_ctim.tv_nsec));
}

/// \param transfer  pread or pwrite
template <class Transfer, class Byte>
bool is_whole(const Transfer& transfer, int fd, Byte* at, size_t size, int64_t offset) {
  while (size > 0) {
    const ssize_t count = transfer(fd, at, size, offset);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    at += count;
    size -= static_cast<size_t>(count);
    offset += count;
  }
  return true;
}

bool read_whole(int fd, void* to, size_t size, int64_t offset) {
  return is_whole(::pread, fd, static_cast<char*>(to), size, offset);
}

bool write_whole(int fd, const void* from, size_t size, int64_t offset) {
  return is_whole(::pwrite, fd, static_cast<const char*>(from), size, offset);
}

int64_t bytes_of(const Header& header, int64_t channels) {
  return header.height * header.width * channels * (header.is_wide != 0 ? 2 : 1);
}

bool is_sound(const Header& header, int64_t channels) {
  constexpr int64_t kMostSide = 1 << 28;
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMostSide; };
  return header.magic == Header::kMagic && is_side(header.height) && is_side(header.width) &&
         is_side(header.file_height) && is_side(header.file_width) &&
         header.height <= kMostSide / header.width && header.bytes == bytes_of(header, channels);
}

template <class Value>
void put(const std::vector<float>& planes, double most, Image& image) {
  const auto plane = static_cast<size_t>(image.height * image.width);
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < channels; ++c) {
      const auto value = static_cast<Value>(
          std::lround(std::clamp(static_cast<double>(planes[c * plane + i]), 0.0, 1.0) * most));
      std::memcpy(image.bytes.data() + (i * channels + c) * sizeof(Value), &value, sizeof(Value));
    }
  }
}

Image scaled(const Image& image, int64_t height, int64_t width) {
  std::vector<float> planes(static_cast<size_t>(image.channels * height * width));
  resample(image, {}, height, width, planes.data());
  Image result{height, width, image.channels, image.is_wide, {}};
  result.bytes.resize(planes.size() * (image.is_wide ? 2 : 1));
  if (image.is_wide) {
    put<uint16_t>(planes, image.most(), result);
  } else {
    put<uint8_t>(planes, image.most(), result);
  }
  return result;
}

}  // namespace

PictureCache::PictureCache(const PictureCacheOptions& options, int64_t channels)
    : options_(options), channels_(channels) {
  detail::require(options.side >= 0, "ImageFolder: cache.side", ">= 0", options.side);
  options_.folder = expand_home(options.folder).string();
  std::error_code error;
  fs::create_directories(options_.folder, error);
  const fs::directory_iterator entries(options_.folder, error);
  if (error) {
    throw IoError(options_.folder + ": there can be no such folder", error.value());
  }
  const std::string kind = fmt::format("pictures-{}-{}-", channels, options.side);
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().filename().string().rfind(kind, 0) == 0) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    read_index(file);
  }
}

/// Up to what is no whole picture, such as what a process wrote when it died.
void PictureCache::read_index(const fs::path& path) {
  const auto file =
      std::make_shared<detail::FileDescriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found = {};
  if (file->get() < 0 || ::fstat(file->get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return;
  }
  const auto size = static_cast<int64_t>(found.st_size);
  Header header;
  for (int64_t at = 0;
       read_whole(file->get(), &header, sizeof header, at) && is_sound(header, channels_) &&
       header.bytes <= size - at - static_cast<int64_t>(sizeof header);
       at += static_cast<int64_t>(sizeof header) + header.bytes) {
    places_[header.key] = {file, at};
  }
}

PictureCache::Kept PictureCache::picture(const fs::path& path) {
  const uint64_t key = key_of(path);
  if (std::optional<Kept> kept = find(key)) {
    return std::move(*kept);
  }
  Kept picture = decoded(path);
  add(key, picture);
  return picture;
}

std::optional<PictureCache::Kept> PictureCache::find(uint64_t key) const {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(key);
    if (found == places_.end()) {
      return std::nullopt;
    }
    place = found->second;
  }
  Header header;
  if (!read_whole(place.file->get(), &header, sizeof header, place.offset) ||
      !is_sound(header, channels_) || header.key != key) {
    return std::nullopt;
  }
  Image image{header.height, header.width, channels_, header.is_wide != 0, {}};
  image.bytes.resize(static_cast<size_t>(header.bytes));
  const int64_t pixels = place.offset + static_cast<int64_t>(sizeof header);
  if (!read_whole(place.file->get(), image.bytes.data(), image.bytes.size(), pixels) ||
      checksum_of(header, image.bytes) != header.checksum) {
    return std::nullopt;
  }
  return Kept{{header.file_height, header.file_width}, std::move(image)};
}

PictureCache::Kept PictureCache::decoded(const fs::path& path) const {
  const std::string name = path.string();
  const std::string bytes = detail::read_data_file(path);
  const ImageSize size = image_size(name, bytes);
  const int64_t shorter = std::min(size.height, size.width);
  if (options_.side == 0 || shorter <= options_.side) {
    return {size, decode_image(name, bytes, channels_)};
  }
  const auto side_of = [&](int64_t side) {
    return std::max<int64_t>(
        1,
        std::llround(static_cast<double>(side) * static_cast<double>(options_.side) /
                     static_cast<double>(shorter)));
  };
  const int64_t height = side_of(size.height);
  const int64_t width = side_of(size.width);
  const int64_t shrink = shrink_for(size, ImageBox(), height, width);
  return {size, scaled(decode_image(name, bytes, channels_, shrink), height, width)};
}

void PictureCache::add(uint64_t key, const Kept& picture) {
  const std::lock_guard lock(mutex_);
  if (own_ == nullptr && !is_full_) {
    std::string name =
        fmt::format("{}/pictures-{}-{}-XXXXXX", options_.folder, channels_, options_.side);
    own_ = std::make_shared<detail::FileDescriptor>(::mkostemp(name.data(), O_CLOEXEC));
    is_full_ = own_->get() < 0;
  }
  if (is_full_) {
    return;
  }
  Header header;
  header.key = key;
  header.file_height = picture.size.height;
  header.file_width = picture.size.width;
  header.height = picture.image.height;
  header.width = picture.image.width;
  header.is_wide = picture.image.is_wide ? 1 : 0;
  header.bytes = static_cast<int64_t>(picture.image.bytes.size());
  header.checksum = checksum_of(header, picture.image.bytes);
  const int64_t pixels = end_ + static_cast<int64_t>(sizeof header);
  if (!write_whole(own_->get(), picture.image.bytes.data(), picture.image.bytes.size(), pixels) ||
      !write_whole(own_->get(), &header, sizeof header, end_)) {
    is_full_ = true;
    return;
  }
  places_[key] = {own_, end_};
  end_ = pixels + header.bytes;
}

}  // namespace rondo
