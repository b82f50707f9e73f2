#include "models/forward_error.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <vector>

#include "models/internal/blamed_modules.h"

namespace rondo {

namespace {

constexpr size_t kMostBlamed = 3;  // more would say nothing

/// How LibTorch's batch norm complains of a batch of one.
bool is_of_one_value(const std::string& complaint) {
  return complaint.find("more than 1 value per channel") != std::string::npos;
}

std::string place_of(const torch::nn::Module& module, const std::string& complaint) {
  const std::vector<std::string> blamed = detail::blamed_modules(module, complaint);
  if (blamed.empty() || blamed.size() > kMostBlamed) {
    return "";
  }
  return fmt::format("; by the shapes, in module {}", fmt::join(blamed, " or "));
}

}  // namespace

std::string to_text(const TensorMap& tensors) {
  std::vector<std::string> texts;
  for (const auto& [name, tensor] : tensors.items()) {
    texts.push_back(tensor.defined() ? fmt::format("\"{}\" {}[{}]",
                                                   name,
                                                   toString(tensor.scalar_type()),
                                                   fmt::join(tensor.sizes(), ", "))
                                     : fmt::format("\"{}\" undefined", name));
  }
  return texts.empty() ? "no tensors" : fmt::format("{}", fmt::join(texts, ", "));
}

void throw_forward_error(const std::string& model,
                         const torch::nn::Module& module,
                         const TensorMap& input) {
  std::string text = fmt::format("{}.forward failed on {}", model, to_text(input));
  try {
    throw;
  } catch (const CaptureError&) {
    throw;
  } catch (const NonFiniteLossError&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const HookError&) {  // of a hook of the loss
    throw;
  } catch (...) {
    const std::string complaint = describe(std::current_exception());
    text += place_of(module, complaint);
    if (is_of_one_value(complaint)) {
      text +=
          "; in training a batch norm needs more than one value of each channel: set the loader's "
          "drop_last = true where the last batch has one sample, or a larger batch_size";
    }
    std::throw_with_nested(ForwardError(text));
  }
}

}  // namespace rondo
