#include "data/derived/combined.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

using detail::PartIndex;

/// The samples of one round, those of each part spread over it.
std::vector<PartIndex> round_of(const std::vector<int64_t>& shares) {
  struct Turn {
    double at;
    PartIndex sample;
  };

  std::vector<Turn> turns;
  for (size_t part = 0; part < shares.size(); ++part) {
    for (int64_t i = 0; i < shares[part]; ++i) {
      turns.push_back(
          {(static_cast<double>(i) + 0.5) / static_cast<double>(shares[part]), {part, i}});
    }
  }
  std::stable_sort(
      turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.at < b.at; });
  std::vector<PartIndex> round;
  for (const Turn& turn : turns) {
    round.push_back(turn.sample);
  }
  return round;
}

}  // namespace

Subset::Subset(const Options& options) : PartsDataset("Subset", {options.of}), options_(options) {
  detail::require(options.every >= 1, "Subset: every", ">= 1", options.every);
  arrange();
}

void Subset::arrange() {
  const int64_t available = parts()[0].size();
  if (!options_.indices.empty()) {
    for (const int64_t index : options_.indices) {
      detail::check_index(index, available);
    }
    size_ = static_cast<int64_t>(options_.indices.size());
    return;
  }
  const auto [first, end] =
      detail::checked_range("Subset", options_.from, options_.count, available);
  size_ = (end - first + options_.every - 1) / options_.every;
}

PartIndex Subset::place(int64_t index) const {
  return {0,
          options_.indices.empty() ? options_.from + index * options_.every
                                   : options_.indices[static_cast<size_t>(index)]};
}

Concat::Concat(const Options& options) : PartsDataset("Concat", options.parts) {
  arrange();
}

void Concat::arrange() {
  ends_.clear();
  int64_t end = 0;
  for (const int64_t size : parts().sizes()) {
    end += size;
    ends_.push_back(end);
  }
}

PartIndex Concat::place(int64_t index) const {
  const auto part =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {part, part == 0 ? index : index - ends_[part - 1]};
}

Interleave::Interleave(const Options& options)
    : PartsDataset("Interleave", options.parts), options_(options) {
  if (options_.shares.empty()) {
    options_.shares.assign(parts().count(), 1);
  }
  detail::require(options_.shares.size() == parts().count(),
                  "Interleave: shares",
                  fmt::format("{}, one for each part", parts().count()),
                  options_.shares.size());
  for (const int64_t share : options_.shares) {
    detail::require(share >= 1 && share <= 1 << 20, "Interleave: shares", "in [1, 2^20]", share);
  }
  detail::require(options_.until == "shortest" || options_.until == "longest",
                  "Interleave: until",
                  "\"shortest\" or \"longest\"",
                  options_.until);
  round_ = round_of(options_.shares);
  arrange();
}

void Interleave::arrange() {
  sizes_ = parts().sizes();
  const bool is_longest = options_.until == "longest";
  rounds_ = 0;
  for (size_t part = 0; part < sizes_.size(); ++part) {
    const int64_t share = options_.shares[part];
    detail::require(
        sizes_[part] >= (is_longest ? 1 : share),
        fmt::format("Interleave: samples of part {}", part),
        is_longest ? std::string("at least one") : fmt::format(">= {}, its share", share),
        sizes_[part]);
    const int64_t rounds = is_longest ? (sizes_[part] + share - 1) / share : sizes_[part] / share;
    const bool is_first = part == 0;
    rounds_ = is_first     ? rounds
              : is_longest ? std::max(rounds_, rounds)
                           : std::min(rounds_, rounds);
  }
}

int64_t Interleave::size() const {
  return rounds_ * static_cast<int64_t>(round_.size());
}

PartIndex Interleave::place(int64_t index) const {
  const auto turns = static_cast<int64_t>(round_.size());
  const PartIndex turn = round_[static_cast<size_t>(index % turns)];
  const int64_t sample = index / turns * options_.shares[turn.part] + turn.index;
  return {turn.part, sample % sizes_[turn.part]};
}

void register_combined(Registry<DataSource>& registry) {
  registry.add<Subset>("Subset", "Some samples of another data set.")
      .key_of("of",
              &Subset::Options::of,
              ComponentOption<DataSource>(registry),
              "the data set: { CsvTable = { file = \"a.csv\" } }")
      .required()
      .key("from", &Subset::Options::from, at_least(0), "number of the first sample")
      .key("count", &Subset::Options::count, at_least(1), "samples from there; all when absent")
      .key("every", &Subset::Options::every, at_least(1), "takes one of so many samples")
      .key("indices",
           &Subset::Options::indices,
           each(0, at_least(0)),
           "instead: the numbers of the samples, in this order");
  registry.add<Concat>("Concat", "The samples of several data sets, one after the other.")
      .key_of("parts",
              &Concat::Options::parts,
              ComponentListOption<DataSource>(registry),
              "the data sets: [{ CsvTable = { file = \"a.csv\" } }, ...]")
      .required();
  registry.add<Interleave>("Interleave", "The samples of several data sets by turns.")
      .key_of("parts",
              &Interleave::Options::parts,
              ComponentListOption<DataSource>(registry),
              "the data sets: [{ CsvTable = { file = \"a.csv\" } }, ...]")
      .required()
      .key("shares",
           &Interleave::Options::shares,
           each(0, at_least(1)),
           "samples of each part in a round; 1 each when empty")
      .key("until",
           &Interleave::Options::until,
           one_of({"shortest", "longest"}),
           "ends with the part that ends first, or last; then others begin again");
}

}  // namespace rondo
