#include "data/tables/table_cache.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

namespace fs = std::filesystem;

const char* const kTable =
    "id,x,kind,label,w\na,1.5,red,cat,1\nb,2.5,blue,dog,2\nc,-1,red,dog,0.5\nd,4,green,cat,1\n";

CsvTable::Options cached_table_in(const TempDir& dir) {
  CsvTable::Options options;
  options.file = (dir / "a.csv").string();
  options.cache = (dir / "cache").string();
  options.label_type = "category";
  options.weight_column = "w";
  options.id_column = "id";
  options.scale = "standard";
  return options;
}

void require_same(const CsvTable& a, const CsvTable& b) {
  REQUIRE(a.size() == b.size());
  std::vector<int64_t> all;
  for (int64_t i = 0; i < a.size(); ++i) {
    all.push_back(i);
    CHECK(a.sample_name(i) == b.sample_name(i));
  }
  const Batch first = a.get_batch(all);
  const Batch second = b.get_batch(all);
  REQUIRE(first.items().size() == second.items().size());
  for (const NamedTensor& tensor : first.items()) {
    CAPTURE(tensor.first);
    CHECK(equal_bytes(tensor.second, second[tensor.first]));
  }
  CHECK(first_difference(a.fitted(), b.fitted()) == "");
  CHECK(a.facts().class_names == b.facts().class_names);
  CHECK(a.notes().summary == b.notes().summary);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  return files;
}

}  // namespace

TEST_SUITE_BEGIN("data/table_cache");

TEST_CASE("a table from the cache is the table that was read") {
  const TempDir dir;
  write_file(dir / "a.csv", kTable);
  CsvTable::Options plain = cached_table_in(dir);
  plain.cache.clear();
  const CsvTable without(plain);
  const CsvTable read(cached_table_in(dir));
  require_same(read, without);
  CHECK(files_in(dir / "cache").size() == 6);
  const auto before = fs::last_write_time(files_in(dir / "cache").front());
  const CsvTable cached(cached_table_in(dir));
  require_same(cached, without);
  CHECK(fs::last_write_time(files_in(dir / "cache").front()) == before);
}

TEST_CASE("other options and a changed file have a table of their own") {
  const TempDir dir;
  write_file(dir / "a.csv", kTable);
  CsvTable::Options options = cached_table_in(dir);
  const CsvTable first(options);
  options.scale = "none";
  CHECK(CsvTable(options).get(0)["features"][0].item<float>() == 1.5F);
  std::string changed = kTable;
  changed.replace(changed.find("1.5"), 3, "7.5");
  write_file(dir / "a.csv", changed);
  CHECK(CsvTable(options).get(0)["features"][0].item<float>() == 7.5F);
}

TEST_CASE("a table that is read with what another one learnt has its own cache") {
  const TempDir dir;
  write_file(dir / "a.csv", kTable);
  write_file(dir / "train.csv", "id,x,kind,label,w\ne,10,red,cat,1\nf,20,blue,dog,1\n");
  CsvTable::Options trained = cached_table_in(dir);
  trained.file = (dir / "train.csv").string();
  trained.cache.clear();
  const StateDict fitted = CsvTable(trained).fitted();
  const auto taught = [&](bool is_cached) {
    CsvTable::Options options = cached_table_in(dir);
    options.cache = is_cached ? options.cache : "";
    auto table = std::make_unique<CsvTable>(options);
    table->take_fitted(fitted);
    return table;
  };
  const auto without = taught(false);
  require_same(*taught(true), *without);
  CHECK(files_in(dir / "cache").size() == 12);
  const auto earlier = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::path& file : files_in(dir / "cache")) {
    fs::last_write_time(file, earlier);
  }
  require_same(*taught(true), *without);
  for (const fs::path& file : files_in(dir / "cache")) {
    CHECK((fs::last_write_time(file) < earlier + std::chrono::minutes(1)));
  }
  trained.scale = "none";
  CsvTable other(cached_table_in(dir));
  other.take_fitted(CsvTable(trained).fitted());
  CHECK(other.get(0)["features"][0].item<float>() == 1.5F);
}

TEST_CASE("a cache that is cut or changed anywhere counts as none") {
  const TempDir dir;
  write_file(dir / "a.csv", kTable);
  CsvTable::Options plain = cached_table_in(dir);
  plain.cache.clear();
  const CsvTable without(plain);
  const CsvTable written(cached_table_in(dir));
  for (const fs::path& file : files_in(dir / "cache")) {
    CAPTURE(file.string());
    std::ifstream in(file, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (const size_t size : {size_t{0}, size_t{9}, good.size() / 2, good.size() - 1}) {
      CAPTURE(size);
      write_file(file, good.substr(0, size));
      require_same(CsvTable(cached_table_in(dir)), without);
    }
  }
}

TEST_SUITE_END();
