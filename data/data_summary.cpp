#include "data/data_summary.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace rondo {

namespace {

TensorStatistics& summary_of(std::vector<TensorStatistics>& tensors, const NamedTensor& tensor) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorStatistics& one) {
    return one.name == tensor.first;
  });
  if (found != tensors.end()) {
    return *found;
  }
  TensorStatistics made;
  made.name = tensor.first;
  made.dtype = dtype_name(tensor.second.scalar_type());
  made.shape = tensor.second.sizes().vec();
  tensors.push_back(std::move(made));
  return tensors.back();
}

/// Counts what is in one sample after the other.
class Counting {
 public:
  explicit Counting(DatasetFacts facts) : facts_(std::move(facts)) {}

  void add(const Sample& sample, DataSummary& summary) {
    for (const NamedTensor& tensor : sample.items()) {
      const std::vector<double> numbers = numbers_of(tensor.second);
      TensorStatistics& one = summary_of(summary.tensors, tensor);
      one.varies = one.varies || tensor.second.sizes() != at::IntArrayRef(one.shape);
      for (const double number : numbers) {
        one.numbers.add(number);
      }
      if (tensor.first == "features" && tensor.second.dim() == 1) {
        add_columns(numbers, summary.columns);
      }
    }
    const at::Tensor* const label = sample.find("label");
    if (label != nullptr && label->dim() == 0 && at::isIntegralType(label->scalar_type(), true)) {
      ++classes_[label->item<int64_t>()];
    }
  }

  void finish(DataSummary& summary) const {
    for (const auto& [number, samples] : classes_) {
      summary.classes.emplace_back(class_name(facts_, number), samples);
    }
  }

 private:
  void add_columns(const std::vector<double>& numbers,
                   std::vector<ColumnStatistics>& columns) const {
    for (size_t c = 0; c < numbers.size(); ++c) {
      if (c == columns.size()) {
        columns.push_back({feature_name(facts_, static_cast<int64_t>(c)), {}});
      }
      columns[c].numbers.add(numbers[c]);
    }
  }

  DatasetFacts facts_;
  std::map<int64_t, int64_t> classes_;  // samples of each
};

}  // namespace

void NumberSummary::add(double number) {
  if (!std::isfinite(number)) {
    ++not_finite_;
    return;
  }
  least_ = count_ == 0 ? number : std::min(least_, number);
  most_ = count_ == 0 ? number : std::max(most_, number);
  ++count_;
  const double away = number - mean_;
  mean_ += away / static_cast<double>(count_);
  squares_ += away * (number - mean_);
}

double NumberSummary::deviation() const {
  return count_ == 0 ? 0.0 : std::sqrt(squares_ / static_cast<double>(count_));
}

DataSummary summarise(const DataLoader& loader, int64_t most, int64_t shown) {
  DataSummary summary;
  summary.samples = loader.in_order().samples();
  Counting counting(loader.facts());
  visit_samples(loader, most, [&](const VisitedSample& one) {
    ++summary.visited;
    if (one.error) {
      ++summary.unreadable;
      return;
    }
    counting.add(one.sample, summary);
    if (static_cast<int64_t>(summary.first.size()) < shown) {
      summary.first.push_back(one);
    }
  });
  counting.finish(summary);
  return summary;
}

std::string feature_name(const DatasetFacts& facts, int64_t column) {
  const auto at = static_cast<size_t>(column);
  return at < facts.feature_names.size() ? facts.feature_names[at]
                                         : fmt::format("features[{}]", column);
}

std::string class_name(const DatasetFacts& facts, int64_t number) {
  const bool is_named = number >= 0 && number < static_cast<int64_t>(facts.class_names.size());
  return is_named ? facts.class_names[static_cast<size_t>(number)] : std::to_string(number);
}

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kDouble).contiguous();
  const double* const begin = numbers.data_ptr<double>();
  return {begin, begin + numbers.numel()};
}

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kBool:
      return "bool";
    case at::kBFloat16:
      return "bfloat16";
    default:
      return at::toString(type);
  }
}

}  // namespace rondo
