#pragma once

#include <algorithm>
#include <cstdint>

#include "tracing/kernels/lanes.h"

namespace rondo {

// Max pooling of windows of two by two that lie side by side, eight windows at a time.

/// A plane and its windows.
struct PairedPlane {
  int64_t height;
  int64_t width;

  int64_t size() const { return height * width; }

  int64_t out_height() const { return height / 2; }

  int64_t out_width() const { return width / 2; }

  int64_t windows() const { return out_height() * out_width(); }
};

/// How a row of windows is treated, eight at a time.
enum class RowCut {
  Whole,       ///< eight and more: the last eight together, some of them again
  WithBehind,  ///< less than eight, together with what lies behind: later rows overwrite those
  WithBefore,  ///< less than eight, together with what lies before, which is left as it was
  OneByOne     ///< nothing lies before or behind
};

/// \param row  of windows
inline RowCut cut_of(PairedPlane plane, int64_t row) {
  const int64_t count = plane.out_width();
  const int64_t first = row * count;
  if (count >= kLanes) {
    return RowCut::Whole;
  }
  const bool has_windows_behind = first + kLanes <= plane.windows();
  const bool has_elements_behind = (2 * row + 1) * plane.width + 2 * kLanes <= plane.size();
  if (has_windows_behind && has_elements_behind) {
    return RowCut::WithBehind;
  }
  const int64_t missing = kLanes - count;
  const bool has_before = first >= missing && 2 * row * plane.width >= 2 * missing;
  return has_before ? RowCut::WithBefore : RowCut::OneByOne;
}

/// The first largest element of a window, and its place; a NaN wins, as in LibTorch.
template <class Value, class Place>
struct Largest {
  Value value;
  Place place;

  RONDO_INLINE void offer(const Value& other, const Place& other_place) {
    const auto wins = (other > value) | (other != other);
    value = wins ? other : value;
    place = wins ? other_place : place;
  }
};

/// The same among numbers that are not NaN.
RONDO_AVX2 RONDO_INLINE void offer_number(Largest<Lanes, LaneInts>& largest,
                                          Lanes other,
                                          LaneInts other_place) {
  largest.place = other > largest.value ? other_place : largest.place;
  largest.value = larger(other, largest.value);
}

/// \tparam Read    `Value operator()(Value x)`, of one float and of `Lanes`: what is pooled;
///                 `kMayBeNaN`, whether that may be NaN
/// \tparam Places  `Stored`, the type of a place in memory; `at(corner, k)` and `lanes_at(corner,
///                 k)`, that of element k of the window at `corner`, and of eight windows from
///                 there on, in `Lanes` of the order 0 1 4 5 2 3 6 7; `store(largest, Stored* to)`
template <class Read, class Places>
class PairPooling {
 public:
  using Stored = typename Places::Stored;

  PairPooling(PairedPlane plane, Read read, Places places)
      : plane_(plane), read_(read), places_(places) {}

  RONDO_AVX2 void pool(const float* x, float* y, Stored* places) const {
    for (int64_t row = 0; row < plane_.out_height(); ++row) {
      const int64_t first = row * plane_.out_width();
      pool_row(x, row, y + first, places + first);
    }
  }

 private:
  RONDO_AVX2 RONDO_INLINE void pool_row(const float* x,
                                        int64_t row,
                                        float* y,
                                        Stored* places) const {
    const int64_t count = plane_.out_width();
    const int64_t corner = 2 * row * plane_.width;
    switch (cut_of(plane_, row)) {
      case RowCut::Whole:
        for (int64_t j = 0; j < count; j += kLanes) {
          const int64_t first = std::min(j, count - kLanes);
          pool_eight(x, corner + 2 * first, y + first, places + first);
        }
        break;
      case RowCut::WithBehind:
        pool_eight(x, corner, y, places);
        break;
      case RowCut::WithBefore: {
        const int64_t missing = kLanes - count;
        float values[kLanes];
        Stored their_places[kLanes];
        pool_eight(x, corner - 2 * missing, values, their_places);
        std::copy_n(values + missing, count, y);
        std::copy_n(their_places + missing, count, places);
        break;
      }
      case RowCut::OneByOne:
        for (int64_t j = 0; j < count; ++j) {
          pool_one(x, corner + 2 * j, y + j, places + j);
        }
        break;
    }
  }

  RONDO_AVX2 RONDO_INLINE void pool_eight(const float* x,
                                          int64_t corner,
                                          float* y,
                                          Stored* places) const {
    Largest<Lanes, LaneInts> largest = larger_of_pairs(x + corner, corner, 0);
    const Largest<Lanes, LaneInts> lower = larger_of_pairs(x + corner + plane_.width, corner, 2);
    offer(largest, lower.value, lower.place);
    largest.value = in_order(largest.value);
    largest.place = in_order(largest.place);
    std::memcpy(y, &largest.value, sizeof largest.value);
    places_.store(largest, places);
  }

  RONDO_AVX2 RONDO_INLINE Largest<Lanes, LaneInts> larger_of_pairs(const float* x,
                                                                   int64_t corner,
                                                                   int64_t k) const {
    const Lanes low = read_(load(x));
    const Lanes high = read_(load(x + kLanes));
    const Lanes left = __builtin_shufflevector(low, high, 0, 2, 8, 10, 4, 6, 12, 14);
    const Lanes right = __builtin_shufflevector(low, high, 1, 3, 9, 11, 5, 7, 13, 15);
    Largest<Lanes, LaneInts> largest = {left, places_.lanes_at(corner, k)};
    offer(largest, right, places_.lanes_at(corner, k + 1));
    return largest;
  }

  static RONDO_AVX2 RONDO_INLINE void offer(Largest<Lanes, LaneInts>& largest,
                                            Lanes other,
                                            LaneInts other_place) {
    if constexpr (Read::kMayBeNaN) {
      largest.offer(other, other_place);
    } else {
      offer_number(largest, other, other_place);
    }
  }

  template <class Vector>
  static RONDO_AVX2 RONDO_INLINE Vector in_order(Vector quarters) {
    return __builtin_shufflevector(quarters, quarters, 0, 1, 4, 5, 2, 3, 6, 7);
  }

  RONDO_AVX2 RONDO_INLINE void pool_one(const float* x,
                                        int64_t corner,
                                        float* y,
                                        Stored* place) const {
    const float* const upper = x + corner;
    const float* const lower = upper + plane_.width;
    Largest<float, int64_t> largest = {read_(upper[0]), places_.at(corner, 0)};
    largest.offer(read_(upper[1]), places_.at(corner, 1));
    largest.offer(read_(lower[0]), places_.at(corner, 2));
    largest.offer(read_(lower[1]), places_.at(corner, 3));
    *y = largest.value;
    places_.store(largest, place);
  }

  PairedPlane plane_;
  Read read_;
  Places places_;
};

}  // namespace rondo
