#include "callbacks/algorithms/col_out.h"

#include <ATen/ops/randperm.h>

#include <tuple>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The lines that stay, in their order: int64.
at::Tensor kept(const at::Tensor& images, int64_t size, double share_that_goes) {
  const auto count = static_cast<int64_t>((1.0 - share_that_goes) * static_cast<double>(size));
  const at::Tensor order = at::randperm(size, images.options().dtype(at::kLong));
  return std::get<0>(order.narrow(0, 0, count).sort());
}

}  // namespace

ColOut::ColOut(const Options& options) : options_(options) {
  const auto require_share = [](const char* name, double value) {
    detail::require(value >= 0 && value < 1, name, "in [0, 1)", value);
  };
  require_share("ColOut: p_row", options.p_row);
  require_share("ColOut: p_col", options.p_col);
}

bool ColOut::match(Event event, const State&) const {
  return event == Event::BeforeForward;
}

void ColOut::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  const at::Tensor images = batch[options_.input];
  detail::require_images(images, "ColOut");
  const at::Tensor rows = kept(images, images.size(2), options_.p_row);
  const at::Tensor columns = kept(images, images.size(3), options_.p_col);
  const at::Tensor* const target = batch.find(options_.target);
  const bool is_picture =
      target != nullptr && target->dim() >= 3 &&
      target->sizes().slice(static_cast<size_t>(target->dim() - 2)) == images.sizes().slice(2);
  if (is_picture) {
    batch.set(options_.target, target->index_select(-2, rows).index_select(-1, columns));
  }
  batch.set(options_.input, images.index_select(2, rows).index_select(3, columns));
}

void register_col_out(Registry<Algorithm>& registry) {
  using Options = ColOut::Options;
  registry.add<ColOut>("ColOut", "Takes rows and columns out of training pictures.")
      .key("p_row", &Options::p_row, below_one(), "share of the rows that goes")
      .key("p_col", &Options::p_col, below_one(), "share of the columns that goes")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]")
      .key("target", &Options::target, "name in the batch: integers, or shares of classes");
}

}  // namespace rondo
