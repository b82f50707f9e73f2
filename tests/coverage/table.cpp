#include "coverage/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace rondo::test {

namespace {

namespace fs = std::filesystem;

using Key = std::pair<std::string, std::string>;  // family and name

constexpr const char* kColumns = "family\tname\tway\treason";

// "2.13" is newer than "2.6".
std::vector<int> numbers_of(const std::string& version) {
  std::vector<int> numbers;
  std::istringstream text(version);
  for (std::string part; std::getline(text, part, '.');) {
    numbers.push_back(std::stoi(part));
  }
  return numbers;
}

struct VersionTable {
  std::string version;
  std::map<Key, TableRow> rows;
};

std::map<Key, TableRow> by_key(const Table& table) {
  std::map<Key, TableRow> rows;
  for (const TableRow& row : table) {
    rows[{row.family, row.name}] = row;
  }
  return rows;
}

std::vector<VersionTable> read_versions(const fs::path& folder) {
  std::vector<VersionTable> versions;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".tsv") {
      versions.push_back({file.path().stem().string(), by_key(read_tsv(file.path()))});
    }
  }
  std::sort(versions.begin(), versions.end(), [](const auto& a, const auto& b) {
    return numbers_of(a.version) < numbers_of(b.version);
  });
  return versions;
}

std::string summary(const VersionTable& table) {
  std::map<std::string, int> counts;
  for (const auto& [key, row] : table.rows) {
    ++counts[row.way];
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n",
                     table.version,
                     table.rows.size(),
                     counts["traced"],
                     counts["guarded"],
                     counts["eager"],
                     counts["refused"]);
}

// A bar would end the cell.
std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, 1, '\\');
  }
  return text;
}

std::string family_table(const std::string& title,
                         const std::string& family,
                         const std::vector<VersionTable>& versions) {
  std::set<std::string> names;
  std::string header = "| name |";
  std::string rule = "|---|";
  for (const VersionTable& table : versions) {
    header += " " + table.version + " |";
    rule += "---|";
    for (const auto& [key, row] : table.rows) {
      if (key.first == family) {
        names.insert(key.second);
      }
    }
  }
  std::string page = fmt::format("\n## {}\n\n{} why not traced |\n{}---|\n", title, header, rule);
  for (const std::string& name : names) {
    page += "| `" + name + "` |";
    std::string reason;
    for (const VersionTable& table : versions) {
      const auto row = table.rows.find({family, name});
      page += row == table.rows.end() ? " – |" : " " + row->second.way + " |";
      if (row != table.rows.end() && !row->second.reason.empty()) {
        reason = row->second.reason;
      }
    }
    page += " " + cell(reason) + " |\n";
  }
  return page;
}

}  // namespace

std::string to_tsv(const Table& table) {
  std::string text = std::string(kColumns) + '\n';
  for (const TableRow& row : table) {
    text += row.family + '\t' + row.name + '\t' + row.way + '\t' + row.reason + '\n';
  }
  return text;
}

Table read_tsv(const fs::path& path) {
  Table table;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      c == '\t' ? static_cast<void>(cells.emplace_back()) : cells.back().push_back(c);
    }
    if (cells.size() != 4) {
      throw std::runtime_error(path.string() + ": a line has not four columns: " + line);
    }
    table.push_back({cells[0], cells[1], cells[2], cells[3]});
  }
  return table;
}

std::string coverage_page(const fs::path& folder) {
  const std::vector<VersionTable> versions = read_versions(folder);
  std::string page = R"(# What can be traced

Each row is one training step, run for eight updates under both backends. Losses and state of the two runs are equal,
byte for byte. Numbers differ in each update; integers (labels, lengths, indices) are others in the last four, when the step was replayed
before. Where LibTorch itself leaves bytes to chance, they are not compared, and the row says so. `rondo_coverage --write`
writes this page and the table of the LibTorch at hand, `coverage/<version>.tsv`. The test
`coverage/table` compares that table. "–": this version does not have it.

| word | the step |
|---|---|
| traced | is recorded and replayed |
| guarded | is replayed, and compares in each replay what the host read |
| eager | runs as it is written, with a warning |
| refused | ends the run with a CaptureError |

| LibTorch | rows | traced | guarded | eager | refused |
|---|---|---|---|---|---|
)";
  for (const VersionTable& table : versions) {
    page += summary(table);
  }
  page += family_table("Modules", "module", versions);
  page += family_table("Losses", "loss", versions);
  page += family_table("Functions of torch::nn::functional", "functional", versions);
  page += family_table("Operators", "operator", versions);
  return page;
}

std::string differences(const Table& expected, const Table& got) {
  const std::map<Key, TableRow> before = by_key(expected);
  const std::map<Key, TableRow> after = by_key(got);
  std::string text;
  for (const auto& [key, row] : after) {
    const auto other = before.find(key);
    if (other == before.end()) {
      text += fmt::format("{} {}: not in the table\n", key.first, key.second);
    } else if (other->second.way != row.way || other->second.reason != row.reason) {
      text += fmt::format("{} {}: {} {}, in the table {} {}\n",
                          key.first,
                          key.second,
                          row.way,
                          row.reason,
                          other->second.way,
                          other->second.reason);
    }
  }
  for (const auto& [key, row] : before) {
    if (after.count(key) == 0) {
      text += fmt::format("{} {}: only in the table\n", key.first, key.second);
    }
  }
  return text;
}

}  // namespace rondo::test
