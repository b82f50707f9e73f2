#pragma once

#include <optional>
#include <string>

#include "core/tensor_map.h"
#include "data/data_loader.h"

namespace rondo {

/// Outputs as CSV, a line a sample in the order of the data, which begins with the sample's name:
/// - of "logits" [samples, classes] the class and the probability of each class
/// - of "prediction", [samples] or [samples, values], the values in the units of the data
/// Nothing for other outputs, and for data that is not reached by number.
std::optional<std::string> prediction_table(const Outputs& outputs, const DataLoader& loader);

}  // namespace rondo
