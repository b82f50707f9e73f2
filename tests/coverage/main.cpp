// rondo_coverage: which modules, losses, functions and operators of LibTorch a traced step can use.

#define DOCTEST_CONFIG_IMPLEMENT  // the precompiled header of the tests asks for it
#include <doctest/doctest.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "coverage/row.h"
#include "coverage/table.h"
#include "coverage/trial.h"

using namespace rondo::test;

namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;

constexpr std::string_view kUsage =
    "usage: rondo_coverage            compares with docs/coverage/<version>.tsv\n"
    "       rondo_coverage --write    writes it, and docs/coverage.md\n"
    "       rondo_coverage NAME...    tries these rows in this process\n";

std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (auto* family : {&modules_of_layers,
                       &modules_of_sequences,
                       &losses,
                       &functionals,
                       &elementwise_operators,
                       &other_operators}) {
    for (Row& row : family()) {
      all.push_back(std::move(row));
    }
  }
  return all;
}

fs::path docs() {
  return fs::path(RONDO_SOURCE_DIR) / "docs";
}

fs::path path_of_table() {
  const std::string version =
      std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR);
  return docs() / "coverage" / (version + ".tsv");
}

Table try_all() {
  constexpr size_t kRowsOfAProcess = 16;
  const std::vector<Row> rows = all_rows();
  Table table;
  while (table.size() < rows.size()) {
    const size_t first = table.size();
    const size_t count = std::min(kRowsOfAProcess, rows.size() - first);
    for (const Outcome& outcome : try_rows_apart(&rows[first], count)) {
      const Row& row = rows[table.size()];
      table.push_back({row.family, row.name, outcome.way, outcome.reason});
    }
  }
  return table;
}

// What no table may hold.
bool has_fault(const Table& table) {
  bool found = false;
  for (const TableRow& row : table) {
    if (row.way == "crashed" || row.way == "wrong" || row.way == "broken") {
      std::printf("fault: %s %s %s\n", row.name.c_str(), row.way.c_str(), row.reason.c_str());
      found = true;
    }
  }
  return found;
}

int write() {
  const Table table = try_all();
  if (has_fault(table)) {
    return 1;
  }
  fs::create_directories(path_of_table().parent_path());
  std::ofstream(path_of_table()) << to_tsv(table);
  std::ofstream(docs() / "coverage.md") << coverage_page(docs() / "coverage");
  return 0;
}

int compare() {
  if (!fs::exists(path_of_table())) {
    std::printf("skipped: no %s\n", path_of_table().c_str());
    return kSkipped;
  }
  std::ifstream page(docs() / "coverage.md");
  const bool is_of_tables =
      std::string(std::istreambuf_iterator<char>(page), {}) == coverage_page(docs() / "coverage");
  if (!is_of_tables) {
    std::printf("docs/coverage.md is not what its tables say\n");
  }
  const Table table = try_all();
  const std::string text = differences(read_tsv(path_of_table()), table);
  std::printf("%s%zu rows\n", text.c_str(), table.size());
  const bool is_old = !text.empty() || !is_of_tables;
  if (is_old) {
    std::printf("rondo_coverage --write takes them over\n");
  }
  return has_fault(table) || is_old ? 1 : 0;
}

int try_named(const std::vector<std::string>& names) {
  for (const Row& row : all_rows()) {
    for (const std::string& name : names) {
      if (row.name == name) {
        const Outcome outcome = try_row(row);
        std::printf("%s: %s %s\n", name.c_str(), outcome.way.c_str(), outcome.reason.c_str());
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (arguments.empty()) {
    return compare();
  }
  if (arguments[0] == "--write") {
    return write();
  }
  if (arguments[0].rfind("--", 0) == 0) {
    std::fputs(kUsage.data(), stderr);
    return 2;
  }
  return try_named(arguments);
}
