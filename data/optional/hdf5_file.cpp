#define H5_USE_110_API  // what 1.10 and 1.14 both have

#include "data/hdf5_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

/// A handle of the library, closed by its function.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}

  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  ~Handle() {
    if (id_ >= 0) {
      close_(id_);
    }
  }

  hid_t id() const { return id_; }

  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// Debian's library has no lock: threads take turns here.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// What went wrong, as the library says it in its innermost message.
std::string reason() {
  std::string text;
  const auto take = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
    if (error->desc != nullptr) {
      *static_cast<std::string*>(to) = error->desc;
    }
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, take, &text);
  return text.empty() ? "it is damaged" : text;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path.string(), what));
}

std::vector<std::string> variables_of(hid_t file) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5O_info_t* info, void* to) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    }
    return 0;
  };
  H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, take, &names);
  return names;
}

/// A type of the file as that of a tensor, and as the library is to write it.
std::pair<c10::ScalarType, hid_t> type_of(const std::filesystem::path& path, hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const size_t bytes = H5Tget_size(type);
  if (kind == H5T_FLOAT && bytes <= 4) {
    return {at::kFloat, H5T_NATIVE_FLOAT};
  }
  if (kind == H5T_FLOAT && bytes == 8) {
    return {at::kDouble, H5T_NATIVE_DOUBLE};
  }
  const bool is_integer = kind == H5T_INTEGER || kind == H5T_ENUM;
  const bool is_unsigned = kind == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
  if (is_integer && bytes == 1) {
    return is_unsigned ? std::pair{at::kByte, H5T_NATIVE_UINT8}
                       : std::pair{at::kChar, H5T_NATIVE_INT8};
  }
  if (is_integer && bytes <= 8) {
    const size_t needed = bytes + (is_unsigned ? 1 : 0);
    return needed <= 2   ? std::pair{at::kShort, H5T_NATIVE_INT16}
           : needed <= 4 ? std::pair{at::kInt, H5T_NATIVE_INT32}
                         : std::pair{at::kLong, H5T_NATIVE_INT64};
  }
  fail(path, "its variable holds neither integers nor floating numbers");
}

std::vector<int64_t> shape_of(const std::filesystem::path& path, hid_t space) {
  const int dimensions = H5Sget_simple_extent_ndims(space);
  if (dimensions < 0) {
    fail(path, "its variable has no shape");
  }
  std::vector<hsize_t> sizes(static_cast<size_t>(dimensions));
  H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

/// Compressed and unwritten numbers can be many more than the file has bytes, but not without end.
void require_plausible(const std::filesystem::path& path,
                       const std::vector<int64_t>& shape,
                       size_t bytes_each) {
  constexpr double kMostShortened = 4096;
  double bytes = static_cast<double>(bytes_each);
  for (const int64_t size : shape) {
    bytes = size < 0 ? -1 : bytes * static_cast<double>(size);
  }
  const auto of_file = static_cast<double>(std::filesystem::file_size(path));
  if (!(bytes >= 0) || bytes > of_file * kMostShortened) {
    fail(path, fmt::format("its variable has {:.0f} bytes, the file {:.0f}", bytes, of_file));
  }
}

}  // namespace

at::Tensor read_hdf5(const std::filesystem::path& path, const std::string& name) {
  const std::lock_guard lock(library_mutex());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), &H5Fclose);
  if (!file) {
    fail(path, "it cannot be read as HDF5: " + reason());
  }
  const std::vector<std::string> names = variables_of(file.id());
  const bool is_alone = name.empty() && names.size() == 1;
  const std::string wanted = is_alone ? names.front() : name;
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    fail(path,
         fmt::format("there is no variable \"{}\"{}; there are [{}]",
                     name,
                     suggestion(name, names),
                     fmt::join(names, ", ")));
  }
  const Handle data(H5Dopen2(file.id(), wanted.c_str(), H5P_DEFAULT), &H5Dclose);
  const Handle space(data ? H5Dget_space(data.id()) : -1, &H5Sclose);
  const Handle type(data ? H5Dget_type(data.id()) : -1, &H5Tclose);
  if (!space || !type) {
    fail(path, fmt::format("its variable \"{}\" cannot be opened: {}", wanted, reason()));
  }
  const auto [dtype, in_memory] = type_of(path, type.id());
  const std::vector<int64_t> shape = shape_of(path, space.id());
  require_plausible(path, shape, H5Tget_size(type.id()));
  at::Tensor tensor = at::empty(shape, dtype);
  if (tensor.numel() > 0 &&
      H5Dread(data.id(), in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data_ptr()) < 0) {
    fail(path, fmt::format("its variable \"{}\" cannot be read: {}", wanted, reason()));
  }
  return tensor;
}

}  // namespace rondo
