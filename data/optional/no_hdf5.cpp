#include <ATen/core/Tensor.h>

#include "core/error.h"
#include "data/hdf5_file.h"

namespace rondo {

void require_hdf5(const std::filesystem::path& path) {
  throw UsageError(path.string() +
                   ": this rondo was built without HDF5: install libhdf5-dev and build it with "
                   "-DRONDO_WITH_HDF5=ON");
}

at::Tensor read_hdf5(const std::filesystem::path& path, const std::string&) {
  require_hdf5(path);
  return {};
}

}  // namespace rondo
