#include "loops/prediction_table.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include <vector>

#include "core/csv.h"

namespace rondo {

namespace {

/// How a class is called: by its name, else its number.
std::string class_name_of(const DatasetFacts& facts, int64_t number, int64_t classes) {
  const bool has_names = static_cast<int64_t>(facts.class_names.size()) == classes;
  return has_names ? facts.class_names[static_cast<size_t>(number)] : std::to_string(number);
}

std::string of_classes(const at::Tensor& logits, const Dataset& data, const DatasetFacts& facts) {
  const at::Tensor shares = at::softmax(logits.to(at::kDouble), 1).contiguous();
  const at::Tensor best = shares.argmax(1);
  const int64_t classes = shares.size(1);
  std::string text = "id,prediction";
  for (int64_t k = 0; k < classes; ++k) {
    text += "," + csv_field("p_" + class_name_of(facts, k, classes));
  }
  const auto* const share = shares.data_ptr<double>();
  const auto* const guess = best.data_ptr<int64_t>();
  for (int64_t i = 0; i < shares.size(0); ++i) {
    text += "\n" + csv_field(data.sample_name(i)) + "," +
            csv_field(class_name_of(facts, guess[i], classes));
    for (int64_t k = 0; k < classes; ++k) {
      text += fmt::format(",{:.6g}", share[i * classes + k]);
    }
  }
  return text + "\n";
}

std::string of_values(const at::Tensor& values, const Dataset& data, const DatasetFacts& facts) {
  const at::Tensor rows = values.to(at::kDouble).reshape({values.size(0), -1}).contiguous();
  const int64_t width = rows.size(1);
  std::vector<DatasetFacts::Target> targets = facts.targets;
  if (static_cast<int64_t>(targets.size()) != width) {
    targets.assign(static_cast<size_t>(width), {});
    for (size_t t = 0; t < targets.size(); ++t) {
      targets[t].name = width == 1 ? "prediction" : fmt::format("prediction{}", t);
    }
  }
  std::string text = "id";
  for (const DatasetFacts::Target& target : targets) {
    text += "," + csv_field(target.name);
  }
  const auto* const value = rows.data_ptr<double>();
  for (int64_t i = 0; i < rows.size(0); ++i) {
    text += "\n" + csv_field(data.sample_name(i));
    for (int64_t t = 0; t < width; ++t) {
      text +=
          fmt::format(",{:.9g}", targets[static_cast<size_t>(t)].original(value[i * width + t]));
    }
  }
  return text + "\n";
}

}  // namespace

std::optional<std::string> prediction_table(const Outputs& outputs, const DataLoader& loader) {
  const auto* const data = dynamic_cast<const Dataset*>(&loader.source());
  const auto is_table = [data](const at::Tensor* tensor, int64_t least_dim) {
    return data != nullptr && tensor != nullptr && tensor->is_floating_point() &&
           tensor->dim() >= least_dim && tensor->dim() <= 2 && tensor->size(0) == data->size() &&
           tensor->numel() > 0;
  };
  if (const at::Tensor* values = outputs.find("prediction"); is_table(values, 1)) {
    return of_values(*values, *data, loader.facts());
  }
  if (const at::Tensor* logits = outputs.find("logits"); is_table(logits, 2)) {
    return of_classes(*logits, *data, loader.facts());
  }
  return std::nullopt;
}

}  // namespace rondo
