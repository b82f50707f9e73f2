#include "data/audio/sound_file.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <memory>

#include "core/error.h"

namespace rondo {

namespace {

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

using File = std::unique_ptr<SNDFILE, CloseSound>;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path.string(), what));
}

/// A frame takes at least this share of a byte: silence in FLAC, 65,535 frames in some ten bytes.
constexpr int64_t kMostFramesOfByte = 8192;
constexpr int64_t kMostChannels = 1024;

File opened(const std::filesystem::path& path, SoundInfo& info) {
  SF_INFO found = {};
  File file(sf_open(path.c_str(), SFM_READ, &found));
  if (!file) {
    fail(path, fmt::format("it cannot be read as a sound: {}", sf_strerror(nullptr)));
  }
  info = {found.samplerate, found.channels, found.frames};
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (info.channels < 1 || info.channels > kMostChannels || info.frames < 0 || error ||
      info.frames / kMostFramesOfByte > bytes) {
    fail(path,
         fmt::format("its header says {} frames of {} channels, the file has {} bytes",
                     info.frames,
                     info.channels,
                     bytes));
  }
  return file;
}

}  // namespace

SoundInfo sound_info(const std::filesystem::path& path) {
  SoundInfo info;
  opened(path, info);
  return info;
}

Sound read_sound(const std::filesystem::path& path, int64_t first, int64_t count) {
  Sound sound;
  const File file = opened(path, sound.info);
  const int64_t wanted = std::clamp<int64_t>(sound.info.frames - first, 0, count);
  if (wanted == 0) {
    return sound;
  }
  if (sf_seek(file.get(), first, SEEK_SET) != first) {
    fail(path, fmt::format("frame {}: it cannot be reached: {}", first, sf_strerror(file.get())));
  }
  sound.values.resize(static_cast<size_t>(wanted * sound.info.channels));
  const int64_t read = sf_readf_float(file.get(), sound.values.data(), wanted);
  if (read != wanted) {
    fail(path,
         fmt::format("frame {}: it is damaged or ends here, {} frames early: {}",
                     first + std::max<int64_t>(read, 0),
                     sound.info.frames - first - std::max<int64_t>(read, 0),
                     sf_strerror(file.get())));
  }
  return sound;
}

}  // namespace rondo
