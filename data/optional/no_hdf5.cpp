#include <ATen/core/Tensor.h>

#include "data/arrays/hdf5_file.h"
#include "data/optional_reader.h"

namespace rondo {

at::Tensor read_hdf5(const std::filesystem::path& path, const std::string&, bool) {
  require_reader("HDF5", path.string());
  return {};
}

}  // namespace rondo
