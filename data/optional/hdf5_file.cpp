#define H5_USE_110_API  // what 1.10 and 1.14 both have

#include "data/arrays/hdf5_file.h"

#include <ATen/ops/any.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
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

/// How its chunks are packed.
struct Packing {
  std::vector<H5Z_filter_t> filters;  ///< in the order in which they were applied
  std::vector<hsize_t> sizes;         ///< of a chunk, in elements
  uint64_t bytes = 0;                 ///< of a chunk, unpacked
  uint64_t of_file = 0;               ///< bytes
};

/// Bytes that packed ones unpack to, at most `most`; 0 when they are damaged.
uint64_t unpacked_bytes(const std::vector<Bytef>& packed, uint64_t most) {
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) {
    return 0;
  }
  std::array<Bytef, 4096> part;
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  uint64_t bytes = 0;
  int state = Z_OK;
  while (state == Z_OK && bytes < most) {
    stream.next_out = part.data();
    stream.avail_out = static_cast<uInt>(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    bytes += part.size() - stream.avail_out;
  }
  inflateEnd(&stream);
  return state == Z_OK || state == Z_STREAM_END ? bytes : 0;
}

/// What a chunk unpacks to; as much as is wanted when another library's filter would have to say,
/// or when it was never written.
uint64_t bytes_of_chunk(hid_t data, const Packing& packing, const std::vector<hsize_t>& place) {
  unsigned left_out = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t stored = 0;
  if (H5Dget_chunk_info_by_coord(data, place.data(), &left_out, &address, &stored) < 0 ||
      stored > packing.of_file) {
    return 0;
  }
  bool is_deflated = false;
  for (size_t i = 0; i < packing.filters.size(); ++i) {
    const H5Z_filter_t filter = packing.filters[i];
    if ((left_out >> i & 1) != 0 || filter == H5Z_FILTER_SHUFFLE ||
        filter == H5Z_FILTER_FLETCHER32) {
      continue;
    }
    if (filter != H5Z_FILTER_DEFLATE) {
      return packing.bytes;
    }
    is_deflated = true;
  }
  if (address == HADDR_UNDEF || !is_deflated) {
    return address == HADDR_UNDEF ? packing.bytes : stored;
  }
  std::vector<Bytef> packed(stored);
  uint32_t filters = 0;
  const bool is_read = H5Dread_chunk(data, H5P_DEFAULT, place.data(), &filters, packed.data()) >= 0;
  return is_read ? unpacked_bytes(packed, packing.bytes) : 0;
}

Packing packing_of(hid_t how, size_t bytes_each) {
  Packing packing;
  std::array<hsize_t, H5S_MAX_RANK> sizes;
  const int dimensions = std::max(0, H5Pget_chunk(how, H5S_MAX_RANK, sizes.data()));
  packing.sizes.assign(sizes.begin(), sizes.begin() + dimensions);
  packing.bytes = bytes_each;
  for (const hsize_t size : packing.sizes) {
    packing.bytes *= size;
  }
  for (int i = 0; i < H5Pget_nfilters(how); ++i) {
    unsigned flags = 0;
    size_t values = 0;
    packing.filters.push_back(H5Pget_filter2(how,
                                             static_cast<unsigned>(i),
                                             &flags,
                                             &values,
                                             /*cd_values=*/nullptr,
                                             /*namelen=*/0,
                                             /*name=*/nullptr,
                                             /*filter_config=*/nullptr));
  }
  return packing;
}

/// Moves on to the next chunk. \return false behind the last one
bool advance(std::vector<hsize_t>& place,
             const std::vector<hsize_t>& step,
             const std::vector<int64_t>& shape) {
  for (size_t d = place.size(); d-- > 0;) {
    place[d] += step[d];
    if (place[d] < static_cast<hsize_t>(shape[d])) {
      return true;
    }
    place[d] = 0;
  }
  return false;
}

/// The library believes what a variable says of its chunks, and reads behind the end of one that
/// unpacks to less.
void require_whole_chunks(const std::filesystem::path& path,
                          hid_t data,
                          const std::vector<int64_t>& shape,
                          size_t bytes_each) {
  const Handle how(H5Dget_create_plist(data), &H5Pclose);
  if (!how || H5Pget_layout(how.id()) != H5D_CHUNKED) {
    return;
  }
  Packing packing = packing_of(how.id(), bytes_each);
  packing.of_file = std::filesystem::file_size(path);
  if (packing.sizes.size() != shape.size() || packing.bytes == 0) {
    fail(path, "its variable has chunks of no shape");
  }
  std::vector<hsize_t> place(shape.size(), 0);
  do {
    if (const uint64_t bytes = bytes_of_chunk(data, packing, place); bytes < packing.bytes) {
      fail(path,
           fmt::format("the chunk at [{}] of its variable unpacks to {} bytes, expected {}",
                       fmt::join(place, ", "),
                       bytes,
                       packing.bytes));
    }
  } while (advance(place, packing.sizes, shape));
}

/// The numbers of an attribute of a variable, int64 or float64; undefined when it has none of this
/// name.
at::Tensor attribute(const std::filesystem::path& path, hid_t data, const char* name) {
  constexpr hssize_t kMost = 16;
  if (H5Aexists(data, name) <= 0) {
    return {};
  }
  const Handle found(H5Aopen(data, name, H5P_DEFAULT), &H5Aclose);
  const Handle space(found ? H5Aget_space(found.id()) : -1, &H5Sclose);
  const Handle type(found ? H5Aget_type(found.id()) : -1, &H5Tclose);
  const hssize_t count = space ? H5Sget_simple_extent_npoints(space.id()) : -1;
  const H5T_class_t kind = type ? H5Tget_class(type.id()) : H5T_NO_CLASS;
  if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || count < 1 || count > kMost) {
    fail(path,
         fmt::format("the attribute {} of its variable is not from 1 to {} numbers", name, kMost));
  }
  const bool is_whole = kind == H5T_INTEGER;
  at::Tensor numbers = at::empty({count}, is_whole ? at::kLong : at::kDouble);
  if (H5Aread(found.id(), is_whole ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE, numbers.data_ptr()) <
      0) {
    fail(path, fmt::format("the attribute {} of its variable cannot be read: {}", name, reason()));
  }
  return numbers;
}

/// Those of the numbers that a variable of the type can have. HDF5 itself would take the nearest
/// one that it can, which stands for itself.
at::Tensor possible_in(c10::ScalarType dtype, const at::Tensor& numbers) {
  if (at::isFloatingType(dtype)) {
    return numbers.to(dtype);
  }
  constexpr double kMostExact = 9007199254740992.0;  // 2^53
  const at::Tensor is_exact = numbers.eq(numbers.floor()).logical_and(numbers.abs().le(kMostExact));
  const at::Tensor whole =
      numbers.is_floating_point() ? numbers.masked_select(is_exact).to(at::kLong) : numbers;
  const at::Tensor held = whole.to(dtype);
  return held.masked_select(held.to(at::kLong).eq(whole));
}

/// What the attributes of a variable say of its numbers.
struct Convention {
  at::Tensor fills;     ///< numbers that stand for none, of the variable's type; none when empty
  double scale = 1.0;   ///< of what a number stands for
  double offset = 0.0;  ///< is added then
  bool is_packed = false;
};

Convention convention_of(const std::filesystem::path& path, hid_t data, c10::ScalarType dtype) {
  Convention found;
  std::vector<at::Tensor> fills;
  for (const char* name : {"_FillValue", "missing_value"}) {
    if (const at::Tensor numbers = attribute(path, data, name); numbers.defined()) {
      fills.push_back(possible_in(dtype, numbers));
    }
  }
  found.fills = fills.empty() ? at::empty({0}, dtype) : at::cat(fills);
  const auto read = [&](const char* name, double& to) {
    const at::Tensor number = attribute(path, data, name);
    if (number.defined()) {
      to = number[0].item<double>();
      found.is_packed = true;
    }
  };
  read("scale_factor", found.scale);
  read("add_offset", found.offset);
  return found;
}

at::Tensor is_fill(const at::Tensor& numbers, const at::Tensor& fills) {
  at::Tensor found = at::zeros(numbers.sizes(), at::kBool);
  for (int64_t i = 0; i < fills.size(0); ++i) {
    found.logical_or_(numbers.eq(fills[i]));
  }
  return found;
}

/// Fill values as NaN, and packed numbers as what they stand for.
/// Source: CF Conventions 1.11, 2.5.1 and 8.1.
at::Tensor unpacked(const at::Tensor& packed, const Convention& convention) {
  constexpr int64_t kPart = int64_t{1} << 20;  // elements, so that copies in float64 stay small
  const at::Tensor flat = packed.flatten();
  bool has_fill = false;
  for (int64_t at = 0; at < flat.numel() && convention.fills.numel() > 0 && !has_fill;
       at += kPart) {
    has_fill = is_fill(flat.slice(0, at, at + kPart), convention.fills).any().item<bool>();
  }
  if (!convention.is_packed && !has_fill) {
    return packed;
  }
  const bool is_wide = packed.scalar_type() == at::kInt || packed.scalar_type() == at::kLong ||
                       packed.scalar_type() == at::kDouble;
  const at::Tensor values = at::empty(flat.sizes(), is_wide ? at::kDouble : at::kFloat);
  for (int64_t at = 0; at < flat.numel(); at += kPart) {
    const at::Tensor part = flat.slice(0, at, at + kPart);
    at::Tensor numbers = part.to(at::kDouble).mul(convention.scale).add_(convention.offset);
    numbers.masked_fill_(is_fill(part, convention.fills), std::numeric_limits<double>::quiet_NaN());
    values.slice(0, at, at + kPart).copy_(numbers);
  }
  return values.reshape(packed.sizes());
}

}  // namespace

at::Tensor read_hdf5(const std::filesystem::path& path, const std::string& name, bool unpack) {
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
  if (tensor.numel() > 0) {
    require_whole_chunks(path, data.id(), shape, H5Tget_size(type.id()));
  }
  if (tensor.numel() > 0 &&
      H5Dread(data.id(), in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data_ptr()) < 0) {
    fail(path, fmt::format("its variable \"{}\" cannot be read: {}", wanted, reason()));
  }
  return unpack ? unpacked(tensor, convention_of(path, data.id(), dtype)) : tensor;
}

}  // namespace rondo
