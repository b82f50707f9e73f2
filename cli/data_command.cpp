// `rondo data show RUN.toml` and `rondo data check RUN.toml`

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/text_table.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/json_text.h"
#include "core/terminal.h"
#include "core/writable_path.h"
#include "data/data_check.h"
#include "data/data_summary.h"
#include "data/images/picture_grid.h"
#include "loggers/media_bytes.h"

namespace rondo {

namespace {

using Rows = std::vector<std::vector<std::string>>;

RunConfig only_phase(const CommandLine& line, Registries& registries) {
  std::vector<RunConfig> phases = load_run(line, registries);
  if (phases.size() != 1) {
    throw UsageError(line.config + " has several phases; `rondo data` takes a file of one");
  }
  return std::move(phases.front());
}

void add(std::vector<CheckedLoader>& loaders, const std::string& name, const DataLoader& loader) {
  const bool is_known = std::any_of(loaders.begin(), loaders.end(), [&](const auto& known) {
    return known.loader.is_same(loader);
  });
  if (!is_known) {
    loaders.push_back({loader.label().empty() ? name : loader.label(), loader});
  }
}

void add(std::vector<CheckedLoader>& loaders, const std::string& name, const Loaders& several) {
  for (size_t i = 0; i < several.size(); ++i) {
    add(loaders, fmt::format("{}_{}", name, i), several[i]);
  }
}

/// Every loader of the run once, that which trains first.
std::vector<CheckedLoader> loaders_of(const RunConfig& run, bool with_predictions) {
  std::vector<CheckedLoader> loaders;
  if (run.fit) {
    add(loaders, "train", run.fit->train);
    add(loaders, "validate", run.fit->val);
  }
  if (run.validate) {
    add(loaders, "validate", run.validate->loader);
  }
  if (run.validate_all) {
    add(loaders, "validate_all", run.validate_all->loaders);
  }
  if (run.predict && with_predictions) {
    add(loaders, "predict", run.predict->loader);
  }
  return loaders;
}

/// Classes that the run's model tells apart: its option `classes`, or the last of its `sizes`.
std::optional<int64_t> classes_of(const RunConfig& run, const Registries& registries) {
  const ConfigValue written = registries.models.write(run.init.model);
  const ConfigEntry& component = written.get_if<ConfigTable>()->entries().front();
  const auto* const keys = component.value.get_if<ConfigTable>();
  const ConfigValue* classes = keys != nullptr ? keys->find("classes") : nullptr;
  const ConfigValue* const sizes = keys != nullptr ? keys->find("sizes") : nullptr;
  const auto* const list = sizes != nullptr ? sizes->get_if<ConfigArray>() : nullptr;
  if (classes == nullptr && list != nullptr && !list->empty()) {
    classes = &list->back();
  }
  const auto* const number = classes != nullptr ? classes->get_if<int64_t>() : nullptr;
  return number != nullptr && *number > 1 ? std::optional<int64_t>(*number) : std::nullopt;
}

std::vector<std::string> cells_of(const NumberSummary& numbers) {
  return {fmt::format("{:.6g}", numbers.least()),
          fmt::format("{:.6g}", numbers.most()),
          fmt::format("{:.6g}", numbers.mean()),
          fmt::format("{:.6g}", numbers.deviation()),
          fmt::format("{}", numbers.not_finite())};
}

std::string shape_text(const TensorStatistics& tensor) {
  return tensor.varies ? "differs" : fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

Rows tensor_rows(const DataSummary& summary) {
  Rows rows = {{"tensor", "type", "shape", "least", "most", "mean", "deviation", "not finite"}};
  for (const TensorStatistics& tensor : summary.tensors) {
    std::vector<std::string> row = {tensor.name, tensor.dtype, shape_text(tensor)};
    const std::vector<std::string> numbers = cells_of(tensor.numbers);
    row.insert(row.end(), numbers.begin(), numbers.end());
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows column_rows(const DataSummary& summary) {
  constexpr size_t kMost = 40;
  Rows rows = {{"column", "least", "most", "mean", "deviation", "not finite"}};
  for (size_t c = 0; c < std::min(kMost, summary.columns.size()); ++c) {
    std::vector<std::string> row = cells_of(summary.columns[c].numbers);
    row.insert(row.begin(), summary.columns[c].name);
    rows.push_back(std::move(row));
  }
  if (summary.columns.size() > kMost) {
    rows.push_back({fmt::format("… {} more", summary.columns.size() - kMost)});
  }
  return rows;
}

Rows class_rows(const DataSummary& summary) {
  constexpr size_t kMost = 40;
  Rows rows = {{"class", "samples", "share"}};
  int64_t all = 0;
  for (const auto& one : summary.classes) {
    all += one.second;
  }
  for (size_t i = 0; i < std::min(kMost, summary.classes.size()); ++i) {
    const auto& [name, samples] = summary.classes[i];
    const double share = 100.0 * static_cast<double>(samples) / static_cast<double>(all);
    rows.push_back({name, std::to_string(samples), fmt::format("{:.1f}%", share)});
  }
  if (summary.classes.size() > kMost) {
    rows.push_back({fmt::format("… {} more", summary.classes.size() - kMost)});
  }
  return rows;
}

/// `features [5.1, 3.5, 1.4, 0.2]`; of many numbers the first.
std::string tensor_text(const NamedTensor& tensor) {
  constexpr size_t kMost = 8;
  const std::vector<double> numbers = numbers_of(tensor.second);
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kMost, numbers.size()); ++i) {
    texts.push_back(fmt::format("{:.6g}", numbers[i]));
  }
  if (numbers.size() > kMost) {
    texts.emplace_back("…");
  }
  const bool is_one = tensor.second.dim() == 0;
  return fmt::format(
      "{} {}{}{}", tensor.first, is_one ? "" : "[", fmt::join(texts, ", "), is_one ? "" : "]");
}

std::string sample_text(const VisitedSample& one) {
  std::vector<std::string> texts;
  for (const NamedTensor& tensor : one.sample.items()) {
    texts.push_back(tensor_text(tensor));
  }
  return fmt::format("sample {}: {}\n", one.name, fmt::join(texts, "; "));
}

std::vector<Sample> samples_of(const DataSummary& summary) {
  std::vector<Sample> samples;
  for (const VisitedSample& one : summary.first) {
    samples.push_back(one.sample);
  }
  return samples;
}

void print(const CheckedLoader& shown, const DataSummary& summary) {
  constexpr size_t kSamples = 5;
  constexpr int kColumns = 80;
  const DatasetNotes notes = shown.loader.take_notes();
  std::cout << fmt::format("{}: {}, {} samples; the numbers are of {}\n",
                           shown.name,
                           shown.loader.name(),
                           summary.samples ? std::to_string(*summary.samples) : "unknown",
                           summary.visited - summary.unreadable);
  if (!notes.summary.empty()) {
    std::cout << notes.summary << '\n';
  }
  for (const std::string& warning : notes.warnings) {
    std::cout << "warning: " << warning << '\n';
  }
  if (summary.unreadable > 0) {
    std::cout << fmt::format("warning: {} samples cannot be read; `rondo data check` lists them\n",
                             summary.unreadable);
  }
  for (const Rows& rows : {tensor_rows(summary), column_rows(summary), class_rows(summary)}) {
    if (rows.size() > 1) {
      std::cout << '\n' << text_table(rows);
    }
  }
  std::cout << '\n';
  for (size_t i = 0; i < std::min(kSamples, summary.first.size()); ++i) {
    std::cout << sample_text(summary.first[i]);
  }
  if (const auto grid = picture_grid(samples_of(summary))) {
    const std::optional<int> columns = terminal_columns(STDOUT_FILENO);
    std::cout << '\n' << picture_text(*grid, columns.value_or(kColumns), columns.has_value());
  }
  std::cout << '\n';
}

std::string json_of(const NumberSummary& numbers) {
  return fmt::format(
      "\"least\": {}, \"most\": {}, \"mean\": {}, \"deviation\": {}, \"count\": {}, "
      "\"not_finite\": {}",
      json_number(numbers.least()),
      json_number(numbers.most()),
      json_number(numbers.mean()),
      json_number(numbers.deviation()),
      numbers.count(),
      numbers.not_finite());
}

std::string json_of(const CheckedLoader& shown, const DataSummary& summary) {
  std::vector<std::string> tensors;
  for (const TensorStatistics& tensor : summary.tensors) {
    tensors.push_back(
        fmt::format("{{\"name\": {}, \"dtype\": {}, \"shape\": {}, {}}}",
                    json_string(tensor.name),
                    json_string(tensor.dtype),
                    tensor.varies ? "null" : fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
                    json_of(tensor.numbers)));
  }
  std::vector<std::string> columns;
  for (const ColumnStatistics& column : summary.columns) {
    columns.push_back(
        fmt::format("{{\"name\": {}, {}}}", json_string(column.name), json_of(column.numbers)));
  }
  std::vector<std::string> classes;
  for (const auto& [name, samples] : summary.classes) {
    classes.push_back(fmt::format("{{\"name\": {}, \"samples\": {}}}", json_string(name), samples));
  }
  return fmt::format(
      "{{\"name\": {}, \"samples\": {}, \"visited\": {}, \"unreadable\": {}, \"tensors\": [{}], "
      "\"columns\": [{}], \"classes\": [{}]}}",
      json_string(shown.name),
      summary.samples ? std::to_string(*summary.samples) : "null",
      summary.visited,
      summary.unreadable,
      fmt::join(tensors, ", "),
      fmt::join(columns, ", "),
      fmt::join(classes, ", "));
}

void write_png(const std::string& path, const Picture& grid) {
  real_file_system()->create_directories(std::filesystem::absolute(path).parent_path());
  write_atomically(*real_file_system(), path, png_of(grid));
  std::cerr << path << ": written\n";
}

int show(const CommandLine& line, const RunConfig& run) {
  constexpr int64_t kSamples = 1000;
  constexpr int64_t kPictures = 16;
  if (!line.output.empty()) {
    require_writable_file(line.output);
  }
  const std::vector<CheckedLoader> loaders = loaders_of(run, /*with_predictions=*/true);
  std::vector<std::string> texts;
  bool is_written = false;
  for (const CheckedLoader& one : loaders) {
    const StateDict fitted = loaders.front().loader.fitted();
    if (&one != &loaders.front() && !fitted.empty()) {
      one.loader.take_fitted(fitted);
    }
    const DataSummary summary =
        summarise(one.loader, line.samples > 0 ? line.samples : kSamples, kPictures);
    texts.push_back(json_of(one, summary));
    if (!line.json) {
      print(one, summary);
    }
    const auto grid = picture_grid(samples_of(summary));
    if (grid && !line.output.empty() && !std::exchange(is_written, true)) {
      write_png(line.output, *grid);
    }
  }
  if (line.json) {
    std::cout << fmt::format("{{\"loaders\": [{}]}}", fmt::join(texts, ", ")) << std::endl;
  }
  if (!line.output.empty() && !is_written) {
    throw UsageError("--png: no loader of " + line.config + " gives pictures");
  }
  return 0;
}

std::string json_of(const DataFinding& finding) {
  std::vector<std::string> places;
  for (const std::string& place : finding.places) {
    places.push_back(json_string(place));
  }
  return fmt::format(
      "{{\"kind\": {}, \"loader\": {}, \"what\": {}, \"count\": {}, \"places\": [{}]}}",
      json_string(to_string(finding.kind)),
      json_string(finding.loader),
      json_string(finding.what),
      finding.count,
      fmt::join(places, ", "));
}

void print(const DataFinding& finding) {
  std::cout << fmt::format("{}: {}: {}\n", finding.loader, finding.count, finding.what);
  for (const std::string& place : finding.places) {
    std::cout << "  " << place << '\n';
  }
  if (!finding.places.empty() && finding.count > static_cast<int64_t>(finding.places.size())) {
    std::cout << "  …\n";
  }
}

int check(const CommandLine& line, const RunConfig& run, const Registries& registries) {
  const std::vector<CheckedLoader> loaders = loaders_of(run, /*with_predictions=*/false);
  DataCheckOptions options;
  options.classes = classes_of(run, registries);
  options.most = line.samples > 0 ? line.samples : options.most;
  const DataCheck found = check_data(loaders, options);
  std::vector<std::string> read;
  for (size_t i = 0; i < loaders.size(); ++i) {
    read.push_back(fmt::format("{}: {}", json_string(loaders[i].name), found.samples[i]));
  }
  std::vector<std::string> findings;
  for (const DataFinding& finding : found.findings) {
    findings.push_back(json_of(finding));
    if (!line.json) {
      print(finding);
    }
  }
  if (line.json) {
    std::cout << fmt::format("{{\"samples\": {{{}}}, \"findings\": [{}]}}",
                             fmt::join(read, ", "),
                             fmt::join(findings, ", "))
              << std::endl;
  } else if (findings.empty()) {
    std::cout << fmt::format("nothing found; samples read: {}\n", fmt::join(read, ", "));
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace

int run_data(const CommandLine& line, Registries& registries) {
  const RunConfig run = only_phase(line, registries);
  if (loaders_of(run, /*with_predictions=*/true).empty()) {
    throw UsageError(line.config + ": it has no loader; give [trainer.fit] a train_dataloader");
  }
  return line.action == "show" ? show(line, run) : check(line, run, registries);
}

}  // namespace rondo
