#include "data/generated/glyphs.h"

#include <ATen/ops/empty.h>

#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/generated/glyph_drawing.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

Glyphs::Glyphs(const Options& options) {
  detail::require(options.size >= 1, "Glyphs: size", ">= 1", options.size);
  detail::require(options.split == "train" || options.split == "val",
                  "Glyphs: split",
                  "\"train\" or \"val\"",
                  options.split);
  detail::require(options.max_rotation_deg >= 0 && options.max_rotation_deg <= 180,
                  "Glyphs: max_rotation_deg",
                  "in [0, 180]",
                  options.max_rotation_deg);
  detail::require(options.distortion >= 0, "Glyphs: distortion", ">= 0", options.distortion);
  detail::require(
      options.noise >= 0 && options.noise <= 1, "Glyphs: noise", "in [0, 1]", options.noise);

  constexpr int64_t kSide = detail::kGlyphSide;
  images_ = at::empty({options.size, 1, kSide, kSide}, at::kFloat);
  labels_ = at::empty({options.size}, at::kLong);
  auto* image = images_.data_ptr<float>();
  auto* label = labels_.data_ptr<int64_t>();
  const detail::GlyphStyle style{options.max_rotation_deg, options.distortion, options.noise};
  const uint64_t split = options.split == "train" ? 0 : 1;
  for (int64_t i = 0; i < options.size; ++i) {
    KeyedRandom random(options.seed, split, static_cast<uint64_t>(i));
    label[i] = i % 10;
    detail::draw_glyph(static_cast<int>(label[i]), style, random, image + i * kSide * kSide);
  }
}

Sample Glyphs::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch Glyphs::get_batch(const std::vector<int64_t>& indices) const {
  return {{"image", detail::gather_rows(images_, indices)},
          {"label", detail::gather_rows(labels_, indices)}};
}

DatasetFacts Glyphs::facts() const {
  DatasetFacts facts;
  facts.classes = 10;
  facts.image_shape = images_.sizes().slice(1).vec();
  return facts;
}

void register_glyphs(Registry<DataSource>& registry) {
  using Options = Glyphs::Options;
  registry.add<Glyphs>("Glyphs", "Generated digits that look handwritten; needs no file.")
      .key("size", &Options::size, at_least(1), "number of glyphs")
      .key("split",
           &Options::split,
           one_of({"train", "val"}),
           "which of two disjoint sets of glyphs")
      .key("seed", &Options::seed, "another seed draws other glyphs")
      .key("max_rotation_deg",
           &Options::max_rotation_deg,
           between(0, 180),
           "largest turn to either side")
      .key("distortion",
           &Options::distortion,
           at_least(0),
           "strength of the shape's distortion; 0: none")
      .key("noise", &Options::noise, between(0, 1), "largest change of a pixel");
}

}  // namespace rondo
