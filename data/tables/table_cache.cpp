#include "data/tables/table_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <string_view>
#include <utility>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/version.h"
#include "data/arrays/npy_file.h"
#include "data/internal/learnt.h"
#include "data/tables/table_fit.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;
using detail::list_of;
using detail::texts_of;

constexpr const char* kTensors[] = {"features", "categories", "label", "weight"};
constexpr const char* kRowNumbers = ".rows.npy";

/// The first and the last bytes of a file: a change that keeps size and time is seldom elsewhere.
std::string ends_of(const fs::path& path, int64_t size) {
  constexpr int64_t kBytes = 65536;
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(std::min(size, kBytes)), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::string last(bytes.size(), '\0');
  stream.seekg(-static_cast<std::streamoff>(last.size()), std::ios::end);
  stream.read(last.data(), static_cast<std::streamsize>(last.size()));
  return bytes + last;
}

std::string describe_file(const fs::path& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) {
    throw IoError(path.string() + ": cannot be looked at", errno);
  }
  return fmt::format("{} {} {}.{:09} {:016x}",
                     fs::weakly_canonical(path).string(),
                     found.st_size,
                     found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec,
                     std::hash<std::string>{}(ends_of(path, found.st_size)));
}

const char* npy_type(at::ScalarType type) {
  return type == at::kFloat ? "<f4" : "<i8";
}

/// Source: NumPy, numpy/lib/format.py, "Format Version 1.0".
std::string npy_header(const at::Tensor& tensor) {
  std::string shape;
  for (const int64_t size : tensor.sizes()) {
    shape += fmt::format("{},", size);
  }
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 npy_type(tensor.scalar_type()),
                                 shape);
  constexpr size_t kBefore = 10;
  constexpr size_t kAligned = 64;
  const size_t whole = (kBefore + text.size() + 1 + kAligned - 1) / kAligned * kAligned;
  text.resize(whole - kBefore - 1, ' ');
  const auto length = static_cast<uint16_t>(whole - kBefore);
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(length & 0xFFU);
  header += static_cast<char>(length >> 8U);
  return header + text + "\n";
}

void write_npy(const fs::path& path, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  write_atomically(*real_file_system(), path, [&](WritableFile& file) {
    const std::string header = npy_header(whole);
    file.append(header.data(), header.size());
    file.append(whole.data_ptr(), whole.nbytes());
  });
}

/// Whether a file that someone else may have written names that many samples.
bool are_whole(const RowNames& names, int64_t rows) {
  const std::vector<int64_t>& first = names.first_rows;
  const bool is_in_order = std::is_sorted(first.begin(), first.end());
  return names.rows.scalar_type() == at::kLong && names.rows.sizes() == at::IntArrayRef({rows}) &&
         (rows == 0 || names.rows.min().item<int64_t>() >= 0) &&
         (names.ids.empty() || names.ids.size() == static_cast<size_t>(rows)) &&
         names.files.size() == first.size() && is_in_order && (first.empty() || first.front() == 0);
}

}  // namespace

TableCache::TableCache(fs::path folder,
                       const std::vector<fs::path>& sources,
                       const std::string& options,
                       const TableFit* given)
    : folder_(std::move(folder)),
      key_(fmt::format("rondo {}\n{}\n", kVersion, options)),
      given_(given != nullptr ? given->state() : StateDict()) {
  for (const fs::path& source : sources) {
    key_ += describe_file(source) + "\n";
  }
  name_ = fmt::format(
      "table-{:016x}{}", std::hash<std::string>{}(key_), given != nullptr ? "-given" : "");
}

fs::path TableCache::path_of(const std::string& ending) const {
  return folder_ / (name_ + ending);
}

bool TableCache::is_for(const StateDict& stored) const {
  const StateValue* const given = stored.find("given");
  const StateDict learnt =
      given != nullptr ? TableFit::from(given->as_dict()).state() : StateDict();
  return stored.at("key").as_string() == key_ && first_difference(learnt, given_).empty();
}

std::optional<DecodedTable> TableCache::find() const {
  const fs::path path = path_of(".pt");
  if (!fs::exists(path)) {
    return std::nullopt;
  }
  try {
    const StateDict state = read_checkpoint(path);
    if (!is_for(state)) {
      return std::nullopt;
    }
    DecodedTable table;
    table.fit = state.at("fit").as_dict();
    table.names.ids = texts_of(state.at("ids"));
    table.names.files = texts_of(state.at("files"));
    for (const StateValue& first : state.at("first_rows").as_list()) {
      table.names.first_rows.push_back(first.as_int());
    }
    table.names.rows = read_npy(path_of(kRowNumbers))[""];
    table.notes.summary = state.at("summary").as_string();
    table.notes.warnings = texts_of(state.at("warnings"));
    for (const std::string& name : texts_of(state.at("tensors"))) {
      table.tensors.set(name, read_npy(path_of("." + name + ".npy"))[""]);
    }
    const int64_t rows = state.at("rows").as_int();
    const auto& tensors = table.tensors.items();
    const bool is_whole = std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
      return tensor.second.dim() > 0 && tensor.second.size(0) == rows;
    });
    return is_whole && are_whole(table.names, rows) && table.tensors.find("features") != nullptr
               ? std::optional<DecodedTable>(std::move(table))
               : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // the table is read again, and stored
  }
}

void TableCache::store(const DecodedTable& table) const {
  real_file_system()->create_directories(folder_);
  StateList names;
  for (const char* const name : kTensors) {
    if (const at::Tensor* const tensor = table.tensors.find(name)) {
      write_npy(path_of(fmt::format(".{}.npy", name)), *tensor);
      names.emplace_back(std::string(name));
    }
  }
  write_npy(path_of(kRowNumbers), table.names.rows);
  // Last: where it is, the others are.
  StateDict state{
      {"key", key_},
      {"fit", table.fit},
      {"ids", list_of(table.names.ids)},
      {"files", list_of(table.names.files)},
      {"first_rows", StateList(table.names.first_rows.begin(), table.names.first_rows.end())},
      {"summary", table.notes.summary},
      {"warnings", list_of(table.notes.warnings)},
      {"tensors", std::move(names)},
      {"rows", table.tensors["features"].size(0)}};
  if (!given_.empty()) {
    state.set("given", given_);
  }
  write_checkpoint(*real_file_system(), path_of(".pt"), state);
}

}  // namespace rondo
