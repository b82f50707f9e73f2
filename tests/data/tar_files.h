#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rondo::test {

/// The bytes of a tar archive of these files, in their order.
std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files);

/// The bytes of a .npy file of float32 numbers, a row of them.
std::string npy_row(const std::vector<float>& numbers);

}  // namespace rondo::test
