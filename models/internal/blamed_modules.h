#pragma once

#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace rondo::detail {

/// The modules that an operator's complaint may be about: those with a parameter or buffer of a
/// shape that it names, such as "layer0 (weight [3, 4])". LibTorch says shapes only.
std::vector<std::string> blamed_modules(const torch::nn::Module& module,
                                        const std::string& complaint);

}  // namespace rondo::detail
