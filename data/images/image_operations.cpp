#include "data/images/image_operations.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/where.h>

#include <vector>

#include "core/error.h"

namespace rondo {

namespace {

void require_images(const at::Tensor& images) {
  if (images.dim() != 4 || !images.is_floating_point()) {
    throw ShapeError("pictures must be floating [B, channels, height, width]");
  }
}

/// A number in [least, most) for each picture: [B, 1, 1, 1].
at::Tensor numbers(const at::Tensor& images, double least, double most) {
  return at::rand({images.size(0), 1, 1, 1}, images.options()).mul(most - least).add(least);
}

/// Whole numbers in [0, bound] for each picture: int64 [B, 1, 1, 1].
at::Tensor places(const at::Tensor& images, int64_t bound) {
  return numbers(images, 0.0, static_cast<double>(bound + 1))
      .floor()
      .to(at::kLong)
      .clamp_max(bound);
}

/// 0 … size-1 along dimension `dim` of four.
at::Tensor positions(const at::Tensor& images, int64_t dim) {
  std::vector<int64_t> shape(4, 1);
  shape[static_cast<size_t>(dim)] = images.size(dim);
  return at::arange(images.size(dim), images.options().dtype(at::kLong)).reshape(shape);
}

/// For each picture, `size` pixels along `dim` from a place of its own on.
at::Tensor parts(const at::Tensor& images, int64_t dim, int64_t size, const at::Tensor& from) {
  std::vector<int64_t> shape(4, 1);
  shape[static_cast<size_t>(dim)] = size;
  const at::Tensor index = at::arange(size, from.options()).reshape(shape).add(from);
  std::vector<int64_t> whole = images.sizes().vec();
  whole[static_cast<size_t>(dim)] = size;
  return images.gather(dim, index.expand(whole));
}

/// True in a stretch of random place and of up to half of the side.
at::Tensor is_in_stretch(const at::Tensor& images, int64_t dim) {
  const int64_t size = images.size(dim);
  const at::Tensor first = places(images, size - 1);
  const at::Tensor length = places(images, (size + 1) / 2 - 1).add(1);
  const at::Tensor at = positions(images, dim);
  return at.ge(first).logical_and(at.lt(first.add(length)));
}

}  // namespace

at::Tensor random_flip(const at::Tensor& images, double chance) {
  require_images(images);
  return at::where(numbers(images, 0.0, 1.0).lt(chance), images.flip({3}), images);
}

at::Tensor random_shift(const at::Tensor& images, int64_t reach) {
  require_images(images);
  const at::Tensor wide = at::constant_pad_nd(images, {reach, reach, reach, reach}, 0);
  const at::Tensor rows = parts(wide, 2, images.size(2), places(images, 2 * reach));
  return parts(rows, 3, images.size(3), places(images, 2 * reach));
}

at::Tensor random_light(const at::Tensor& images, double brightness, double contrast) {
  require_images(images);
  const at::Tensor bright = images.mul(numbers(images, 1.0 - brightness, 1.0 + brightness));
  const at::Tensor mean = bright.mean({1, 2, 3}, /*keepdim=*/true);
  return bright.sub(mean).mul(numbers(images, 1.0 - contrast, 1.0 + contrast)).add(mean);
}

at::Tensor random_erase(const at::Tensor& images, double chance) {
  require_images(images);
  const at::Tensor is_erased = numbers(images, 0.0, 1.0)
                                   .lt(chance)
                                   .logical_and(is_in_stretch(images, 2))
                                   .logical_and(is_in_stretch(images, 3));
  return images.masked_fill(is_erased, 0);
}

}  // namespace rondo
