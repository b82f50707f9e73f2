#include "data/arrays/hdf5_file.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>

namespace rondo {

bool is_hdf5(const std::filesystem::path& path) {
  constexpr std::array<const char*, 5> kNames = {".h5", ".hdf5", ".he5", ".hdf", ".nc"};
  return std::find(kNames.begin(), kNames.end(), path.extension().string()) != kNames.end();
}

}  // namespace rondo
