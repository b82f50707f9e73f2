#include "data/derived/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

#include "core/error.h"
#include "data/batch_memory.h"
#include "data/internal/rows.h"
#include "data/splits/drawn_split.h"

namespace rondo::detail {

namespace {

std::unique_ptr<Dataset> made(const std::string& owner, const Factory<DataSource>& factory) {
  std::unique_ptr<DataSource> source = factory.make();
  auto* const indexed = dynamic_cast<Dataset*>(source.get());
  if (indexed == nullptr) {
    throw UsageError(
        fmt::format("{}: {} is iterable, but must be indexable", owner, factory.name()));
  }
  source.release();
  return std::unique_ptr<Dataset>(indexed);
}

/// Rows of one part's batch and the places in the whole batch that they belong to.
struct PartRows {
  Batch batch;
  std::vector<int64_t> places;
};

/// \throws DataError  when a tensor of `rows` is not like that of `first`
const at::Tensor& like_first(const std::string& owner,
                             const PartRows& rows,
                             const std::string& name,
                             const at::Tensor& first) {
  const at::Tensor* const found = rows.batch.find(name);
  const bool is_like = found != nullptr && found->dim() == first.dim() && found->dim() > 0 &&
                       found->scalar_type() == first.scalar_type() &&
                       found->sizes().slice(1) == first.sizes().slice(1);
  if (!is_like) {
    throw DataError(fmt::format(
        "{}: \"{}\" of two parts differs in shape or type, or one lacks it: samples of one batch "
        "are alike",
        owner,
        name));
  }
  return *found;
}

at::Tensor joined(const std::string& owner,
                  const std::vector<PartRows>& all,
                  const std::string& name,
                  int64_t count) {
  const at::Tensor first = all.front().batch[name];
  std::vector<int64_t> shape = first.sizes().vec();
  if (shape.empty()) {
    throw DataError(fmt::format("{}: \"{}\" has no row for each sample", owner, name));
  }
  shape[0] = count;
  at::Tensor whole = batch_tensor(shape, first.scalar_type());
  const size_t row = count == 0 ? 0 : whole.nbytes() / static_cast<size_t>(count);
  auto* const to = static_cast<char*>(whole.data_ptr());
  for (const PartRows& rows : all) {
    const at::Tensor part = like_first(owner, rows, name, first).contiguous();
    const auto* const from = static_cast<const char*>(part.data_ptr());
    for (size_t i = 0; i < rows.places.size() && row > 0; ++i) {
      std::memcpy(to + static_cast<size_t>(rows.places[i]) * row, from + i * row, row);
    }
  }
  return whole;
}

/// Without how the files of the first part are written, and which windows of them trained.
StateDict of_other_files(StateDict learnt) {
  for (const char* const own : {kTableFormat, kTargetFormat, kWindowShares}) {
    learnt.erase(own);
  }
  return learnt;
}

}  // namespace

Parts::Parts(std::string owner, const std::vector<Factory<DataSource>>& factories)
    : owner_(std::move(owner)) {
  if (factories.empty()) {
    throw UsageError(owner_ + ": parts must name at least one data set, got none");
  }
  for (size_t i = 0; i < factories.size(); ++i) {
    if (!factories[i]) {
      throw UsageError(fmt::format("{}: part {} names no data set", owner_, i));
    }
    try {
      parts_.push_back(made(owner_, factories[i]));
      teach(i);
    } catch (...) {
      std::throw_with_nested(
          DataError(fmt::format("{}: part {}, {}", owner_, i, factories[i].name())));
    }
  }
  require_same_facts();
}

/// A part takes over what the first one learnt, except what is of its files alone.
void Parts::teach(size_t part) const {
  StateDict learnt = part > 0 ? of_other_files(parts_.front()->fitted()) : StateDict();
  learnt.erase(kSplits);
  if (!learnt.empty()) {
    parts_[part]->take_fitted(learnt);
  }
}

void Parts::require_same_facts() const {
  const DatasetFacts first = parts_.front()->facts();
  for (size_t i = 1; i < parts_.size(); ++i) {
    const DatasetFacts other = parts_[i]->facts();
    const char* const differs = other.features != first.features               ? "features"
                                : other.categories != first.categories         ? "categories"
                                : other.classes != first.classes               ? "classes"
                                : other.class_names != first.class_names       ? "names of classes"
                                : other.vocabulary != first.vocabulary         ? "vocabulary"
                                : other.image_shape != first.image_shape       ? "shape of an image"
                                : other.targets.size() != first.targets.size() ? "targets"
                                                                               : nullptr;
    if (differs != nullptr) {
      throw DataError(fmt::format("{}: parts 0 and {} differ in their {}", owner_, i, differs));
    }
  }
}

std::vector<int64_t> Parts::sizes() const {
  std::vector<int64_t> sizes;
  for (const auto& part : parts_) {
    sizes.push_back(part->size());
  }
  return sizes;
}

Batch Parts::gather(const std::vector<PartIndex>& samples, int64_t epoch) const {
  std::vector<std::vector<int64_t>> indices(parts_.size());
  std::vector<std::vector<int64_t>> places(parts_.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    indices[samples[i].part].push_back(samples[i].index);
    places[samples[i].part].push_back(static_cast<int64_t>(i));
  }
  std::vector<PartRows> all;
  for (size_t part = 0; part < parts_.size(); ++part) {
    if (!indices[part].empty()) {
      all.push_back({parts_[part]->get_epoch_batch(indices[part], epoch), std::move(places[part])});
    }
  }
  if (all.size() <= 1) {
    return all.empty() ? Batch() : std::move(all.front().batch);
  }
  Batch batch;
  for (const NamedTensor& tensor : all.front().batch.items()) {
    batch.set(tensor.first,
              joined(owner_, all, tensor.first, static_cast<int64_t>(samples.size())));
  }
  return batch;
}

StateDict Parts::fitted() const {
  StateDict learnt = parts_.front()->fitted();
  StateList splits;
  for (const auto& part : parts_) {
    const StateDict own = part->fitted();
    const StateValue* const found = own.find(kSplits);
    for (const StateValue& split : found != nullptr ? found->as_list() : StateList()) {
      const bool is_known = std::any_of(splits.begin(), splits.end(), [&](const StateValue& known) {
        return first_difference(known.as_dict(), split.as_dict()).empty();
      });
      if (!is_known) {
        splits.push_back(split);
      }
    }
  }
  if (!splits.empty()) {
    learnt.set(kSplits, std::move(splits));
  }
  return learnt;
}

void Parts::take_fitted(const StateDict& fitted) {
  for (size_t part = 0; part < parts_.size(); ++part) {
    parts_[part]->take_fitted(part == 0 ? fitted : of_other_files(fitted));
  }
}

void Parts::learn_from(const std::vector<int64_t>& samples) {
  if (auto* const first = dynamic_cast<ScaledColumns*>(parts_.front().get())) {
    first->learn_from(samples);
    for (size_t part = 1; part < parts_.size(); ++part) {
      teach(part);
    }
  }
}

std::vector<DatasetFacts::Target> Parts::feature_scales() const {
  const auto* const first = dynamic_cast<const ScaledColumns*>(parts_.front().get());
  return first != nullptr ? first->feature_scales() : std::vector<DatasetFacts::Target>();
}

DatasetNotes Parts::notes() const {
  DatasetNotes all;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const DatasetNotes one = parts_[i]->notes();
    if (!one.summary.empty()) {
      all.summary += fmt::format("{}part {}: {}", all.summary.empty() ? "" : "; ", i, one.summary);
    }
    for (const std::string& warning : one.warnings) {
      all.warnings.push_back(fmt::format("part {}: {}", i, warning));
    }
  }
  return all;
}

std::vector<PartIndex> PartsDataset::places(const std::vector<int64_t>& indices) const {
  std::vector<PartIndex> found;
  found.reserve(indices.size());
  for (const int64_t index : indices) {
    check_index(index, size());
    found.push_back(place(index));
  }
  return found;
}

void PartsDataset::learn_from(const std::vector<int64_t>& samples) {
  std::vector<int64_t> of_first;
  for (const PartIndex& at : places(samples)) {
    if (at.part == 0) {
      of_first.push_back(at.index);
    }
  }
  parts_.learn_from(of_first);
  arrange();
}

Sample PartsDataset::get(int64_t index) const {
  check_index(index, size());
  const PartIndex at = place(index);
  return parts_[at.part].get(at.index);
}

std::string PartsDataset::sample_name(int64_t index) const {
  const PartIndex at = place(index);
  return parts_[at.part].sample_name(at.index);
}

Batch PartsDataset::get_batch(const std::vector<int64_t>& indices) const {
  return parts_.gather(places(indices), 0);
}

Batch PartsDataset::get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const {
  return parts_.gather(places(indices), epoch);
}

std::vector<double> PartsDataset::numbers(const std::string& name) const {
  std::vector<std::vector<double>> of_parts;
  for (size_t part = 0; part < parts_.count(); ++part) {
    of_parts.push_back(parts_[part].numbers(name));
  }
  std::vector<double> found(static_cast<size_t>(size()));
  for (size_t i = 0; i < found.size(); ++i) {
    const PartIndex at = place(static_cast<int64_t>(i));
    found[i] = of_parts[at.part][static_cast<size_t>(at.index)];
  }
  return found;
}

std::vector<int64_t> PartsDataset::lengths(const std::vector<std::string>& names) const {
  std::vector<std::vector<int64_t>> of_parts;
  for (size_t part = 0; part < parts_.count(); ++part) {
    of_parts.push_back(parts_[part].lengths(names));
  }
  std::vector<int64_t> found(static_cast<size_t>(size()));
  for (size_t i = 0; i < found.size(); ++i) {
    const PartIndex at = place(static_cast<int64_t>(i));
    found[i] = of_parts[at.part][static_cast<size_t>(at.index)];
  }
  return found;
}

}  // namespace rondo::detail
