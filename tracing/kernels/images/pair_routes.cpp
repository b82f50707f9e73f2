// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include "tracing/kernels/images/pair_routes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tracing/kernels/lanes.h"
#include "tracing/program/arguments.h"
#include "tracing/program/image.h"

namespace rondo {

namespace {

/// See `spread`.
class Spreading {
 public:
  explicit Spreading(PairedPlane plane) : plane_(plane) {}

  RONDO_AVX2 void plane(const float* gradient, const uint8_t* routes, float* to) const {
    const bool has_rest = plane_.height % 2 != 0 || plane_.width % 2 != 0;
    if (has_rest) {
      std::fill_n(to, plane_.size(), 0.0F);
    }
    for (int64_t row = 0; row < plane_.out_height(); ++row) {
      const int64_t first = row * plane_.out_width();
      float* const upper = to + 2 * row * plane_.width;
      if (has_rest) {
        spread_one_by_one(gradient + first, routes + first, upper);
      } else {
        spread_row(gradient + first, routes + first, upper, row);
      }
    }
  }

 private:
  RONDO_AVX2 RONDO_INLINE void spread_row(const float* gradient,
                                          const uint8_t* routes,
                                          float* upper,
                                          int64_t row) const {
    const int64_t count = plane_.out_width();
    float* const lower = upper + plane_.width;
    switch (cut_of(plane_, row)) {
      case RowCut::Whole:
        for (int64_t j = 0; j < count; j += kLanes) {
          const int64_t first = std::min(j, count - kLanes);
          spread_eight(gradient + first, routes + first, upper + 2 * first, lower + 2 * first);
        }
        break;
      case RowCut::WithBehind:
        spread_eight(gradient, routes, upper, lower);
        break;
      case RowCut::WithBefore: {
        const int64_t missing = kLanes - count;
        float upper_row[2 * kLanes];
        float lower_row[2 * kLanes];
        spread_eight(gradient - missing, routes - missing, upper_row, lower_row);
        std::copy_n(upper_row + 2 * missing, 2 * count, upper);
        std::copy_n(lower_row + 2 * missing, 2 * count, lower);
        break;
      }
      case RowCut::OneByOne:
        spread_one_by_one(gradient, routes, upper);
        break;
    }
  }

  // A gradient of -0 becomes 0, as in a sum that begins with zero.
  RONDO_AVX2 RONDO_INLINE void spread_eight(const float* gradient,
                                            const uint8_t* routes,
                                            float* upper,
                                            float* lower) const {
    const Lanes gradients = load(gradient) + 0.0F;
    const LaneInts route = load_routes(routes);
    interleave(route == 0 ? gradients : Lanes{}, route == 1 ? gradients : Lanes{}, upper);
    interleave(route == 2 ? gradients : Lanes{}, route == 3 ? gradients : Lanes{}, lower);
  }

  static RONDO_AVX2 RONDO_INLINE void interleave(Lanes even, Lanes odd, float* to) {
    const Lanes low = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
    const Lanes high = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
    std::memcpy(to, &low, sizeof low);
    std::memcpy(to + kLanes, &high, sizeof high);
  }

  RONDO_AVX2 RONDO_INLINE void spread_one_by_one(const float* gradient,
                                                 const uint8_t* routes,
                                                 float* upper) const {
    for (int64_t j = 0; j < plane_.out_width(); ++j) {
      float* const corner = upper + 2 * j;
      for (int32_t k = 0; k < kNoRoute; ++k) {
        corner[k / 2 * plane_.width + k % 2] = routes[j] == k ? gradient[j] + 0.0F : 0.0F;
      }
    }
  }

  PairedPlane plane_;
};

}  // namespace

bool fit_together(const Slot* x, const Slot* largest, const Slot* routes) {
  if (!is_plain_float(x) || !is_plain_float(largest) || routes == nullptr ||
      routes->dtype != at::kByte || !is_contiguous(*routes) || numel(*x) == 0 ||
      largest->sizes != routes->sizes || x->sizes.size() < 4 || x->sizes.size() > 5 ||
      x->sizes[2] * x->sizes[3] < kLanes || block_of(*x) % kLanes != 0) {
    return false;
  }
  std::vector<int64_t> windows = x->sizes;
  windows[2] /= 2;
  windows[3] /= 2;
  return largest->sizes == windows;
}

PairedPlane plane_of(const Slot& x) {
  return {x.sizes[2], x.sizes[3]};
}

void spread(PairedPlane plane, const float* gradient, const uint8_t* routes, float* to) {
  Spreading(plane).plane(gradient, routes, to);
}

}  // namespace rondo
