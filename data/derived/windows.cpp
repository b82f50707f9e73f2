#include "data/derived/windows.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/batch_memory.h"
#include "data/internal/rows.h"
#include "data/register.h"
#include "data/splits/drawn_split.h"

namespace rondo {

namespace {

void check(const Windows::Options& options) {
  const auto is_share = [](double share) { return share >= 0 && share < 1; };
  detail::require(options.length >= 1, "Windows: length", ">= 1", options.length);
  detail::require(options.horizon >= 1, "Windows: horizon", ">= 1", options.horizon);
  detail::require(options.stride >= 1, "Windows: stride", ">= 1", options.stride);
  detail::require(is_share(options.val), "Windows: val", "in [0, 1)", options.val);
  detail::require(is_share(options.test), "Windows: test", "in [0, 1)", options.test);
  detail::require(
      options.val + options.test < 1, "Windows: val + test", "below 1", options.val + options.test);
  const std::vector<std::string> parts = {"all", "train", "val", "test"};
  const std::string part = options.part.value_or("all");
  detail::require(std::find(parts.begin(), parts.end(), part) != parts.end(),
                  "Windows: part",
                  "\"all\", \"train\", \"val\" or \"test\"",
                  part);
  detail::require(options.part || options.val + options.test == 0,
                  "Windows: part",
                  "given where val or test is above 0: \"train\", \"val\", \"test\" or \"all\"",
                  "nothing");
  detail::require(options.time.empty() || options.max_gap > 0,
                  "Windows: max_gap",
                  "> 0 where time is given",
                  options.max_gap);
}

/// With other shares, rows that trained would validate.
void require_learnt_shares(const Windows::Options& options, const StateDict& fitted) {
  const StateValue* const shares = fitted.find(kWindowShares);
  if (shares == nullptr || options.val + options.test == 0) {
    return;
  }
  const double val = shares->as_dict().at("val").as_double();
  const double test = shares->as_dict().at("test").as_double();
  if (val != options.val || test != options.test) {
    Fault fault;
    fault.path = "Windows";
    fault.message = fmt::format(
        "val = {}, test = {}, but the training data was split with val = {}, test = {}, so that "
        "rows that trained would validate; use the same shares, or train again",
        options.val,
        options.test,
        val,
        test);
    throw ConfigError(std::move(fault));
  }
}

/// Every row of a part, as [rows, columns].
at::Tensor rows_of(const Dataset& part, const std::string& name) {
  constexpr int64_t kBlock = 1024;
  std::vector<at::Tensor> blocks;
  for (int64_t first = 0; first < part.size(); first += kBlock) {
    std::vector<int64_t> indices(static_cast<size_t>(std::min(kBlock, part.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const Batch batch = part.get_batch(indices);
    const at::Tensor& rows = batch[name];
    if (rows.dim() < 1 || c10::isComplexType(rows.scalar_type())) {
      throw DataError(fmt::format("Windows: \"{}\" has no row of numbers for each sample", name));
    }
    blocks.push_back(rows.to(at::kFloat).reshape({rows.size(0), -1}));
  }
  return blocks.empty() ? at::Tensor() : at::cat(blocks);
}

}  // namespace

Windows::Windows(const Options& options)
    : options_((check(options), options)), parts_("Windows", options.parts) {
  find_series();
  learn();
  read();
}

StateDict Windows::fitted() const {
  StateDict learnt = parts_.fitted();
  learnt.set(kWindowShares, StateDict{{"val", options_.val}, {"test", options_.test}});
  return learnt;
}

void Windows::take_fitted(const StateDict& fitted) {
  require_learnt_shares(options_, fitted);
  parts_.take_fitted(fitted);
  find_series();
  read();
}

void Windows::find_series() {
  series_.clear();
  int64_t begin = 0;
  for (size_t i = 0; i < parts_.count(); ++i) {
    const int64_t size = parts_[i].size();
    if (size > 0 && !options_.time.empty()) {
      split_at_gaps(parts_[i].numbers(options_.time), begin);
    } else if (size > 0) {
      series_.push_back({begin, begin + size});
    }
    begin += size;
  }
}

/// \param begin  the number of the part's first row
void Windows::split_at_gaps(const std::vector<double>& times, int64_t begin) {
  size_t first = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!std::isfinite(times[i])) {
      throw DataError(fmt::format("Windows: \"{}\" of row {} is missing", options_.time, i));
    }
    const double step = i == first ? 0.0 : times[i] - times[i - 1];
    if (step < 0) {
      throw DataError(
          fmt::format("Windows: row {} is earlier than the row before it, by \"{}\"; "
                      "sort the rows by time",
                      i,
                      options_.time));
    }
    if (step > options_.max_gap) {
      series_.push_back({begin + static_cast<int64_t>(first), begin + static_cast<int64_t>(i)});
      first = i;
    }
  }
  series_.push_back(
      {begin + static_cast<int64_t>(first), begin + static_cast<int64_t>(times.size())});
}

int64_t Windows::end_of_training(const Series& series) const {
  const auto rows = static_cast<double>(series.end - series.begin);
  return series.begin + static_cast<int64_t>(std::floor(rows * (1 - options_.val - options_.test)));
}

/// Means and words come from the rows that train alone, not from those that follow.
void Windows::learn() {
  if (options_.val + options_.test == 0) {
    return;
  }
  std::vector<int64_t> trained;
  for (const Series& series : series_) {
    const int64_t end = std::min(end_of_training(series), parts_[0].size());
    for (int64_t row = series.begin; row < end; ++row) {
      trained.push_back(row);
    }
  }
  if (!trained.empty()) {
    parts_.learn_from(trained);
  }
}

void Windows::read() {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < parts_.count(); ++i) {
    const at::Tensor rows = rows_of(parts_[i], options_.tensor);
    if (!rows.defined()) {
      continue;
    }
    if (!all.empty() && rows.size(1) != all.front().size(1)) {
      throw DataError(
          fmt::format("Windows: the rows of part {} have {} numbers, those of part 0 {}",
                      i,
                      rows.size(1),
                      all.front().size(1)));
    }
    all.push_back(rows);
  }
  starts_.clear();
  for (const Series& series : series_) {
    add_windows(series);
  }
  if (starts_.empty()) {
    throw DataError(
        fmt::format("Windows: no series has the {} rows of a window and its label in part \"{}\"",
                    options_.length + options_.horizon,
                    options_.part.value_or("all")));
  }
  rows_ = at::cat(all).contiguous();
  find_targets(parts_.facts().feature_names);
}

/// A window may begin in the part before its own; its label may not.
void Windows::add_windows(const Series& series) {
  const auto rows = static_cast<double>(series.end - series.begin);
  const int64_t train_end = end_of_training(series);
  const auto val_end = series.begin + static_cast<int64_t>(std::floor(rows * (1 - options_.test)));
  const std::string part = options_.part.value_or("all");
  const int64_t first = part == "val" ? train_end : part == "test" ? val_end : series.begin;
  const int64_t last = part == "train" ? train_end : part == "val" ? val_end : series.end;
  const int64_t behind = options_.length + options_.horizon;
  for (int64_t start = std::max(series.begin, first - options_.length); start + behind <= last;
       start += options_.stride) {
    starts_.push_back(start);
  }
}

void Windows::find_targets(const std::vector<std::string>& names) {
  const bool has_names = static_cast<int64_t>(names.size()) == rows_.size(1);
  names_ = names;
  for (int64_t i = static_cast<int64_t>(names.size()); i < rows_.size(1) && !has_names; ++i) {
    names_.push_back(std::to_string(i));
  }
  names_.resize(static_cast<size_t>(rows_.size(1)));
  targets_.clear();
  for (const std::string& wanted : options_.target_columns) {
    const auto found = std::find(names_.begin(), names_.end(), wanted);
    if (found == names_.end()) {
      throw DataError(
          fmt::format("Windows: there is no column \"{}\"{}", wanted, suggestion(wanted, names_)));
    }
    targets_.push_back(found - names_.begin());
  }
  if (targets_.empty()) {
    targets_.resize(names_.size());
    std::iota(targets_.begin(), targets_.end(), int64_t{0});
  }
}

Sample Windows::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch Windows::get_batch(const std::vector<int64_t>& indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t columns = rows_.size(1);
  const auto targets = static_cast<int64_t>(targets_.size());
  const auto shape = [&](int64_t rows, int64_t width) {
    return options_.flat ? std::vector<int64_t>{count, rows * width}
                         : std::vector<int64_t>{count, rows, width};
  };
  at::Tensor features = batch_tensor(shape(options_.length, columns), at::kFloat);
  const bool is_one = options_.flat && options_.horizon * targets == 1;  // as tables have one value
  at::Tensor label = batch_tensor(
      is_one ? std::vector<int64_t>{count} : shape(options_.horizon, targets), at::kFloat);
  const float* const rows = rows_.data_ptr<float>();
  auto* feature = features.data_ptr<float>();
  auto* value = label.data_ptr<float>();
  for (const int64_t index : indices) {
    detail::check_index(index, size());
    const float* const window = rows + starts_[static_cast<size_t>(index)] * columns;
    const float* const behind = window + options_.length * columns;
    feature = std::copy(window, behind, feature);
    for (int64_t i = 0; i < options_.horizon; ++i) {
      for (const int64_t target : targets_) {
        *value++ = behind[i * columns + target];
      }
    }
  }
  return {{"features", features}, {"label", label}};
}

/// What was done with each number of a row, where the parts know it.
std::vector<DatasetFacts::Target> Windows::scales() const {
  std::vector<DatasetFacts::Target> scales;
  if (options_.tensor == "features") {
    scales = parts_.feature_scales();
  } else if (options_.tensor == "label") {
    scales = parts_.facts().targets;
  }
  const auto columns = static_cast<size_t>(rows_.size(1));
  return scales.size() == columns ? scales : std::vector<DatasetFacts::Target>(columns);
}

DatasetFacts Windows::facts() const {
  DatasetFacts facts;
  facts.features = options_.length * rows_.size(1);
  for (int64_t i = 0; i < options_.length; ++i) {
    for (const std::string& name : names_) {
      facts.feature_names.push_back(fmt::format("{}[{}]", name, i - options_.length));
    }
  }
  const std::vector<DatasetFacts::Target> of_columns = scales();
  for (int64_t i = 0; i < options_.horizon; ++i) {
    for (const int64_t target : targets_) {
      DatasetFacts::Target one = of_columns[static_cast<size_t>(target)];
      one.name = fmt::format("{}[{}]", names_[static_cast<size_t>(target)], i);
      facts.targets.push_back(one);
    }
  }
  return facts;
}

void register_windows(Registry<DataSource>& registry) {
  using Options = Windows::Options;
  registry.add<Windows>("Windows", "Windows over time series, each with the rows that follow.")
      .key_of("parts",
              &Options::parts,
              ComponentListOption<DataSource>(registry),
              "the series: [{ CsvTable = { file = \"a.csv\", label_column = \"\" } }, ...]")
      .required()
      .key("length", &Options::length, at_least(1), "rows of a window")
      .required()
      .key("tensor", &Options::tensor, "of the parts: the numbers of a row")
      .key("target_columns", &Options::target_columns, "columns to forecast; all when empty")
      .key("horizon", &Options::horizon, at_least(1), "rows after the window to forecast")
      .key("stride", &Options::stride, at_least(1), "rows from one window to the next")
      .key("flat", &Options::flat, "give the rows of a window one after the other")
      .key("time",
           &Options::time,
           "column or tensor of the parts with the time of a row; dates count in seconds")
      .key("max_gap", &Options::max_gap, at_least(0), "rows further apart than this end a series")
      .key("part",
           &Options::part,
           one_of({"all", "train", "val", "test"}),
           "the first, the next or the last rows of each series; to be given with val or test")
      .key("val", &Options::val, below_one(), "share of the rows that validate")
      .key("test", &Options::test, below_one(), "share of the rows that test");
}

}  // namespace rondo
