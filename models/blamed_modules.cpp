#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstdint>
#include <regex>
#include <utility>

#include "models/internal/blamed_modules.h"
#include "models/model_state.h"

namespace rondo::detail {

namespace {

using Shape = std::vector<int64_t>;

Shape numbers_in(const std::string& text) {
  static const std::regex kNumber("[0-9]{1,18}");
  Shape shape;
  for (std::sregex_iterator at(text.begin(), text.end(), kNumber), end; at != end; ++at) {
    shape.push_back(std::stoll(at->str()));
  }
  return shape;
}

/// What `form` finds in the text, as shapes.
std::vector<Shape> shapes_in(const std::string& text, const std::regex& form) {
  std::vector<Shape> shapes;
  for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at) {
    shapes.push_back(numbers_in((*at)[1].str()));
  }
  return shapes;
}

/// Shapes of parameters and buffers that a complaint of LibTorch names.
std::vector<Shape> named_shapes(const std::string& complaint) {
  // "weight of size [8, 1, 3, 3]", "normalized_shape=[8]"
  static const std::regex kWeight("(?:weight of size |normalized_shape=)(\\[[0-9, ]+\\])");
  // "mat1 and mat2 shapes cannot be multiplied (10x5 and 4x3)": the second is a weight, transposed
  static const std::regex kProduct("[0-9]+x[0-9]+ and ([0-9]+x[0-9]+)");
  // "running_mean should contain 8 elements not 4"
  static const std::regex kStatistics("running_\\w+ should contain [0-9]+ elements not ([0-9]+)");
  // "Expected more than 1 value per channel when training, got input size [1, 8]"
  static const std::regex kOneValue("more than 1 value per channel.*\\[1, ([0-9]+)");
  std::vector<Shape> shapes;
  for (const std::regex* form : {&kWeight, &kProduct, &kStatistics, &kOneValue}) {
    const std::vector<Shape> found = shapes_in(complaint, *form);
    shapes.insert(shapes.end(), found.begin(), found.end());
  }
  return shapes;
}

bool names(const std::vector<Shape>& shapes, const Shape& sizes, bool is_product) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
    return shape == sizes ||
           (is_product && sizes.size() == 2 && shape == Shape{sizes[1], sizes[0]});
  });
}

}  // namespace

std::vector<std::string> blamed_modules(const torch::nn::Module& module,
                                        const std::string& complaint) {
  const std::vector<Shape> shapes = named_shapes(complaint);
  const bool is_product = complaint.find("multiplied") != std::string::npos;
  const bool is_of_statistics = complaint.find("running_") != std::string::npos ||
                                complaint.find("value per channel") != std::string::npos;
  std::vector<std::string> blamed;
  for (const NamedTensor& tensor :
       is_of_statistics ? named_buffers(module) : named_parameters(module)) {
    const size_t dot = tensor.first.rfind('.');
    const std::string name = tensor.first.substr(dot == std::string::npos ? 0 : dot + 1);
    const bool is_meant = is_of_statistics ? name == "running_mean" : name != "bias";
    if (is_meant && names(shapes, tensor.second.sizes().vec(), is_product)) {
      blamed.push_back(
          fmt::format("{} ({} [{}])",
                      dot == std::string::npos ? "the model" : tensor.first.substr(0, dot),
                      name,
                      fmt::join(tensor.second.sizes(), ", ")));
    }
  }
  return blamed;
}

}  // namespace rondo::detail
