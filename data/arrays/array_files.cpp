#include "data/arrays/array_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/arrays/hdf5_file.h"
#include "data/arrays/npy_file.h"
#include "data/data_dir.h"
#include "data/internal/rows.h"
#include "data/optional_reader.h"
#include "data/register.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;

/// The tensors of a state by their paths.
void collect(const StateDict& state, const std::string& path, TensorMap& tensors) {
  for (const StateDict::Item& item : state.items()) {
    const std::string name = path.empty() ? item.first : path + "/" + item.first;
    if (item.second.is_tensor()) {
      tensors.set(name, item.second.as_tensor());
    } else if (item.second.is_dict()) {
      collect(item.second.as_dict(), name, tensors);
    }
  }
}

TensorMap read_arrays(const fs::path& path) {
  if (path.extension() == ".npy") {
    return read_npy(path);
  }
  if (path.extension() == ".npz") {
    return read_npz(path);
  }
  TensorMap tensors;
  collect(read_checkpoint(path), "", tensors);
  return tensors;
}

at::Tensor array_of(const ArraySource& source, const fs::path& path, bool unpack) {
  if (!source.raw.dtype.empty()) {
    return read_raw(path, source.raw);
  }
  if (is_hdf5(path)) {
    return read_hdf5(path, source.entry, unpack);
  }
  const TensorMap all = read_arrays(path);
  if (source.entry.empty() && all.items().size() == 1) {
    return all.items().front().second;
  }
  if (const at::Tensor* found = all.find(source.entry)) {
    return *found;
  }
  // A safetensors file's tensors are read as those of a model.
  if (const at::Tensor* found = all.find("model/" + source.entry)) {
    return *found;
  }
  std::vector<std::string> names;
  for (const NamedTensor& tensor : all.items()) {
    names.push_back(tensor.first);
  }
  throw DataError(fmt::format("{}: there is no array \"{}\"{}; there are [{}]",
                              path.string(),
                              source.entry,
                              suggestion(source.entry, names),
                              fmt::join(names, ", ")));
}

at::Tensor narrowed(const at::Tensor& array) {
  const bool is_other = array.scalar_type() == at::kDouble || array.scalar_type() == at::kHalf;
  return is_other ? array.to(at::kFloat) : array;
}

/// The arrays, each with one row a sample.
TensorMap arrays_of(const ArrayFiles::Options& options) {
  TensorMap arrays;
  for (const ArraySource& source : options.arrays) {
    const fs::path path =
        find_data_file(options.data_dir, {"ArrayFiles", {source.file}, options.folder, ""});
    const at::Tensor array = array_of(source, path, options.unpack);
    if (array.dim() == 0 || array.numel() == 0) {
      throw DataError(fmt::format("{}: tensor \"{}\" {}, where rows were expected",
                                  path.string(),
                                  source.tensor,
                                  array.dim() == 0 ? "is a single number" : "has no elements"));
    }
    if (!arrays.empty() && array.size(0) != arrays.items().front().second.size(0)) {
      throw DataError(fmt::format("{}: tensor \"{}\" has {} rows, \"{}\" has {}",
                                  path.string(),
                                  source.tensor,
                                  array.size(0),
                                  arrays.items().front().first,
                                  arrays.items().front().second.size(0)));
    }
    arrays.set(source.tensor, array);
  }
  return arrays;
}

/// Those rows that are used.
TensorMap rows_of(const ArrayFiles::Options& options) {
  detail::require(!options.arrays.empty(), "ArrayFiles: arrays", "at least one", "none");
  TensorMap rows = arrays_of(options);
  const auto [first, end] = detail::checked_range(
      "ArrayFiles", options.first, options.count, rows.items().front().second.size(0));
  for (const auto& [name, array] : TensorMap(rows).items()) {
    const at::Tensor used = array.slice(0, first, end);
    rows.set(name, options.narrow ? narrowed(used) : used);
  }
  return rows;
}

/// `{ file = "data.pt", entry = "y" }`, or `{ file = "a.bin", dtype = "float32", shape = [3] }`.
KeyTable<ArraySource> source_keys() {
  KeyTable<ArraySource> keys;
  keys.key("file", &ArraySource::file, "name or path")
      .required()
      .key("entry", &ArraySource::entry, "in the file, where it holds several arrays")
      .table("raw", &ArraySource::raw, raw_array_keys(), "of a file with nothing but numbers");
  return keys;
}

/// `{ x = "x.npy", label = { file = "data.pt", entry = "y" } }`.
struct ArraysOption {
  static std::string name() {
    return "a table with a file for each tensor: { x = \"x.npy\", y = { file = \"a.pt\", entry = "
           "\"y\" } }";
  }

  static std::optional<std::vector<ArraySource>> read(const ConfigValue& value, FaultSink& faults) {
    const auto* table = value.get_if<ConfigTable>();
    if (table == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    std::vector<ArraySource> arrays;
    for (const ConfigEntry& entry : table->entries()) {
      auto source = read_one(entry, faults);
      if (!source) {
        return std::nullopt;
      }
      arrays.push_back(std::move(*source));
    }
    return arrays;
  }

  static ConfigValue write(const std::vector<ArraySource>& arrays) {
    ConfigTable table;
    for (const ArraySource& array : arrays) {
      const bool is_file = array.entry.empty() && array.raw.dtype.empty();
      table.set(array.tensor,
                is_file ? ConfigValue(array.file) : ConfigValue(source_keys().write(&array)));
    }
    return ConfigValue(std::move(table));
  }

 private:
  static std::optional<ArraySource> read_one(const ConfigEntry& entry, FaultSink& faults) {
    if (const std::string* file = entry.value.get_if<std::string>()) {
      return ArraySource{entry.key, *file, ""};
    }
    FaultSink inside = faults.inside(entry.key);
    const auto* table = entry.value.get_if<ConfigTable>();
    if (table == nullptr) {
      return detail::mismatch(entry.value, "a file, or a table with file and entry", inside);
    }
    ArraySource source;
    source.tensor = entry.key;
    source_keys().read(*table, entry.value.position(), &source, inside);
    return source;
  }
};

}  // namespace

void ArrayFiles::check(const Options& options) {
  for (const ArraySource& source : options.arrays) {
    if (source.raw.dtype.empty() && is_hdf5(source.file)) {
      require_reader("HDF5", source.file);
    }
  }
}

ArrayFiles::ArrayFiles(const Options& options)
    : rows_((check(options), TensorDataset::Options{rows_of(options)})) {}

void register_array_files(Registry<DataSource>& registry) {
  using Options = ArrayFiles::Options;
  registry
      .add<ArrayFiles>(
          "ArrayFiles",
          "Rows of arrays in files, each a tensor: .npy, .npz, .safetensors, .pt, HDF5, NetCDF-4, "
          "raw." +
              not_built_note("HDF5"))
      .key_of("arrays", &Options::arrays, ArraysOption{}, "where each tensor of a batch comes from")
      .required()
      .key("narrow", &Options::narrow, "give float64 and float16 arrays as float32")
      .key("unpack",
           &Options::unpack,
           "of HDF5 and NetCDF-4: give fill values as NaN, and packed numbers by scale_factor and "
           "add_offset")
      .key("first", &Options::first, at_least(0), "number of the first row that is used")
      .key("count", &Options::count, at_least(1), "rows from there; all when absent")
      .key("data_dir", &Options::data_dir, "directory of the files; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
