#include "loops/prediction_table.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/csv.h"
#include "core/error.h"

namespace rondo {

namespace {

/// How a class is called: by its name, else its number.
std::string class_name_of(const DatasetFacts& facts, int64_t number, int64_t classes) {
  const bool has_names = static_cast<int64_t>(facts.class_names.size()) == classes;
  return has_names ? facts.class_names[static_cast<size_t>(number)] : std::to_string(number);
}

/// The lines of a batch, and the one above all of them.
struct Lines {
  std::string header;
  std::string rows;
};

/// Samples of a data set that one batch has.
struct BatchSamples {
  const Dataset& data;
  int64_t first;

  std::string name(int64_t row) const { return csv_field(data.sample_name(first + row)); }
};

Lines of_classes(const at::Tensor& logits, const BatchSamples& samples, const DatasetFacts& facts) {
  const at::Tensor shares = at::softmax(logits.to(at::kDouble), 1).contiguous();
  const at::Tensor best = shares.argmax(1);
  const int64_t classes = shares.size(1);
  Lines lines{"id,prediction", ""};
  for (int64_t k = 0; k < classes; ++k) {
    lines.header += "," + csv_field("p_" + class_name_of(facts, k, classes));
  }
  const auto* const share = shares.data_ptr<double>();
  const auto* const guess = best.data_ptr<int64_t>();
  for (int64_t i = 0; i < shares.size(0); ++i) {
    lines.rows += samples.name(i) + "," + csv_field(class_name_of(facts, guess[i], classes));
    for (int64_t k = 0; k < classes; ++k) {
      lines.rows += fmt::format(",{:.6g}", share[i * classes + k]);
    }
    lines.rows += "\n";
  }
  return lines;
}

Lines of_values(const at::Tensor& values, const BatchSamples& samples, const DatasetFacts& facts) {
  const at::Tensor rows = values.to(at::kDouble).reshape({values.size(0), -1}).contiguous();
  const int64_t width = rows.size(1);
  std::vector<DatasetFacts::Target> targets = facts.targets;
  if (static_cast<int64_t>(targets.size()) != width) {
    targets.assign(static_cast<size_t>(width), {});
    for (size_t t = 0; t < targets.size(); ++t) {
      targets[t].name = width == 1 ? "prediction" : fmt::format("prediction{}", t);
    }
  }
  Lines lines{"id", ""};
  for (const DatasetFacts::Target& target : targets) {
    lines.header += "," + csv_field(target.name);
  }
  const auto* const value = rows.data_ptr<double>();
  for (int64_t i = 0; i < rows.size(0); ++i) {
    lines.rows += samples.name(i);
    for (int64_t t = 0; t < width; ++t) {
      lines.rows +=
          fmt::format(",{:.9g}", targets[static_cast<size_t>(t)].original(value[i * width + t]));
    }
    lines.rows += "\n";
  }
  return lines;
}

/// The output if it has `rows` rows of numbers, else null.
const at::Tensor* table_in(const Outputs& outputs,
                           const char* name,
                           int64_t least_dim,
                           int64_t rows) {
  const at::Tensor* const tensor = outputs.find(name);
  const bool is_table = tensor != nullptr && tensor->is_floating_point() &&
                        tensor->dim() >= least_dim && tensor->dim() <= 2 &&
                        tensor->size(0) == rows && tensor->numel() > 0;
  return is_table ? tensor : nullptr;
}

std::string why_no_table(const Outputs& outputs, int64_t rows) {
  std::vector<std::string> shapes;
  for (const Outputs::Item& item : outputs.items()) {
    shapes.push_back(fmt::format("\"{}\" [{}]", item.first, fmt::join(item.second.sizes(), ", ")));
  }
  return fmt::format(
      "it needs floating numbers in \"prediction\" [samples] or [samples, values], or in "
      "\"logits\" [samples, classes]; a batch of {} samples gives {}",
      rows,
      shapes.empty() ? "no output" : fmt::format("{}", fmt::join(shapes, ", ")));
}

}  // namespace

PredictionTable::PredictionTable(DataLoader loader, std::filesystem::path file)
    : loader_(std::move(loader)), file_(std::move(file)), partial_(temporary_name(file_)) {}

PredictionTable::~PredictionTable() {
  if (out_) {
    try {
      real_file_system()->remove(partial_);
    } catch (const Error&) {  // another error is on its way
    }
  }
}

void PredictionTable::add(const Outputs& outputs) {
  if (!missing_.empty()) {
    return;
  }
  const int64_t left = loader_.samples().value_or(0) - next_;
  const int64_t rows = std::min(left, loader_.options().batch_size);
  const std::string lines = lines_of(outputs, rows);
  if (missing_.empty()) {
    append(lines);
    next_ += rows;
  }
}

/// Nothing, and `missing_`, where the outputs are no table.
std::string PredictionTable::lines_of(const Outputs& outputs, int64_t rows) {
  const auto* const data = dynamic_cast<const Dataset*>(&loader_.source());
  if (data == nullptr) {
    missing_ = "its samples have no names, because the data set is not reached by number";
    return "";
  }
  const BatchSamples samples{*data, next_};
  Lines lines;
  if (const at::Tensor* const values = table_in(outputs, "prediction", 1, rows)) {
    lines = of_values(*values, samples, loader_.facts());
  } else if (const at::Tensor* const logits = table_in(outputs, "logits", 2, rows)) {
    lines = of_classes(*logits, samples, loader_.facts());
  } else {
    missing_ = why_no_table(outputs, rows);
    return "";
  }
  if (header_.empty()) {
    header_ = lines.header;
    return header_ + "\n" + lines.rows;
  }
  if (lines.header != header_) {
    missing_ = fmt::format("its columns would change from {} to {}", header_, lines.header);
  }
  return lines.rows;
}

void PredictionTable::append(const std::string& lines) {
  const auto files = real_file_system();
  if (!out_) {
    files->create_directories(file_.parent_path());
    out_ = files->create(partial_);
  }
  out_->append(lines.data(), lines.size());
}

std::string PredictionTable::finish() {
  if (!out_ || !missing_.empty()) {
    return missing_.empty() ? "there was no batch" : missing_;
  }
  const auto files = real_file_system();
  out_->sync();
  out_->close();
  files->rename(partial_, file_);
  files->sync_directory(file_.parent_path());
  out_.reset();
  return "";
}

}  // namespace rondo
