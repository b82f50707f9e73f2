#include "metrics/metric_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/nan_sign.h"
#include "metrics/sums_metric.h"

namespace rondo {

namespace {

bool has_all(const TensorMap& tensors, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return tensors.find(name) != nullptr;
  });
}

/// Null where there are none, or other ones: a metric may have been written differently then.
const StateValue* sums_of(const MetricSet::Entry& entry, const StateDict& state) {
  const StateValue* const saved = state.find(entry.name);
  if (saved == nullptr) {
    return nullptr;
  }
  for (const Metric::NamedTensor& tensor : entry.metric->state()) {
    if (saved->as_dict().find(tensor.first) == nullptr) {
      return nullptr;
    }
  }
  return saved;
}

bool has_needs(const Metric& metric, const Outputs& outputs, const Batch& batch) {
  const Metric::Needs needs = metric.needs();
  return has_all(outputs, needs.outputs) && has_all(batch, needs.batch);
}

}  // namespace

void MetricSet::add(const Factory<Metric>& metric) {
  add(metric, /*is_default=*/false);
}

void MetricSet::add_default(const Factory<Metric>& metric) {
  add(metric, /*is_default=*/true);
}

void MetricSet::add(const Factory<Metric>& metric, bool is_default) {
  std::unique_ptr<Metric> made = metric.make();
  std::string name = metric.label().empty() ? made->name() : metric.label();
  const auto same = std::find_if(
      entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
  if (same == entries_.end()) {
    entries_.push_back({std::move(name), std::move(made), is_default});
  } else if (same->is_default && !is_default) {
    *same = {std::move(name), std::move(made)};
  } else {
    throw UsageError(fmt::format("two metrics are called \"{}\"; give one of them a label", name));
  }
}

void MetricSet::ignore(int64_t label) {
  for (const Entry& entry : entries_) {
    entry.metric->ignore(label);
  }
}

void MetricSet::to(c10::Device device) {
  for (const Entry& entry : entries_) {
    entry.metric->to(device);
  }
}

void MetricSet::update(const Outputs& outputs, const Batch& batch) {
  for (const Entry& entry : entries_) {
    if (has_needs(*entry.metric, outputs, batch)) {
      entry.metric->update(outputs, batch);
    }
  }
}

void MetricSet::note(const Outputs& outputs, const Batch& batch) {
  for (Entry& entry : entries_) {
    entry.is_used = entry.is_used || has_needs(*entry.metric, outputs, batch);
  }
}

Metrics MetricSet::values() const {
  Metrics values;
  for (const Entry& entry : entries_) {
    if (!entry.is_used) {
      continue;
    }
    for (const Metric::Value& value : entry.metric->values()) {
      // A NaN too: that is the result then.
      values.set(value.first.empty() ? entry.name : entry.name + "/" + value.first,
                 without_sign_of_nan(value.second));
    }
  }
  return values;
}

std::vector<Media> MetricSet::media() const {
  std::vector<Media> all;
  for (const Entry& entry : entries_) {
    if (!entry.is_used) {
      continue;
    }
    for (Media& media : entry.metric->media()) {
      media.name = entry.name + "/" + media.name;
      all.push_back(std::move(media));
    }
  }
  return all;
}

bool MetricSet::are_sums() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return dynamic_cast<const SumsMetric*>(entry.metric.get()) != nullptr;
  });
}

std::vector<double> MetricSet::uses() const {
  std::vector<double> uses;
  for (const Entry& entry : entries_) {
    uses.push_back(entry.is_used ? 1.0 : 0.0);
  }
  return uses;
}

void MetricSet::take_uses(const double* uses) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].is_used = uses[i] != 0.0;
  }
}

void MetricSet::reset() {
  for (Entry& entry : entries_) {
    entry.metric->reset();
    entry.is_used = false;
  }
}

NamedTensors MetricSet::state() const {
  NamedTensors tensors;
  for (const Entry& entry : entries_) {
    for (const Metric::NamedTensor& tensor : entry.metric->state()) {
      tensors.emplace_back(entry.name + "/" + tensor.first, tensor.second);
    }
  }
  return tensors;
}

StateDict MetricSet::state_dict() const {
  StateDict state;
  for (const Entry& entry : entries_) {
    if (entry.is_used) {
      StateDict sums;
      for (const Metric::NamedTensor& tensor : entry.metric->state()) {
        sums.set(tensor.first, tensor.second);
      }
      state.set(entry.name, std::move(sums));
    }
  }
  return state;
}

void MetricSet::check(const StateDict& state) const {
  for (const Entry& entry : entries_) {
    const StateValue* saved = sums_of(entry, state);
    if (saved == nullptr) {
      continue;
    }
    for (const Metric::NamedTensor& tensor : entry.metric->state()) {
      const std::string expected = StateValue(tensor.second).kind();
      const std::string found = saved->as_dict().at(tensor.first).kind();
      if (found != expected) {
        throw CheckpointError(fmt::format(
            "metric \"{}\": \"{}\" is {}, expected {}", entry.name, tensor.first, found, expected));
      }
    }
  }
}

void MetricSet::load(const StateDict& state) {
  for (Entry& entry : entries_) {
    if (const StateValue* saved = sums_of(entry, state)) {
      for (const Metric::NamedTensor& tensor : entry.metric->state()) {
        tensor.second.copy_(saved->as_dict().at(tensor.first).as_tensor());
      }
      entry.is_used = true;
    }
  }
}

}  // namespace rondo
