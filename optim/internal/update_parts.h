#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/parallel.h"
#include "optim/internal/scale_loop.h"

namespace rondo::detail {

/// Elements whose update is worth a thread: more than other work on them, since the next step has
/// to fetch from that thread's cache what it updated.
inline constexpr int64_t kUpdatedByThread = 4 * kElementsOfThread;

/// Tensors whose elements are updated as if they lay in one row: shared out to LibTorch's threads
/// together, so that a hundred small tensors are worth a thread as a large one is, and threads are
/// woken once.
class UpdateParts {
 public:
  /// \param index  of the tensor, for whoever updates it
  void add(size_t index, int64_t elements) {
    const int64_t first = tensors_.empty() ? 0 : tensors_.back().end;
    tensors_.push_back({index, elements, first, first + (elements + kUnit - 1) / kUnit});
  }

  bool empty() const { return tensors_.empty(); }

  template <class Visit>
  void for_each_tensor(const Visit& visit) const {
    for (const Tensor& tensor : tensors_) {
      visit(tensor.index);
    }
  }

  /// Calls `update(index, begin, end)` for parts of each tensor's elements, several at a time.
  template <class Update>
  void for_each(const Update& update) const {
    const int64_t units = tensors_.empty() ? 0 : tensors_.back().end;
    rondo::parallel_for(units, kUpdatedByThread / kUnit, [&](int64_t begin, int64_t end) {
      auto tensor = std::upper_bound(
          tensors_.begin(), tensors_.end(), begin, [](int64_t unit, const Tensor& t) {
            return unit < t.end;
          });
      for (; tensor != tensors_.end() && tensor->first < end; ++tensor) {
        const int64_t from = (std::max(begin, tensor->first) - tensor->first) * kUnit;
        const int64_t to = (std::min(end, tensor->end) - tensor->first) * kUnit;
        update(tensor->index, from, std::min(to, tensor->elements));
      }
    });
  }

 private:
  static constexpr int64_t kUnit = 16;  // elements, a cache line of float: no two threads share one

  struct Tensor {
    size_t index;
    int64_t elements;
    int64_t first;  // unit, in the row of all
    int64_t end;    // unit
  };

  std::vector<Tensor> tensors_;
};

/// Small enough that what is scaled is still in the innermost cache when the update reads it.
inline constexpr int64_t kScaledAtOnce = 2048;

/// Calls `update(begin, end)` for parts of a gradient's elements, each of which is multiplied by a
/// number just before, in place. \param scale  null for none: there is one part then
template <class T, class Update>
void scale_and_update(T* grad, const T* scale, int64_t begin, int64_t end, const Update& update) {
  if (scale == nullptr) {
    update(begin, end);
    return;
  }
  for (int64_t from = begin; from < end; from += kScaledAtOnce) {
    const int64_t to = std::min(from + kScaledAtOnce, end);
    scale_loop<T>(*scale, grad + from, to - from);
    update(from, to);
  }
}

/// Which tensors of an operator's lists are walked as flat arrays, by dtype, and which are not.
struct UpdateKinds {
  UpdateParts floats;
  UpdateParts doubles;
  std::vector<size_t> others;

  void add(size_t index, const at::Tensor& param, bool is_flat) {
    if (!is_flat) {
      others.push_back(index);
    } else {
      (param.scalar_type() == at::kFloat ? floats : doubles).add(index, param.numel());
    }
  }
};

/// Calls `update(index, begin, end)` for parts of each tensor's elements, several at a time, whose
/// gradients have been scaled.
/// \param params      which are updated; of those in `parts`, flat arrays of T like `grads`
/// \param grad_scale  0-dim, T, on the CPU; undefined for none
template <class T, class Update>
void update_flat(const UpdateParts& parts,
                 const std::vector<at::Tensor>& params,
                 const std::vector<at::Tensor>& grads,
                 const at::Tensor& grad_scale,
                 const Update& update) {
  if (parts.empty()) {
    return;
  }
  const T* const scale = grad_scale.defined() ? grad_scale.data_ptr<T>() : nullptr;
  parts.for_each([&](size_t i, int64_t begin, int64_t end) {
    scale_and_update<T>(grads[i].data_ptr<T>(), scale, begin, end, [&](int64_t from, int64_t to) {
      update(i, from, to);
    });
  });
  parts.for_each_tensor([&](size_t i) {
    // A graph that still needs the old value must notice.
    params[i].unsafeGetTensorImpl()->bump_version();
  });
}

}  // namespace rondo::detail
