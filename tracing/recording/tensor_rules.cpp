#include "tracing/recording/tensor_rules.h"

#include "tracing/recording/objection.h"

namespace rondo {

namespace {

std::string describe(const at::Tensor& tensor) {
  return at::toString(tensor.scalar_type()) + c10::str(tensor.sizes());
}

bool has_plain_memory(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.layout() == at::kStrided;
}

constexpr const char* kNoPlainMemory =
    "a tensor without plain memory (sparse, or a library's own layout)";
constexpr const char* kUseDense = "only dense tensors can be recorded";

}  // namespace

void object_to_layout(const at::Tensor& tensor, const std::string& what) {
  if (!has_plain_memory(tensor)) {
    throw Objection{std::string("used ") + kNoPlainMemory + " as " + what, kUseDense};
  }
  if (tensor.is_conj() || tensor.is_neg()) {
    throw Objection{"used a tensor whose bytes stand for their conjugates or negatives as " + what,
                    "make its values with resolve_conj or resolve_neg before the step"};
  }
}

void object_to_layout_of_result(const at::Tensor& tensor, const std::string& op) {
  if (!has_plain_memory(tensor)) {
    throw Objection{std::string("got ") + kNoPlainMemory + " from " + op, kUseDense};
  }
}

void object_to_device(const at::Tensor& tensor, const std::string& what, c10::Device device) {
  if (!tensor.device().is_cpu() && tensor.device() != device) {
    const std::string name = device.is_cpu() ? "the CPU" : device.str();
    throw Objection{"used device " + tensor.device().str() + " for " + what,
                    "steps of this run are replayed on " + name + ": keep their tensors there"};
  }
}

void object_to_outside(const at::Tensor& tensor, const std::string& what) {
  if (tensor.numel() > 1 || !tensor.device().is_cpu()) {
    throw Objection{
        "used as " + what + " a tensor " + describe(tensor) +
            " that was made outside of the step and is neither its batch nor its state",
        "put it into the batch, make it a buffer of the model, or make it inside the step"};
  }
}

void object_to_part_of_large(const at::Tensor& tensor) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (tensor.storage().nbytes() > kMostBytes) {
    throw Objection{"used a number of a large tensor " + describe(tensor) +
                        " that was made outside of the step",
                    "use a copy of the number (clone), or make the tensor a buffer of the model"};
  }
}

}  // namespace rondo
