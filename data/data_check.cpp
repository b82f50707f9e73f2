#include "data/data_check.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/ignored_label.h"
#include "data/data_summary.h"
#include "data/sample_content.h"
#include "data/sample_visit.h"

namespace rondo {

namespace {

using Kind = DataFinding::Kind;

/// What is predicted, by the names that models give it, and what weighs it.
constexpr std::array<std::string_view, 6> kLabels = {
    "label", "labels", "target", "targets", "mask", "weight"};

bool is_label(const std::string& name) {
  return std::find(kLabels.begin(), kLabels.end(), name) != kLabels.end();
}

/// Findings of one kind in one loader, with the first ten places.
class Collected {
 public:
  void add(Kind kind,
           const std::string& loader,
           const std::string& what,
           std::string place,
           int64_t count = 1) {
    constexpr size_t kListed = 10;
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const DataFinding& one) {
      return one.kind == kind && one.loader == loader && one.what == what;
    });
    DataFinding& finding = found != all_.end() ? *found : all_.emplace_back();
    finding.kind = kind;
    finding.loader = loader;
    finding.what = what;
    finding.count += count;
    if (!place.empty() && finding.places.size() < kListed) {
      finding.places.push_back(std::move(place));
    }
  }

  std::vector<DataFinding> take() { return std::move(all_); }

 private:
  std::vector<DataFinding> all_;
};

/// A column next to what is predicted, seen sample after sample.
class Column {
 public:
  void add(double x, double y) {
    x_.add(x);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      return;
    }
    const double before = x - mean_x_;
    ++pairs_;
    mean_x_ += before / static_cast<double>(pairs_);
    const double away = y - mean_y_;
    mean_y_ += away / static_cast<double>(pairs_);
    squares_x_ += before * (x - mean_x_);
    squares_y_ += away * (y - mean_y_);
    products_ += before * (y - mean_y_);
    note_value(x, y);
  }

  bool is_constant() const {
    return x_.count() > 1 && x_.not_finite() == 0 && x_.least() == x_.most();
  }

  /// How it gives the label away; "" when it does not.
  std::string leak(bool is_class) const {
    constexpr int64_t kFewestPairs = 20;
    constexpr double kSame = 0.99999;  // of the correlation
    constexpr int64_t kSamplesOfValue = 10;
    if (pairs_ < kFewestPairs || squares_x_ == 0.0 || squares_y_ == 0.0) {
      return "";
    }
    if (std::abs(products_) >= kSame * std::sqrt(squares_x_ * squares_y_)) {
      return "it rises and falls with the label";
    }
    const auto values = static_cast<int64_t>(labels_.size());
    const bool says_class =
        is_class && is_unique_ && values >= 2 && pairs_ >= kSamplesOfValue * values;
    return says_class ? fmt::format("each of its {} values has one class", values) : "";
  }

 private:
  void note_value(double x, double y) {
    constexpr size_t kMostValues = 64;
    if (is_unique_) {
      const auto [known, is_new] = labels_.emplace(x, y);
      is_unique_ = known->second == y && labels_.size() <= kMostValues;
    }
  }

  NumberSummary x_;
  int64_t pairs_ = 0;
  double mean_x_ = 0.0;
  double mean_y_ = 0.0;
  double squares_x_ = 0.0;
  double squares_y_ = 0.0;
  double products_ = 0.0;
  std::map<double, double> labels_;  // of each value, while there are few and each has one
  bool is_unique_ = true;
};

/// The columns of the tensors that are rows of numbers: "features" and "categories".
class Columns {
 public:
  explicit Columns(DatasetFacts facts) : facts_(std::move(facts)) {}

  void add(const Sample& sample) {
    const at::Tensor* const label = sample.find("label");
    const bool is_one = label != nullptr && label->dim() == 0;
    is_class_ = is_one && at::isIntegralType(label->scalar_type(), true);
    const double y = is_one ? numbers_of(*label).front() : std::nan("");
    size_t at = 0;
    for (const char* const name : {"features", "categories"}) {
      const at::Tensor* const row = sample.find(name);
      if (row == nullptr || row->dim() != 1) {
        continue;
      }
      for (const double x : numbers_of(*row)) {
        if (at == columns_.size()) {
          columns_.emplace_back();
          names_.push_back(name_of(name, at));
        }
        columns_[at++].add(x, y);
      }
    }
  }

  void tell(const std::string& loader, Collected& findings) const {
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].is_constant()) {
        findings.add(Kind::ConstantColumn,
                     loader,
                     "columns that are the same in every sample teach nothing; name them in "
                     "ignore_columns",
                     names_[c]);
      }
      if (const std::string leak = columns_[c].leak(is_class_); !leak.empty()) {
        findings.add(Kind::Leak,
                     loader,
                     "columns that say what is to be predicted; leave them out unless they are "
                     "known before the label is",
                     fmt::format("{}: {}", names_[c], leak));
      }
    }
  }

 private:
  std::string name_of(std::string_view tensor, size_t column) {
    if (tensor == "features") {
      ++features_;
      return feature_name(facts_, static_cast<int64_t>(column));
    }
    const size_t at = column - features_;
    return at < facts_.category_names.size() ? facts_.category_names[at]
                                             : fmt::format("categories[{}]", at);
  }

  DatasetFacts facts_;
  std::vector<Column> columns_;
  std::vector<std::string> names_;
  size_t features_ = 0;
  bool is_class_ = false;
};

/// Reads one loader after the other.
class Checking {
 public:
  explicit Checking(const DataCheckOptions& options) : options_(options) {}

  void read(const CheckedLoader& checked, const StateDict* fitted) {
    result_.samples.push_back(0);
    try {
      if (fitted != nullptr && !fitted->empty()) {
        checked.loader.take_fitted(*fitted);
      }
      facts_ = checked.loader.facts();
      Columns columns(facts_);
      const bool trains = result_.samples.size() == 1;
      visit_samples(checked.loader, options_.most, [&](const VisitedSample& one) {
        ++result_.samples.back();
        look_at(checked, one);
        if (trains && !one.error) {
          columns.add(one.sample);
        }
      });
      columns.tell(checked.name, findings_);
      tell_damaged(checked);
    } catch (const Error&) {
      findings_.add(Kind::Unreadable,
                    checked.name,
                    "the data set cannot be opened",
                    describe(std::current_exception()));
    }
  }

  DataCheck take() {
    result_.findings = findings_.take();
    return std::move(result_);
  }

 private:
  void look_at(const CheckedLoader& checked, const VisitedSample& one) {
    const std::string place = "sample " + one.name;
    if (one.error) {
      findings_.add(Kind::Unreadable,
                    checked.name,
                    "samples that cannot be read",
                    place + ": " + describe(one.error));
      return;
    }
    for (const NamedTensor& tensor : one.sample.items()) {
      look_at_numbers(checked.name, place, tensor);
    }
    look_for_twin(checked, one);
  }

  void look_at_numbers(const std::string& loader,
                       const std::string& place,
                       const NamedTensor& tensor) {
    if (at::isFloatingType(tensor.second.scalar_type())) {
      const auto numbers = numbers_of(tensor.second);
      if (!std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); })) {
        findings_.add(Kind::NotFinite,
                      loader,
                      fmt::format("NaN or infinite numbers in \"{}\"", tensor.first),
                      place);
      }
    }
    const std::optional<int64_t> end = end_of(tensor);
    if (end) {
      look_at_range(loader, place, tensor, *end);
    }
  }

  /// Behind the greatest number that this tensor can hold; nothing where there is none.
  std::optional<int64_t> end_of(const NamedTensor& tensor) const {
    const bool is_integer = at::isIntegralType(tensor.second.scalar_type(), false);
    if (!is_integer) {
      return std::nullopt;
    }
    if (facts_.vocabulary) {
      return facts_.vocabulary;
    }
    const std::optional<int64_t>& of_data = facts_.classes;
    const std::optional<int64_t>& of_model = options_.classes;
    const std::optional<int64_t> classes = of_data && of_model ? std::min(*of_data, *of_model)
                                           : of_data           ? of_data
                                                               : of_model;
    return is_label(tensor.first) && tensor.first != "weight" ? classes : std::nullopt;
  }

  void look_at_range(const std::string& loader,
                     const std::string& place,
                     const NamedTensor& tensor,
                     int64_t end) {
    constexpr auto kLeftOut = static_cast<double>(kIgnoredLabel);
    for (const double number : numbers_of(tensor.second)) {
      if ((number < 0.0 || number >= static_cast<double>(end)) && number != kLeftOut) {
        findings_.add(Kind::LabelRange,
                      loader,
                      fmt::format("\"{}\" is not in [0, {})", tensor.first, end),
                      fmt::format("{}: {:.0f}", place, number));
        return;
      }
    }
  }

  void look_for_twin(const CheckedLoader& checked, const VisitedSample& one) {
    const size_t content = hash_of(checked.loader.source(), one);
    const auto twin = seen_.find(content);
    if (twin == seen_.end()) {
      seen_.emplace(content, Seen{checked.name, one.name});
    } else if (twin->second.loader != checked.name) {
      findings_.add(Kind::Duplicate,
                    checked.name,
                    fmt::format("samples that \"{}\" has too", twin->second.loader),
                    fmt::format("sample {} is sample {}", one.name, twin->second.name));
    }
  }

  static size_t hash_of(const DataSource& source, const VisitedSample& one) {
    if (const auto* content = dynamic_cast<const SampleContent*>(&source)) {
      return std::hash<std::string>{}(content->content_of(one.number));
    }
    std::string bytes;
    for (const NamedTensor& tensor : one.sample.items()) {
      if (!is_label(tensor.first)) {
        const at::Tensor flat = tensor.second.contiguous();
        bytes += fmt::format("{}:{};", tensor.first, fmt::join(flat.sizes(), ","));
        bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
      }
    }
    return std::hash<std::string>{}(bytes);
  }

  /// Files that the data set leaves out without an error, as `max_damaged` of ImageFolder asks.
  void tell_damaged(const CheckedLoader& checked) {
    for (const auto& [name, count] : checked.loader.source().counts()) {
      if (name == "damaged" && count > 0) {
        findings_.add(Kind::Unreadable,
                      checked.name,
                      "damaged files that max_damaged leaves out",
                      "",
                      static_cast<int64_t>(count));
      }
    }
  }

  struct Seen {
    std::string loader;
    std::string name;
  };

  DataCheckOptions options_;
  DatasetFacts facts_;  // of the loader that is read
  std::unordered_map<size_t, Seen> seen_;
  Collected findings_;
  DataCheck result_;
};

}  // namespace

std::string to_string(Kind kind) {
  switch (kind) {
    case Kind::Unreadable:
      return "unreadable";
    case Kind::NotFinite:
      return "not_finite";
    case Kind::LabelRange:
      return "label_range";
    case Kind::Duplicate:
      return "duplicate";
    case Kind::ConstantColumn:
      return "constant_column";
    case Kind::Leak:
      return "leak";
  }
  return "";
}

DataCheck check_data(const std::vector<CheckedLoader>& loaders, const DataCheckOptions& options) {
  Checking checking(options);
  StateDict fitted;
  for (const CheckedLoader& checked : loaders) {
    const bool trains = &checked == &loaders.front();
    checking.read(checked, trains ? nullptr : &fitted);
    if (trains && checked.loader.is_built()) {
      fitted = checked.loader.fitted();
    }
  }
  return checking.take();
}

}  // namespace rondo
