#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace rondo {

/// What the header of a sound file says.
struct SoundInfo {
  int64_t sample_rate = 0;  ///< frames a second
  int64_t channels = 0;
  int64_t frames = 0;
};

/// A part of a sound: the values of a frame side by side, in [-1, 1].
struct Sound {
  SoundInfo info = {};  ///< of the whole file
  std::vector<float> values = {};
};

/// \throws UsageError  naming package and CMake option, when rondo was built without the library
/// \throws DataError   naming the file: of another format, more than 2^10 channels, more frames
///                     than a file of its size can hold
SoundInfo sound_info(const std::filesystem::path& path);

/// Reads the frames [first, first + count), or fewer where the file ends.
/// \param first  in [0, info.frames]
/// \throws DataError  as above, and for a file that is damaged before that end, with the frame
Sound read_sound(const std::filesystem::path& path, int64_t first, int64_t count);

}  // namespace rondo
