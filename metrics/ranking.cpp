#include "metrics/ranking.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/ignored_label.h"
#include "core/require.h"
#include "metrics/internal/class_rows.h"
#include "metrics/register.h"

namespace rondo {

namespace {

enum RankingSums { OfClass, Others };

constexpr size_t kMostPoints = 100;  // of a curve
constexpr int64_t kMostCurves = 20;  // of classes

/// Of two classes, class 1 alone.
int64_t ranked_classes(const Ranking::Options& options) {
  return options.classes == 2 ? 1 : options.classes;
}

/// Of each ranked class: float64 [rows, 1 or classes].
at::Tensor probabilities_of(const at::Tensor& rows) {
  const at::Tensor exact = rows.to(at::kDouble);
  if (exact.size(1) == 1) {
    return exact.sigmoid();
  }
  const at::Tensor all = exact.softmax(1);
  return all.size(1) == 2 ? all.slice(1, 1) : all;
}

/// A bin from the highest to the lowest.
std::vector<double> falling(const at::Tensor& bins) {
  const at::Tensor host = bins.flip(0).cpu().contiguous();
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

double total(const std::vector<double>& bins) {
  return std::accumulate(bins.begin(), bins.end(), 0.0);
}

/// Of many points some, evenly, with the first and the last one.
TextTable table_of(const std::pair<const char*, const char*>& axes,
                   const std::vector<std::pair<double, double>>& points) {
  TextTable table{{axes.first, axes.second}, {}};
  const size_t rows = std::min(points.size(), kMostPoints);
  for (size_t i = 0; i < rows; ++i) {
    const auto& [x, y] = points[rows == 1 ? 0 : i * (points.size() - 1) / (rows - 1)];
    table.rows.push_back({fmt::format("{:.5g}", x), fmt::format("{:.5g}", y)});
  }
  return table;
}

template <class T>
void add_ranking_metric(Registry<Metric>& registry, const char* name, const char* doc) {
  using Options = typename T::Options;
  registry.add<T>(name, doc)
      .key("logits", &Options::logits, "an output: [..., classes], or one logit a label")
      .key("target", &Options::label, "name in the batch: integers [...]")
      .key("classes", &Options::classes, at_least(2), "number of classes")
      .key("bins",
           &Options::bins,
           at_least(2),
           "thresholds between 0 and 1 at which predictions are counted")
      .key("ignore_index",
           &Options::ignore_index,
           "a label that does not count; absent: the one that the model's loss leaves out");
}

}  // namespace

Ranking::Ranking(const Options& options)
    : SumsMetric({{"of_class", {ranked_classes(options), options.bins}},
                  {"others", {ranked_classes(options), options.bins}}}),
      options_(options) {
  detail::require(options.classes >= 2, "classes of a metric", ">= 2", options.classes);
  detail::require(options.bins >= 2, "bins of a metric", ">= 2", options.bins);
}

void Ranking::update(const Outputs& outputs, const Batch& batch) {
  const auto [rows, labels, counts] =
      detail::class_rows(name(),
                         outputs[options_.logits].detach(),
                         batch[options_.label],
                         options_.ignore_index.value_or(kIgnoredLabel),
                         options_.classes);
  const at::Tensor probability = probabilities_of(rows);
  const at::Tensor bin =
      probability.mul(static_cast<double>(options_.bins)).to(at::kLong).clamp(0, options_.bins - 1);
  const at::Tensor cell =
      at::arange(ranked_classes(options_), bin.options()).mul(options_.bins).add(bin).flatten();
  const at::Tensor is_of_class =
      ranked_classes(options_) == 1
          ? labels.eq(1).unsqueeze(1)
          : labels.unsqueeze(1).eq(at::arange(options_.classes, labels.options()));
  const at::Tensor counted = counts.unsqueeze(1);
  const auto add = [&](RankingSums which, const at::Tensor& is_one) {
    sum(which).view({-1}).index_add_(
        0, cell, is_one.logical_and(counted).flatten().to(at::kDouble));
  };
  add(OfClass, is_of_class);
  add(Others, is_of_class.logical_not());
}

double Ranking::compute() const {
  double areas = 0.0;
  double ranked = 0.0;
  for (int64_t i = 0; i < ranked_classes(options_); ++i) {
    const std::vector<double> of_class = falling(sum(OfClass)[i]);
    const std::vector<double> others = falling(sum(Others)[i]);
    if (total(of_class) > 0 && total(others) > 0) {
      areas += area(of_class, others);
      ranked += 1.0;
    }
  }
  return ranked > 0 ? areas / ranked : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Media> Ranking::media() const {
  std::vector<Media> curves;
  if (ranked_classes(options_) > kMostCurves) {
    return curves;
  }
  for (int64_t i = 0; i < ranked_classes(options_); ++i) {
    const std::vector<double> of_class = falling(sum(OfClass)[i]);
    const std::vector<double> others = falling(sum(Others)[i]);
    Counts counts;
    counts.all_of_class = total(of_class);
    counts.all_others = total(others);
    if (counts.all_of_class == 0 || counts.all_others == 0) {
      continue;
    }
    std::vector<std::pair<double, double>> points;
    if (const auto first = point(counts); std::isfinite(first.second)) {
      points.push_back(first);
    }
    for (size_t bin = 0; bin < of_class.size(); ++bin) {
      counts.of_class += of_class[bin];
      counts.others += others[bin];
      if (of_class[bin] + others[bin] > 0) {
        points.push_back(point(counts));
      }
    }
    const std::string name = ranked_classes(options_) == 1 ? "curve" : fmt::format("curve/{}", i);
    curves.push_back({name, table_of(axes(), points)});
  }
  return curves;
}

std::pair<const char*, const char*> Auroc::axes() const {
  return {"false_positive_rate", "true_positive_rate"};
}

std::pair<double, double> Auroc::point(const Counts& counts) const {
  return {counts.others / counts.all_others, counts.of_class / counts.all_of_class};
}

double Auroc::area(const std::vector<double>& of_class, const std::vector<double>& others) const {
  double above = 0.0;  // of the class, in higher bins
  double pairs = 0.0;  // in which the one of the class is ranked higher; a tie is half of one
  for (size_t bin = 0; bin < of_class.size(); ++bin) {
    pairs += others[bin] * (above + of_class[bin] / 2);
    above += of_class[bin];
  }
  return pairs / (total(of_class) * total(others));
}

std::pair<const char*, const char*> AveragePrecision::axes() const {
  return {"recall", "precision"};
}

std::pair<double, double> AveragePrecision::point(const Counts& counts) const {
  return {counts.of_class / counts.all_of_class,
          counts.of_class / (counts.of_class + counts.others)};
}

double AveragePrecision::area(const std::vector<double>& of_class,
                              const std::vector<double>& others) const {
  double right = 0.0;
  double taken = 0.0;
  double area = 0.0;
  for (size_t bin = 0; bin < of_class.size(); ++bin) {
    right += of_class[bin];
    taken += of_class[bin] + others[bin];
    area += taken > 0 ? of_class[bin] * right / taken : 0.0;
  }
  return area / total(of_class);
}

void register_rankings(Registry<Metric>& registry) {
  add_ranking_metric<Auroc>(registry, "Auroc", "Area under the receiver operating characteristic.");
  add_ranking_metric<AveragePrecision>(
      registry, "AveragePrecision", "Area under the curve of precision over recall.");
}

}  // namespace rondo
