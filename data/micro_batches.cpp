#include "data/micro_batches.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ne.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/ignored_label.h"

namespace rondo {

namespace {

bool is_whole(const NamedTensor& item, const std::vector<std::string>& not_cut) {
  return item.second.dim() == 0 ||
         std::find(not_cut.begin(), not_cut.end(), item.first) != not_cut.end();
}

}  // namespace

Batch cut_first(const Batch& batch, const std::vector<std::string>& not_cut) {
  Batch sorted;
  Batch whole;
  for (const NamedTensor& item : batch.items()) {
    (is_whole(item, not_cut) ? whole : sorted).set(item.first, item.second);
  }
  if (sorted.empty()) {
    throw DataError(fmt::format(
        "loop.device_train_microbatch_size or distributed.virtual_ranks: the batch has no tensor "
        "to cut; not_cut has [{}]",
        fmt::join(not_cut, ", ")));
  }
  const int64_t size = sorted.size();
  for (const NamedTensor& item : sorted.items()) {
    if (item.second.size(0) != size) {
      throw DataError(
          fmt::format("loop.device_train_microbatch_size or distributed.virtual_ranks: the batch "
                      "has {} samples "
                      "(of \"{}\"), but \"{}\" has {} rows; name it in not_cut of the loader when "
                      "each micro-batch needs all of it",
                      size,
                      sorted.items().front().first,
                      item.first,
                      item.second.size(0)));
    }
  }
  for (const NamedTensor& item : whole.items()) {
    sorted.set(item.first, item.second);
  }
  return sorted;
}

Batch samples_of(const Batch& batch,
                 int64_t begin,
                 int64_t length,
                 const std::vector<std::string>& not_cut) {
  Batch piece;
  for (const NamedTensor& item : batch.items()) {
    // Memory of its own, aligned as that of a whole batch: kernels round by alignment.
    piece.set(item.first,
              is_whole(item, not_cut) ? item.second : item.second.narrow(0, begin, length).clone());
  }
  return piece;
}

std::vector<Batch> micro_batches(const Batch& batch,
                                 int64_t samples,
                                 const std::vector<std::string>& not_cut) {
  const Batch sorted = cut_first(batch, not_cut);
  const int64_t size = sorted.size();
  if (size <= samples) {
    return {sorted};
  }
  std::vector<Batch> pieces;
  for (int64_t begin = 0; begin < size; begin += samples) {
    pieces.push_back(samples_of(sorted, begin, std::min(samples, size - begin), not_cut));
  }
  return pieces;
}

int64_t tokens_of(const Batch& batch, const std::vector<std::string>& labels) {
  for (const std::string& name : labels) {
    if (const at::Tensor* const found = batch.find(name)) {
      return found->is_floating_point() ? found->numel()
                                        : found->ne(kIgnoredLabel).sum().item<int64_t>();
    }
  }
  if (const at::Tensor* const tokens = batch.find("tokens")) {
    return tokens->numel();
  }
  throw DataError(fmt::format(
      "loop.accumulate_on_tokens: the batch has none of [{}] and no \"tokens\" to count",
      fmt::join(labels, ", ")));
}

}  // namespace rondo
