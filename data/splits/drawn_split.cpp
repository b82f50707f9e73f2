#include "data/splits/drawn_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/fingerprint.h"

namespace rondo {

namespace {

bool are_same_options(const TableSplit& a, const TableSplit& b) {
  return a.val == b.val && a.test == b.test && a.by == b.by && a.seed == b.seed;
}

std::string shown_split(const TableSplit& split) {
  return fmt::format("{{ val = {}, test = {}, by = \"{}\", seed = {} }}",
                     split.val,
                     split.test,
                     split.by,
                     split.seed);
}

[[noreturn]] void fail_options(const TableSplit& asked, const TableSplit& learnt) {
  Fault fault;
  fault.path = "CsvTable.split";
  fault.message = fmt::format(
      "is {}, but the training data was {}, so that rows that trained would validate; use the same "
      "split, or train again",
      shown_split(asked),
      splits_rows(learnt) ? "split by " + shown_split(learnt) : "not split");
  throw ConfigError(std::move(fault));
}

[[noreturn]] void fail_rows(const std::string& file,
                            const DrawnSplit& drawn,
                            const DrawnSplit& learnt) {
  const std::string column = column_of(drawn.split);
  const std::string change =
      drawn.rows != learnt.rows
          ? fmt::format("from {} rows, now it is drawn from {}", learnt.rows, drawn.rows)
          : fmt::format("from other rows{}",
                        column.empty() ? "" : fmt::format(", or other cells of \"{}\"", column));
  throw DataError(
      fmt::format("{}: the split of the training data was drawn {}, so that rows that trained "
                  "would validate; restore the file, use one that did not train, without split, or "
                  "train again",
                  file,
                  change));
}

}  // namespace

DrawnSplit drawn_split(const TableSplit& split,
                       const std::vector<size_t>& rows,
                       const std::vector<double>& keys) {
  Fingerprint digest;
  for (const size_t row : rows) {
    digest.add(static_cast<uint64_t>(row));
  }
  for (const double key : keys) {
    uint64_t bits = 0;
    std::memcpy(&bits, &key, sizeof(bits));
    digest.add(bits);
  }
  return {split, static_cast<int64_t>(rows.size()), fmt::format("{:016x}", digest.value())};
}

void require_learnt_split(const std::string& file,
                          const DrawnSplit& drawn,
                          const std::vector<DrawnSplit>& learnt) {
  if (learnt.empty() || !splits_rows(drawn.split)) {
    return;
  }
  const DrawnSplit* like = nullptr;
  for (const DrawnSplit& one : learnt) {
    if (are_same_options(one.split, drawn.split)) {
      like = &one;
      if (one.rows == drawn.rows && one.digest == drawn.digest) {
        return;
      }
    }
  }
  if (like == nullptr) {
    fail_options(drawn.split, learnt.front().split);
  }
  fail_rows(file, drawn, *like);
}

StateDict to_state(const DrawnSplit& drawn) {
  return {{"val", drawn.split.val},
          {"test", drawn.split.test},
          {"by", drawn.split.by},
          {"seed", static_cast<int64_t>(drawn.split.seed)},
          {"rows", drawn.rows},
          {"digest", drawn.digest}};
}

DrawnSplit drawn_split_from(const StateDict& state) {
  DrawnSplit drawn;
  drawn.split.val = state.at("val").as_double();
  drawn.split.test = state.at("test").as_double();
  drawn.split.by = state.at("by").as_string();
  drawn.split.seed = static_cast<uint64_t>(state.at("seed").as_int());
  drawn.rows = state.at("rows").as_int();
  drawn.digest = state.at("digest").as_string();
  return drawn;
}

}  // namespace rondo
