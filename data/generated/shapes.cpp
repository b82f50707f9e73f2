#include "data/generated/shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

constexpr int64_t kKinds = 3;

struct Shape {
  int64_t kind;  ///< 1: disc, 2: square, 3: triangle
  double x;
  double y;
  double radius;
  double brightness;
};

Shape drawn(double side, KeyedRandom& random) {
  Shape shape{};
  shape.kind = 1 + static_cast<int64_t>(random.below(kKinds));
  shape.radius = side * (0.12 + 0.13 * random.uniform());
  shape.x = shape.radius + (side - 2 * shape.radius) * random.uniform();
  shape.y = shape.radius + (side - 2 * shape.radius) * random.uniform();
  shape.brightness = 0.5 + 0.5 * random.uniform();
  return shape;
}

bool covers(const Shape& shape, double x, double y) {
  const double right = x - shape.x;
  const double down = y - shape.y;
  if (shape.kind == 1) {
    return right * right + down * down <= shape.radius * shape.radius;
  }
  if (shape.kind == 2) {
    return std::abs(right) <= 0.85 * shape.radius && std::abs(down) <= 0.85 * shape.radius;
  }
  return down <= shape.radius && std::abs(right) <= 0.5 * (down + shape.radius);
}

void draw(const Shape& shape, int64_t side, float* image, int64_t* mask) {
  for (int64_t row = 0; row < side; ++row) {
    for (int64_t column = 0; column < side; ++column) {
      if (covers(shape, static_cast<double>(column) + 0.5, static_cast<double>(row) + 0.5)) {
        image[row * side + column] = static_cast<float>(shape.brightness);
        mask[row * side + column] = shape.kind;
      }
    }
  }
}

}  // namespace

Shapes::Shapes(const Options& options) {
  detail::require(options.size >= 1, "Shapes: size", ">= 1", options.size);
  detail::require(options.side >= 8, "Shapes: side", ">= 8", options.side);
  detail::require(options.most_shapes >= 1, "Shapes: most_shapes", ">= 1", options.most_shapes);
  detail::require(options.noise >= 0, "Shapes: noise", ">= 0", options.noise);
  detail::require(options.split == "train" || options.split == "val",
                  "Shapes: split",
                  "\"train\" or \"val\"",
                  options.split);
  const int64_t side = options.side;
  const int64_t pixels = side * side;
  images_ = at::zeros({options.size, 1, side, side}, at::kFloat);
  masks_ = at::zeros({options.size, side, side}, at::kLong);
  auto* const image = images_.data_ptr<float>();
  auto* const mask = masks_.data_ptr<int64_t>();
  const uint64_t split = options.split == "train" ? 0 : 1;
  for (int64_t i = 0; i < options.size; ++i) {
    KeyedRandom random(options.seed, split, static_cast<uint64_t>(i));
    const auto shapes = 1 + random.below(static_cast<uint64_t>(options.most_shapes));
    for (uint64_t shape = 0; shape < shapes; ++shape) {
      draw(drawn(static_cast<double>(side), random), side, image + i * pixels, mask + i * pixels);
    }
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      image[i * pixels + pixel] += static_cast<float>(options.noise * random.normal());
    }
  }
}

Sample Shapes::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch Shapes::get_batch(const std::vector<int64_t>& indices) const {
  return {{"image", detail::gather_rows(images_, indices)},
          {"mask", detail::gather_rows(masks_, indices)}};
}

DatasetFacts Shapes::facts() const {
  DatasetFacts facts;
  facts.classes = kKinds + 1;
  facts.image_shape = images_.sizes().slice(1).vec();
  return facts;
}

void register_shapes(Registry<DataSource>& registry) {
  using Options = Shapes::Options;
  registry.add<Shapes>("Shapes", "Generated pictures of shapes with masks; needs no file.")
      .key("size", &Options::size, at_least(1), "number of pictures")
      .key("side", &Options::side, at_least(8), "pixels a side")
      .key("most_shapes", &Options::most_shapes, at_least(1), "shapes in a picture")
      .key("noise", &Options::noise, at_least(0), "standard deviation of a pixel's noise")
      .key("split",
           &Options::split,
           one_of({"train", "val"}),
           "which of two disjoint sets of pictures")
      .key("seed", &Options::seed, "another seed draws other pictures");
}

}  // namespace rondo
