#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "data/internal/learnt.h"
#include "data/tables/learnt_format.h"
#include "data/tables/table_fit.h"

namespace rondo {

namespace {

using detail::list_of;
using detail::texts_of;
using Kind = FittedFeature::Kind;

constexpr const char* kKinds[] = {"number", "boolean", "date", "category"};

StateList list_of_scales(const std::vector<NumberScale>& scales) {
  StateList list;
  for (const NumberScale& scale : scales) {
    list.emplace_back(
        StateDict{{"log", scale.is_log}, {"shift", scale.shift}, {"factor", scale.factor}});
  }
  return list;
}

std::vector<NumberScale> scales_of(const StateValue& list) {
  std::vector<NumberScale> scales;
  for (const StateValue& one : list.as_list()) {
    const StateDict& scale = one.as_dict();
    scales.push_back(
        {scale.at("log").as_bool(), scale.at("shift").as_double(), scale.at("factor").as_double()});
  }
  return scales;
}

StateDict state_of(const FittedFeature& feature) {
  return {{"name", feature.name},
          {"kind", kKinds[static_cast<size_t>(feature.kind)]},
          {"has_indicator", feature.has_indicator},
          {"parts", list_of(feature.parts)},
          {"fills", StateList(feature.fills.begin(), feature.fills.end())},
          {"scales", list_of_scales(feature.scales)},
          {"words", list_of(feature.words)},
          {"date_order", feature.date_order}};
}

FittedFeature feature_of(const StateDict& state) {
  FittedFeature feature;
  feature.name = state.at("name").as_string();
  const std::string& kind = state.at("kind").as_string();
  const auto* found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) {
    throw CheckpointError(
        fmt::format("column \"{}\" is of the unknown kind \"{}\"", feature.name, kind));
  }
  feature.kind = static_cast<Kind>(found - std::begin(kKinds));
  feature.has_indicator = state.at("has_indicator").as_bool();
  feature.parts = texts_of(state.at("parts"));
  for (const StateValue& fill : state.at("fills").as_list()) {
    feature.fills.push_back(fill.as_double());
  }
  feature.scales = scales_of(state.at("scales"));
  feature.words = texts_of(state.at("words"));
  if (const StateValue* const order = state.find("date_order")) {
    feature.date_order = order->as_string();
  }
  constexpr const char* kParts[] = {
      "", "days", "seconds", "year", "month", "day", "weekday", "hour"};
  const bool knows_parts =
      std::all_of(feature.parts.begin(), feature.parts.end(), [&](const std::string& part) {
        return std::find(std::begin(kParts), std::end(kParts), part) != std::end(kParts) &&
               part.empty() == (feature.kind != Kind::Date);
      });
  if (!knows_parts || feature.fills.size() != feature.parts.size() ||
      feature.scales.size() != feature.parts.size()) {
    throw CheckpointError(fmt::format("what was learnt of column \"{}\" is damaged", feature.name));
  }
  return feature;
}

std::optional<TableFormat> format_in(const StateDict& state, const char* name) {
  const StateValue* const format = state.find(name);
  return format != nullptr ? std::optional<TableFormat>(format_from(format->as_dict()))
                           : std::nullopt;
}

}  // namespace

StateDict TableFit::state() const {
  StateList columns;
  for (const FittedFeature& feature : features) {
    columns.emplace_back(state_of(feature));
  }
  StateDict predicted{{"names", list_of(label.names)},
                      {"is_class", label.is_class},
                      {"words", list_of(label.words)},
                      {"rows", StateList(label.rows.begin(), label.rows.end())},
                      {"scales", list_of_scales(label.scales)}};
  StateDict state{{"type", "CsvTable"},
                  {"fills_missing", fills_missing},
                  {"features", std::move(columns)},
                  {"unused", list_of(unused)},
                  {"label", std::move(predicted)}};
  if (format) {
    state.set(kTableFormat, to_state(*format));
  }
  if (!splits.empty()) {
    StateList drawn;
    for (const DrawnSplit& split : splits) {
      drawn.emplace_back(to_state(split));
    }
    state.set(kSplits, std::move(drawn));
  }
  if (target_format) {
    state.set(kTargetFormat, to_state(*target_format));
  }
  return state;
}

TableFit TableFit::from(const StateDict& state) {
  detail::require_learnt_by("CsvTable", state);
  TableFit fit;
  fit.fills_missing = state.at("fills_missing").as_bool();
  for (const StateValue& feature : state.at("features").as_list()) {
    fit.features.push_back(feature_of(feature.as_dict()));
  }
  fit.unused = texts_of(state.at("unused"));
  const StateDict& label = state.at("label").as_dict();
  fit.label.names = texts_of(label.at("names"));
  fit.label.is_class = label.at("is_class").as_bool();
  fit.label.words = texts_of(label.at("words"));
  for (const StateValue& rows : label.at("rows").as_list()) {
    fit.label.rows.push_back(rows.as_int());
  }
  fit.label.scales = scales_of(label.at("scales"));
  const size_t scales = fit.label.is_class ? 0 : fit.label.names.size();
  if (fit.label.scales.size() != scales ||
      (!fit.label.words.empty() && fit.label.words.size() != fit.label.rows.size())) {
    throw CheckpointError("what was learnt of the label is damaged");
  }
  fit.format = format_in(state, kTableFormat);
  fit.target_format = format_in(state, kTargetFormat);
  if (const StateValue* const splits = state.find(kSplits)) {
    for (const StateValue& split : splits->as_list()) {
      fit.splits.push_back(drawn_split_from(split.as_dict()));
    }
  }
  return fit;
}

std::vector<DatasetFacts::Target> TableFit::feature_scales() const {
  std::vector<DatasetFacts::Target> columns;
  for (const FittedFeature& feature : features) {
    for (size_t p = 0; p < feature.parts.size(); ++p) {
      const std::string& part = feature.parts[p];
      const bool is_alone = part.empty() || feature.parts.size() == 1;
      const NumberScale& scale = feature.scales[p];
      columns.push_back(
          {feature.name + (is_alone ? "" : "_" + part), scale.is_log, scale.shift, scale.factor});
    }
    if (feature.has_indicator) {
      columns.emplace_back().name = feature.name + "_missing";
    }
  }
  return columns;
}

DatasetFacts TableFit::facts() const {
  DatasetFacts facts;
  for (const FittedFeature& feature : features) {
    if (feature.kind == Kind::Category) {
      facts.categories.push_back(static_cast<int64_t>(feature.words.size()) + 1);
      facts.category_names.push_back(feature.name);
    }
  }
  for (const DatasetFacts::Target& column : feature_scales()) {
    facts.feature_names.push_back(column.name);
  }
  facts.features = static_cast<int64_t>(facts.feature_names.size());
  if (label.is_class) {
    facts.classes = static_cast<int64_t>(label.rows.size());
    facts.class_names = label.words;
    double all = 0.0;
    for (const int64_t rows : label.rows) {
      all += static_cast<double>(rows);
    }
    for (const int64_t rows : label.rows) {
      const double weight = all / (static_cast<double>(label.rows.size()) *
                                   static_cast<double>(std::max<int64_t>(rows, 1)));
      facts.class_weights.push_back(rows == 0 ? 0.0 : weight);
    }
  } else {
    for (size_t i = 0; i < label.names.size(); ++i) {
      const NumberScale& scale = label.scales[i];
      facts.targets.push_back({label.names[i], scale.is_log, scale.shift, scale.factor});
    }
  }
  return facts;
}

}  // namespace rondo
