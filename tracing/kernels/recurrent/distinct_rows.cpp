#include "tracing/kernels/recurrent/distinct_rows.h"

#include <algorithm>
#include <cstring>

namespace rondo {

namespace {

// Rows to look at before those of a matrix are taken for all different.
constexpr int64_t kFirstRows = 64;

size_t count_of_places(int64_t most) {
  size_t count = 1;
  while (count < 2 * static_cast<size_t>(most)) {
    count *= 2;
  }
  return count;
}

/// Of the bytes of a row. Four chains of multiplications, so that one need not wait for another.
uint32_t hash_of(const float* row, int64_t columns) {
  constexpr int kChains = 4;
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  uint64_t chains[kChains] = {1, 2, 3, 4};
  uint64_t words[kChains] = {};
  const auto* const bytes = reinterpret_cast<const char*>(row);
  const size_t end = static_cast<size_t>(columns) * sizeof(float);
  size_t at = 0;
  const auto take = [&](size_t count) {
    std::memcpy(words, bytes + at, count);
    for (int i = 0; i < kChains; ++i) {
      chains[i] = (chains[i] ^ words[i]) * kFactor;
    }
  };
  for (; at + sizeof(words) <= end; at += sizeof(words)) {
    take(sizeof(words));
  }
  take(end - at);
  uint64_t hash = 0;
  for (const uint64_t chain : chains) {
    hash = (hash ^ (chain >> 32)) * kFactor;
  }
  return static_cast<uint32_t>(hash >> 32);
}

template <class Number>
int64_t bytes_of(const std::vector<Number>& numbers) {
  return static_cast<int64_t>(numbers.capacity() * sizeof(Number));
}

}  // namespace

DistinctRows::DistinctRows(int64_t rows, int64_t columns, int64_t most)
    : columns_(columns),
      most_(static_cast<size_t>(most)),
      numbers_(static_cast<size_t>(rows)),
      places_(count_of_places(most)) {
  firsts_.reserve(most_);
  hashes_.reserve(most_);
}

bool DistinctRows::find(const float* matrix) {
  firsts_.clear();
  hashes_.clear();
  std::fill(places_.begin(), places_.end(), kNone);
  const auto rows = static_cast<int64_t>(numbers_.size());
  for (int64_t row = 0; row < rows; ++row) {
    Number* const place = place_of(matrix, row);
    if (place == nullptr) {
      return false;
    }
    numbers_[static_cast<size_t>(row)] = *place;
    const auto looked_at = static_cast<size_t>(row + 1);
    if (looked_at == kFirstRows && firsts_.size() == looked_at) {
      return false;
    }
  }
  return true;
}

// Where the number of the row is, or of the one that it is like; null where it would be one more
// than `most`.
DistinctRows::Number* DistinctRows::place_of(const float* matrix, int64_t row) {
  const float* const numbers = matrix + row * columns_;
  const uint32_t hash = hash_of(numbers, columns_);
  const auto is_like = [&](Number number) {
    const auto known = static_cast<size_t>(number);
    return hashes_[known] == hash &&
           std::memcmp(matrix + firsts_[known] * columns_,
                       numbers,
                       static_cast<size_t>(columns_) * sizeof(float)) == 0;
  };
  size_t place = hash % places_.size();
  while (places_[place] != kNone && !is_like(places_[place])) {
    place = (place + 1) % places_.size();
  }
  if (places_[place] == kNone) {
    if (firsts_.size() == most_) {
      return nullptr;
    }
    places_[place] = static_cast<Number>(firsts_.size());
    firsts_.push_back(row);
    hashes_.push_back(hash);
  }
  return &places_[place];
}

int64_t DistinctRows::bytes() const {
  return bytes_of(firsts_) + bytes_of(hashes_) + bytes_of(numbers_) + bytes_of(places_);
}

}  // namespace rondo
