#include "support/covering_array.h"

#include <array>
#include <numeric>
#include <optional>
#include <set>

#include "core/random.h"

namespace rondo::test {

namespace {

/// Values a of kind i and b of kind j, i < j.
using Pair = std::array<size_t, 4>;

Pair pair_of(size_t i, size_t a, size_t j, size_t b) {
  return i < j ? Pair{i, a, j, b} : Pair{j, b, i, a};
}

class CoveringArray {
 public:
  CoveringArray(const std::vector<size_t>& sizes, const Excludes& excludes)
      : sizes_(sizes), excludes_(excludes) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t j = i + 1; j < sizes.size(); ++j) {
        for (size_t a = 0; a < sizes[i]; ++a) {
          for (size_t b = 0; b < sizes[j]; ++b) {
            if (!excludes(i, a, j, b)) {
              open_.insert({i, a, j, b});
            }
          }
        }
      }
    }
  }

  std::vector<Choices> rows() {
    std::vector<Choices> rows;
    while (!open_.empty()) {
      const Pair first = *open_.begin();
      if (const std::optional<Choices> row = row_with(first)) {
        close_pairs_of(*row);
        rows.push_back(*row);
      } else {
        open_.erase(first);
      }
    }
    return rows;
  }

 private:
  using Partial = std::vector<std::optional<size_t>>;

  /// The best of a few rows that hold `pair`; nothing when no row may.
  std::optional<Choices> row_with(const Pair& pair) {
    std::optional<Choices> best;
    size_t most = 0;
    for (int i = 0; i < 8; ++i) {
      Partial row(sizes_.size());
      row[pair[0]] = pair[1];
      row[pair[2]] = pair[3];
      const std::optional<Choices> filled = fill(row);
      if (filled.has_value() && (!best.has_value() || closed_by(*filled) > most)) {
        best = filled;
        most = closed_by(*filled);
      }
    }
    return best;
  }

  /// Chooses the other kinds in a random order, each so that it closes the most pairs.
  std::optional<Choices> fill(Partial row) {
    std::vector<size_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random_.below(i)]);
    }
    for (const size_t kind : order) {
      if (!row[kind].has_value()) {
        row[kind] = best_value(row, kind);
        if (!row[kind].has_value()) {
          return std::nullopt;
        }
      }
    }
    Choices choices;
    for (const std::optional<size_t>& value : row) {
      choices.push_back(*value);
    }
    return choices;
  }

  std::optional<size_t> best_value(const Partial& row, size_t kind) {
    std::optional<size_t> best;
    size_t most = 0;
    const size_t begin = random_.below(sizes_[kind]);
    for (size_t n = 0; n < sizes_[kind]; ++n) {
      const size_t value = (begin + n) % sizes_[kind];
      size_t closed = 0;
      bool is_allowed = true;
      for (size_t other = 0; other < row.size(); ++other) {
        if (row[other].has_value()) {
          const Pair pair = pair_of(kind, value, other, *row[other]);
          is_allowed = is_allowed && !excludes_(pair[0], pair[1], pair[2], pair[3]);
          closed += open_.count(pair);
        }
      }
      if (is_allowed && (!best.has_value() || closed > most)) {
        best = value;
        most = closed;
      }
    }
    return best;
  }

  size_t closed_by(const Choices& row) const {
    size_t closed = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = i + 1; j < row.size(); ++j) {
        closed += open_.count({i, row[i], j, row[j]});
      }
    }
    return closed;
  }

  void close_pairs_of(const Choices& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = i + 1; j < row.size(); ++j) {
        open_.erase({i, row[i], j, row[j]});
      }
    }
  }

  const std::vector<size_t>& sizes_;
  const Excludes& excludes_;
  std::set<Pair> open_;
  KeyedRandom random_{1};
};

}  // namespace

std::vector<Choices> covering_array(const std::vector<size_t>& sizes, const Excludes& excludes) {
  return CoveringArray(sizes, excludes).rows();
}

}  // namespace rondo::test
