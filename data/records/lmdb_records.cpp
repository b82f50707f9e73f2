#include "data/records/lmdb_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/rows.h"
#include "data/records/lmdb_file.h"
#include "data/register.h"

namespace rondo {

namespace {

RecordForm form_of(const LmdbRecords::Options& options) {
  return {options.tensors, options.height, options.width, options.channels};
}

}  // namespace

/// Where the files of every sample are.
struct LmdbRecords::Index {
  struct File {
    std::string ending;
    std::string_view value;  // in the mapped file
  };

  struct Record {
    std::string name;
    size_t first;  // of its files
  };

  explicit Index(const std::filesystem::path& path) : database(path) {}

  LmdbFile database;
  std::vector<File> files;
  std::vector<Record> records;
};

void LmdbRecords::check(const Options& options) {
  detail::require(!options.file.empty(), "LmdbRecords: file", "given", "\"\"");
  check_form("LmdbRecords", form_of(options));
}

LmdbRecords::LmdbRecords(const Options& options) : options_(options) {
  check(options_);
  const std::filesystem::path path = find_data_file(
      options_.data_dir,
      {"LmdbRecords", {options_.file + "/data.mdb", options_.file}, options_.folder, ""});
  index_ = std::make_unique<Index>(path);
  index_->database.visit([&](std::string_view key, std::string_view value) {
    auto [name, ending] = split_record_name(std::string(key));
    if (ending.empty()) {
      ending = options_.ending;
    }
    if (index_->records.empty() || index_->records.back().name != name) {
      index_->records.push_back({std::move(name), index_->files.size()});
    }
    index_->files.push_back({std::move(ending), value});
  });
  if (index_->records.empty()) {
    throw DataError(index_->database.path().string() + ": it has no key");
  }
}

LmdbRecords::~LmdbRecords() = default;

int64_t LmdbRecords::size() const {
  return static_cast<int64_t>(index_->records.size());
}

Sample LmdbRecords::get(int64_t index) const {
  detail::check_index(index, size());
  const auto at = static_cast<size_t>(index);
  const Index::Record& record = index_->records[at];
  const bool is_last = at + 1 == index_->records.size();
  const size_t end = is_last ? index_->files.size() : index_->records[at + 1].first;
  std::vector<RecordFile> files;
  for (size_t i = record.first; i < end; ++i) {
    files.push_back({index_->files[i].ending, index_->files[i].value});
  }
  return read_record(fmt::format("{}: {}", index_->database.path().string(), record.name),
                     files,
                     form_of(options_));
}

std::string LmdbRecords::sample_name(int64_t index) const {
  detail::check_index(index, size());
  return index_->records[static_cast<size_t>(index)].name;
}

void register_lmdb_records(Registry<DataSource>& registry) {
  using Options = LmdbRecords::Options;
  registry
      .add<LmdbRecords>("LmdbRecords",
                        "Samples in an LMDB database, whose keys are names of small files.")
      .key("file", &Options::file, "the database: its folder, or its file")
      .required()
      .key_of("tensors", &Options::tensors, RecordTensorsOption{}, "which file each tensor is")
      .required()
      .key("ending", &Options::ending, "of keys that have none, such as \"npz\"")
      .key("height", &Options::height, at_least(1), "rows of pixels of a picture")
      .key("width", &Options::width, at_least(1), "pixels of a row")
      .key("channels", &Options::channels, "1: grey; 3: red, green and blue")
      .key("data_dir", &Options::data_dir, "directory of the database; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
