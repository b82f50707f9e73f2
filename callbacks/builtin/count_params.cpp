#include "callbacks/builtin/count_params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "core/error.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using Row = ParameterCounts::Row;

Row row_of(const char* type, const std::string& name, const at::Tensor& tensor) {
  const std::string dtype = c10::toString(tensor.scalar_type());
  return {type,
          name,
          dtype,
          fmt::format("{}", fmt::join(tensor.sizes(), ", ")),
          tensor.numel(),
          static_cast<int64_t>(tensor.nbytes()),
          tensor.requires_grad() ? tensor.numel() : 0};
}

/// Adds a row, or merges it into the one of the same name.
void add(std::vector<Row>& rows, Row row) {
  const auto same = std::find_if(
      rows.begin(), rows.end(), [&](const Row& known) { return known.name == row.name; });
  if (same == rows.end()) {
    rows.push_back(std::move(row));
    return;
  }
  same->type = "group";
  same->shape.clear();
  same->dtype = same->dtype == row.dtype ? row.dtype : "mixed";
  same->elements += row.elements;
  same->bytes += row.bytes;
  same->trainable += row.trainable;
}

void sort(std::vector<Row>& rows, const std::string& by, bool descending) {
  const auto less = [&](const Row& a, const Row& b) {
    return by == "name" ? a.name < b.name : a.elements < b.elements;
  };
  if (!by.empty()) {
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      return descending ? less(b, a) : less(a, b);
    });
  } else if (descending) {
    std::reverse(rows.begin(), rows.end());
  }
}

std::string trainable_text(const Row& row) {
  if (row.trainable == 0) {
    return "no";
  }
  return row.trainable == row.elements ? "yes" : "partly";
}

}  // namespace

std::string ParameterCounts::to_text() const {
  size_t width = 4;
  for (const Row& row : rows) {
    width = std::max(width, row.name.size());
  }
  std::string text = fmt::format("{:<9} {:<{}} {:<8} {:<20} {:>12} {:>12} {:>8} trainable\n",
                                 "type",
                                 "name",
                                 width,
                                 "dtype",
                                 "shape",
                                 "elements",
                                 "bytes",
                                 "share");
  for (const Row& row : rows) {
    const double share = 100.0 * static_cast<double>(row.elements) /
                         static_cast<double>(std::max<int64_t>(elements, 1));
    text += fmt::format("{:<9} {:<{}} {:<8} {:<20} {:>12} {:>12} {:>7.2f}% {}\n",
                        row.type,
                        row.name,
                        width,
                        row.dtype,
                        row.shape,
                        row.elements,
                        row.bytes,
                        share,
                        trainable_text(row));
  }
  return text + fmt::format("{} elements, {} of them trainable", elements, trainable);
}

CountParams::CountParams(const Options& options) : options_(options) {
  for (const std::vector<std::string>& pair : options.search_and_replace) {
    if (pair.size() != 2) {
      throw UsageError(
          fmt::format("CountParams: search_and_replace must be pairs of a regular expression and "
                      "its replacement, got {} texts",
                      pair.size()));
    }
    try {
      std::regex compiled(pair[0]);
    } catch (const std::regex_error& error) {
      throw UsageError(
          fmt::format("CountParams: search_and_replace: \"{}\" is not a regular expression: {}",
                      pair[0],
                      error.what()));
    }
  }
  if (!options.order_by.empty() && options.order_by != "name" && options.order_by != "elements") {
    throw UsageError(
        fmt::format("CountParams: order_by must be \"\", \"name\" or \"elements\", got \"{}\"",
                    options.order_by));
  }
}

ParameterCounts CountParams::count(Model& model) const {
  const torch::nn::Module& module = model.module();
  ParameterCounts counts;
  for (const auto& [name, tensor] : named_parameters(module)) {
    add(counts.rows, row_of("parameter", replaced(name), tensor));
  }
  for (const auto& [name, tensor] : named_buffers(module)) {
    add(counts.rows, row_of("buffer", replaced(name), tensor));
  }
  for (const Row& row : counts.rows) {
    counts.elements += row.elements;
    counts.trainable += row.trainable;
  }
  sort(counts.rows, options_.order_by, options_.descending);
  return counts;
}

std::string CountParams::replaced(std::string name) const {
  for (const std::vector<std::string>& pair : options_.search_and_replace) {
    name = std::regex_replace(name, std::regex(pair[0]), pair[1]);
  }
  return name;
}

void CountParams::post_setup(Trainer& trainer) {
  const ParameterCounts counts = count(*trainer.state().model);
  const std::string text = counts.to_text();
  trainer.log().info("parameters:\n" + text);
  write_report(trainer.log(), trainer.state().artifact_dir / "parameter_counts.txt", text + "\n");
  trainer.log_metrics({{"parameter_counts/total", counts.elements},
                       {"parameter_counts/trainable", counts.trainable}});
}

void register_count_params(Registry<Callback>& registry) {
  using Options = CountParams::Options;
  registry.add<CountParams>("CountParams", "Prints the size of the model, tensor by tensor.")
      .key("search_and_replace",
           &Options::search_and_replace,
           "pairs of a regular expression and its replacement: equal names make one row")
      .key("order_by",
           &Options::order_by,
           one_of({"", "name", "elements"}),
           "order of the rows; empty: as in the model")
      .key("descending", &Options::descending, "largest or last first");
}

}  // namespace rondo
