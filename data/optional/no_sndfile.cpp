#include "data/audio/sound_file.h"
#include "data/optional_reader.h"

namespace rondo {

SoundInfo sound_info(const std::filesystem::path& path) {
  require_reader("SNDFILE", path.string());
  return {};
}

Sound read_sound(const std::filesystem::path& path, int64_t, int64_t) {
  require_reader("SNDFILE", path.string());
  return {};
}

}  // namespace rondo
