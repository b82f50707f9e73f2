#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/media.h"
#include "core/tensor_map.h"

namespace rondo {

/// The pictures of samples in rows and columns, with a black line between them: those of the tensor
/// "image", else of the first tensor that can be one, [channels, height, width] with 1 or 3
/// channels. Nothing where samples have none.
std::optional<Picture> picture_grid(const std::vector<Sample>& samples);

/// A picture for a terminal, at most `columns` characters wide: in colour, with two pixels a
/// character, or in letters that are the darker the emptier they are.
std::string picture_text(const Picture& picture, int columns, bool in_colour);

}  // namespace rondo
