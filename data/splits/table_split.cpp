#include "data/splits/table_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>

#include "core/random.h"
#include "core/require.h"

namespace rondo {

namespace {

struct Fold {
  int64_t number = 0;  // from 1
  int64_t count = 0;
};

std::optional<Fold> fold_of(const std::string& by) {
  Fold fold;
  int end = 0;
  const bool is_fold =
      std::sscanf(by.c_str(), "fold:%ld/%ld%n", &fold.number, &fold.count, &end) == 2 &&
      static_cast<size_t>(end) == by.size();
  const bool holds = is_fold && fold.count >= 2 && fold.number >= 1 && fold.number <= fold.count;
  return holds ? std::optional<Fold>(fold) : std::nullopt;
}

size_t share(double fraction, size_t rows) {
  return static_cast<size_t>(std::llround(fraction * static_cast<double>(rows)));
}

/// Gives the first rows of `order` to validation, those after them to the test.
void give_first(const std::vector<size_t>& order,
                size_t val,
                size_t test,
                std::vector<TablePart>& parts) {
  for (size_t i = 0; i < std::min(order.size(), val + test); ++i) {
    parts[order[i]] = i < val ? TablePart::Val : TablePart::Test;
  }
}

std::vector<size_t> shuffled(size_t size, uint64_t seed, int64_t stream) {
  const std::vector<int64_t> order = permutation(static_cast<int64_t>(size), seed, stream);
  return {order.begin(), order.end()};
}

/// The rows of each key, in the order of the keys.
std::map<double, std::vector<size_t>> rows_by_key(const std::vector<double>& keys) {
  std::map<double, std::vector<size_t>> rows;
  for (size_t i = 0; i < keys.size(); ++i) {
    rows[keys[i]].push_back(i);
  }
  return rows;
}

/// Of each class the same shares, as nearly as whole rows allow over all classes.
void split_stratified(const TableSplit& split,
                      const std::vector<double>& keys,
                      std::vector<TablePart>& parts) {
  size_t before = 0;
  size_t val_before = 0;
  size_t test_before = 0;
  int64_t stream = 1;
  for (const auto& entry : rows_by_key(keys)) {
    const std::vector<size_t>& rows = entry.second;
    before += rows.size();
    const size_t val = share(split.val, before) - val_before;
    const size_t test = share(split.test, before) - test_before;
    val_before += val;
    test_before += test;
    std::vector<size_t> order;
    for (const size_t i : shuffled(rows.size(), split.seed, stream++)) {
      order.push_back(rows[i]);
    }
    give_first(order, val, test, parts);
  }
}

/// Whole groups in random order until a part has its share.
void split_groups(const TableSplit& split,
                  const std::vector<double>& keys,
                  std::vector<TablePart>& parts) {
  std::vector<std::vector<size_t>> groups;
  for (const auto& entry : rows_by_key(keys)) {
    groups.push_back(entry.second);
  }
  const size_t val = share(split.val, keys.size());
  const size_t test = share(split.test, keys.size());
  size_t in_val = 0;
  size_t in_test = 0;
  for (const size_t g : shuffled(groups.size(), split.seed, 0)) {
    const bool is_val = in_val < val;
    const bool is_test = !is_val && in_test < test;
    (is_val ? in_val : in_test) += is_val || is_test ? groups[g].size() : 0;
    for (const size_t row : groups[g]) {
      parts[row] = is_val ? TablePart::Val : (is_test ? TablePart::Test : TablePart::Train);
    }
  }
}

/// The last rows test, those before them validate.
void split_by_time(const TableSplit& split,
                   const std::vector<double>& keys,
                   std::vector<TablePart>& parts) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  const size_t test = share(split.test, keys.size());
  const size_t val = share(split.val, keys.size());
  for (size_t i = 0; i < std::min(order.size(), val + test); ++i) {
    parts[order[order.size() - 1 - i]] = i < test ? TablePart::Test : TablePart::Val;
  }
}

}  // namespace

bool splits_rows(const TableSplit& split) {
  return split.val > 0.0 || split.test > 0.0 || fold_of(split.by).has_value();
}

std::string column_of(const TableSplit& split) {
  for (const char* way : {"group:", "time:"}) {
    if (split.by.rfind(way, 0) == 0) {
      return split.by.substr(std::string(way).size());
    }
  }
  return "";
}

void check_split(const std::string& component, const TableSplit& split) {
  const std::string part = split.part.value_or("all");
  detail::require(part == "train" || part == "val" || part == "test" || part == "all",
                  component + ": split.part",
                  "\"train\", \"val\", \"test\" or \"all\"",
                  "\"" + part + "\"");
  detail::require(split.val >= 0.0 && split.test >= 0.0 && split.val + split.test < 1.0,
                  component + ": split.val + split.test",
                  "in [0, 1)",
                  split.val + split.test);
  const bool is_known = split.by == "random" || split.by == "stratified" ||
                        !column_of(split).empty() || fold_of(split.by);
  detail::require(
      is_known,
      component + ": split.by",
      "\"random\", \"stratified\", \"group:<column>\", \"time:<column>\" or \"fold:<k>/<n>\"",
      "\"" + split.by + "\"");
  detail::require(split.part || !splits_rows(split),
                  component + ": split.part",
                  "given where rows are split: \"train\", \"val\", \"test\" or \"all\"",
                  "nothing");
}

std::vector<TablePart> split_rows(const TableSplit& split,
                                  size_t rows,
                                  const std::vector<double>& keys) {
  std::vector<TablePart> parts(rows, TablePart::Train);
  if (const auto fold = fold_of(split.by)) {
    const std::vector<size_t> order = shuffled(rows, split.seed, 0);
    for (size_t i = 0; i < rows; ++i) {
      const bool is_val = static_cast<int64_t>(i) % fold->count == fold->number - 1;
      parts[order[i]] = is_val ? TablePart::Val : TablePart::Train;
    }
  } else if (split.by == "stratified") {
    split_stratified(split, keys, parts);
  } else if (split.by.rfind("group:", 0) == 0) {
    split_groups(split, keys, parts);
  } else if (split.by.rfind("time:", 0) == 0) {
    split_by_time(split, keys, parts);
  } else {
    give_first(
        shuffled(rows, split.seed, 0), share(split.val, rows), share(split.test, rows), parts);
  }
  return parts;
}

bool takes(const TableSplit& split, TablePart part) {
  const std::string wanted = split.part.value_or("all");
  const char* const name = part == TablePart::Train ? "train"
                           : part == TablePart::Val ? "val"
                                                    : "test";
  return wanted == "all" || wanted == name;
}

}  // namespace rondo
