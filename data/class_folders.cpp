#include "data/class_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/require.h"
#include "core/utf8.h"
#include "data/data_dir.h"
#include "data/internal/learnt.h"
#include "data/internal/read_file.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

fs::path root_of(const ClassFolders::Wanted& wanted) {
  const fs::path base = wanted.data_dir.value_or(default_data_dir());
  const fs::path root = base / wanted.root;  // an absolute root stands for itself
  if (!fs::is_directory(root)) {
    throw DataError(
        fmt::format("{}: there is no folder {}; set root, or the data_dir that holds it",
                    wanted.owner,
                    root.string()));
  }
  return root;
}

std::vector<std::string> sorted_folders(const fs::path& root) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.front() != '.') {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool ends_like(const fs::path& path, const std::vector<std::string>& endings) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

std::vector<fs::path> sorted_files(const fs::path& folder,
                                   const std::vector<std::string>& endings) {
  std::vector<fs::path> paths;
  if (fs::is_directory(folder)) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (ends_like(entry.path(), endings) && entry.is_regular_file()) {
        paths.push_back(entry.path());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// \param what  has none, for the error: "class \"cat\" has"
std::vector<fs::path> files_under(const ClassFolders::Wanted& wanted,
                                  const fs::path& folder,
                                  const std::string& what) {
  std::vector<fs::path> paths = sorted_files(folder, wanted.endings);
  if (paths.empty()) {
    throw DataError(fmt::format("{}: {} no {} file in {}",
                                wanted.owner,
                                what,
                                fmt::join(wanted.endings, ", "),
                                folder.string()));
  }
  return paths;
}

void check(const ClassFolders::Wanted& wanted) {
  check_split(wanted.owner, wanted.split);
  detail::require(column_of(wanted.split).empty(),
                  wanted.owner + ": split.by",
                  R"("random", "stratified" or "fold:<k>/<n>")",
                  "\"" + wanted.split.by + "\"");
  detail::require(wanted.labelled || wanted.classes.empty(),
                  wanted.owner + ": classes",
                  "none where labelled is false",
                  fmt::format("{}", fmt::join(wanted.classes, ", ")));
  detail::require(wanted.labelled || wanted.labels_file.empty(),
                  wanted.owner + ": labels_file",
                  "none where labelled is false",
                  wanted.labels_file);
}

void add_folders(const ClassFolders::Wanted& wanted, ClassFolders& found) {
  found.classes = wanted.classes.empty() ? sorted_folders(found.root) : wanted.classes;
  for (size_t label = 0; label < found.classes.size(); ++label) {
    const std::string& name = found.classes[label];
    for (const fs::path& path :
         files_under(wanted, found.root / name, fmt::format("class \"{}\" has", name))) {
      found.files.push_back({path, static_cast<int64_t>(label)});
    }
  }
  if (found.files.empty()) {
    throw DataError(
        fmt::format("{}: {} has no folders, one for each class; labelled = false reads "
                    "files without a class",
                    wanted.owner,
                    found.root.string()));
  }
}

/// The number of a column by its name in the first line.
size_t column_in(const fs::path& table,
                 const std::vector<std::string>& header,
                 const std::string& name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    throw DataError(fmt::format("{}: its first line has no column \"{}\"{}",
                                table.string(),
                                name,
                                suggestion(name, header)));
  }
  return static_cast<size_t>(found - header.begin());
}

/// A file of a table, and the class that it has there.
struct Listed {
  fs::path path;
  std::string label;
};

/// \throws DataError  naming the row: without a class, or of a file that is not there
std::vector<Listed> read_labels(const fs::path& table, const fs::path& root) {
  const std::string text = detail::read_data_file(table);
  const auto rows = csv_rows(without_byte_order_mark(text));
  const std::vector<std::string> header = rows.empty() ? std::vector<std::string>() : rows.front();
  const size_t file = column_in(table, header, "file");
  const size_t label = column_in(table, header, "label");
  std::vector<Listed> listed;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() <= std::max(file, label)) {
      throw DataError(fmt::format("{}: row {} has {} fields, the first line has {}",
                                  table.string(),
                                  i,
                                  rows[i].size(),
                                  header.size()));
    }
    const fs::path inside = fs::path(rows[i][file]).lexically_normal();
    if (inside.is_absolute() || (!inside.empty() && *inside.begin() == "..")) {
      throw DataError(fmt::format("{}: row {}: \"{}\" is not in the folder of the data set",
                                  table.string(),
                                  i,
                                  rows[i][file]));
    }
    listed.push_back({root / inside, rows[i][label]});
    if (!fs::is_regular_file(listed.back().path)) {
      throw DataError(fmt::format(
          "{}: row {}: there is no file {}", table.string(), i, listed.back().path.string()));
    }
  }
  return listed;
}

/// In the order of the table. Files of other classes than those wanted are left out.
void add_listed(const ClassFolders::Wanted& wanted, ClassFolders& found) {
  const fs::path table = found.root / wanted.labels_file;
  const std::vector<Listed> listed = read_labels(table, found.root);
  std::set<std::string> labels;
  for (const Listed& file : listed) {
    labels.insert(file.label);
  }
  found.classes = wanted.classes;
  if (wanted.classes.empty()) {
    found.classes.assign(labels.begin(), labels.end());
  }
  for (const std::string& name : found.classes) {
    if (labels.count(name) == 0) {
      throw DataError(
          fmt::format("{}: class \"{}\" has no row in {}", wanted.owner, name, table.string()));
    }
  }
  for (const Listed& file : listed) {
    const auto at = std::find(found.classes.begin(), found.classes.end(), file.label);
    if (at != found.classes.end()) {
      found.files.push_back({file.path, at - found.classes.begin()});
    }
  }
  if (found.files.empty()) {
    throw DataError(fmt::format("{}: {} has no row", wanted.owner, table.string()));
  }
}

/// Leaves the files of the wanted part, in their order.
void keep_part(const ClassFolders::Wanted& wanted, ClassFolders& found) {
  const std::vector<TablePart> parts = split_rows(wanted.split, found.files.size(), found.labels());
  std::vector<ClassFolders::File> kept;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (takes(wanted.split, parts[i])) {
      kept.push_back(found.files[i]);
    }
  }
  if (kept.empty()) {
    throw DataError(fmt::format("{}: no file is left for part \"{}\" of the split",
                                wanted.owner,
                                wanted.split.part.value_or("all")));
  }
  found.files = std::move(kept);
}

}  // namespace

ClassFolders ClassFolders::list(const Wanted& wanted) {
  check(wanted);
  ClassFolders found;
  found.owner = wanted.owner;
  found.root = root_of(wanted);
  found.labelled = wanted.labelled;
  if (!wanted.labelled) {
    for (const fs::path& path : files_under(wanted, found.root, "there is")) {
      found.files.push_back({path, 0});
    }
  } else if (!wanted.labels_file.empty()) {
    add_listed(wanted, found);
  } else {
    add_folders(wanted, found);
  }
  keep_part(wanted, found);
  return found;
}

DatasetFacts ClassFolders::facts() const {
  DatasetFacts facts;
  if (!classes.empty()) {
    facts.classes = static_cast<int64_t>(classes.size());
    facts.class_names = classes;
  }
  if (!labelled) {
    return facts;
  }
  std::vector<double> counts(classes.size());
  for (const File& file : files) {
    counts[static_cast<size_t>(file.label)] += 1;
  }
  for (const double count : counts) {
    const double weight =
        static_cast<double>(size()) / (static_cast<double>(classes.size()) * count);
    facts.class_weights.push_back(count == 0 ? 0.0 : weight);  // taken classes may have no file
  }
  return facts;
}

StateDict ClassFolders::fitted() const {
  if (!labelled) {
    return {};
  }
  return {{"type", owner}, {"classes", detail::list_of(classes)}};
}

void ClassFolders::take_fitted(const StateDict& state) {
  detail::require_learnt_by(owner, state);
  std::vector<std::string> learnt = detail::texts_of(state.at("classes"));
  std::vector<File> numbered = files;
  for (size_t i = 0; labelled && i < numbered.size(); ++i) {
    File& file = numbered[i];
    const std::string& name = classes[static_cast<size_t>(file.label)];
    const auto found = std::find(learnt.begin(), learnt.end(), name);
    if (found == learnt.end()) {
      throw DataError(
          fmt::format("{}: class \"{}\" of {} is not one of the {} classes of training{}; "
                      "remove its folder, or name the others in classes",
                      owner,
                      name,
                      root.string(),
                      learnt.size(),
                      suggestion(name, learnt)));
    }
    file.label = found - learnt.begin();
  }
  classes = std::move(learnt);
  files = std::move(numbered);
}

std::vector<double> ClassFolders::labels() const {
  std::vector<double> labels;
  labels.reserve(files.size());
  for (const File& file : files) {
    labels.push_back(static_cast<double>(file.label));
  }
  return labels;
}

std::string ClassFolders::name(int64_t index) const {
  return (*this)[index].path.lexically_relative(root).string();
}

std::string ClassFolders::content(int64_t index) const {
  return detail::read_data_file((*this)[index].path);
}

}  // namespace rondo
