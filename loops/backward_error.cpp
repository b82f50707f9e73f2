#include "loops/backward_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include "tracing/recording/failed_nodes.h"

namespace rondo {

namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

constexpr size_t kMostModules = 3;  // more would say nothing

/// What a gradient that leaves `nodes` reaches next, without what `seen` holds already.
std::vector<Node*> next_nodes(const std::vector<Node*>& nodes, std::unordered_set<Node*>& seen) {
  std::vector<Node*> next;
  for (Node* const node : nodes) {
    for (const Edge& edge : node->next_edges()) {
      if (edge.function && seen.insert(edge.function.get()).second) {
        next.push_back(edge.function.get());
      }
    }
  }
  return next;
}

bool is_node(const Node& node, const FailedNode& failed) {
  const bool is_its_turn = failed.sequence_number < 0 ||
                           static_cast<int64_t>(node.sequence_nr()) == failed.sequence_number;
  return is_its_turn && node.name() == failed.name;
}

/// The node in the graph of a loss; null when it is not the only one that it can be.
Node* find_node(const at::Tensor& loss, const FailedNode& failed) {
  std::unordered_set<Node*> seen;
  Node* found = nullptr;
  for (std::vector<Node*> nodes{loss.grad_fn().get()}; !nodes.empty();
       nodes = next_nodes(nodes, seen)) {
    for (Node* const node : nodes) {
      if (is_node(*node, failed) && std::exchange(found, node) != nullptr) {
        return nullptr;
      }
    }
  }
  return found;
}

/// "net.0" by the node that its parameters' gradients end at.
std::unordered_map<const Node*, std::string> modules_by_node(const torch::nn::Module& module) {
  std::unordered_map<const Node*, std::string> modules;
  for (const auto& item : module.named_parameters()) {
    if (item.value().grad_fn() == nullptr && item.value().requires_grad()) {
      const std::string& name = item.key();
      const size_t end = name.rfind('.');
      modules[torch::autograd::impl::grad_accumulator(item.value()).get()] =
          end == std::string::npos ? name : name.substr(0, end);
    }
  }
  return modules;
}

/// The modules whose parameters a node's gradient reaches first: the operator is theirs, or works
/// on their results.
std::vector<std::string> modules_around(Node& node, const torch::nn::Module& module) {
  const std::unordered_map<const Node*, std::string> modules = modules_by_node(module);
  std::unordered_set<Node*> seen;
  std::vector<std::string> found;
  for (std::vector<Node*> nodes{&node}; !nodes.empty() && found.empty();
       nodes = next_nodes(nodes, seen)) {
    for (const Node* reached : nodes) {
      const auto known = modules.find(reached);
      if (known != modules.end() &&
          std::find(found.begin(), found.end(), known->second) == found.end()) {
        found.push_back(known->second);
      }
    }
  }
  return found.size() > kMostModules ? std::vector<std::string>() : found;
}

/// "AddmmBackward0", and of a program's own function its name alone.
std::string name_of(const FailedNode& node) {
  constexpr std::string_view kOwn = "torch::autograd::CppNode<";
  return node.name.compare(0, kOwn.size(), kOwn) == 0
             ? node.name.substr(kOwn.size(), node.name.size() - kOwn.size() - 1)
             : node.name;
}

/// What autograd says of a node whose gradients have the wrong shape: it had run by then.
std::optional<FailedNode> node_in(const std::string& complaint) {
  constexpr std::string_view kBegin = "Function ";
  const size_t begin = complaint.find(kBegin);
  const size_t end = complaint.find(" returned an ", begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return std::nullopt;
  }
  const size_t name = begin + kBegin.size();
  return FailedNode{complaint.substr(name, end - name), -1, {}};
}

std::string text_of(const FailedNode& failed,
                    const torch::nn::Module& module,
                    const at::Tensor& loss) {
  std::string text = " in " + name_of(failed);
  if (Node* const node = loss.grad_fn() ? find_node(loss, failed) : nullptr) {
    const std::vector<std::string> modules = modules_around(*node, module);
    text += modules.empty()
                ? ""
                : fmt::format(", of an operator in or after module {}", fmt::join(modules, " or "));
  }
  const std::string source = source_of(failed.forward);
  return text + (source.empty() ? "" : " at " + source);
}

/// Runs `compute` and says where it failed.
template <class Compute>
void with_place(const std::string& model,
                const torch::nn::Module& module,
                const at::Tensor& loss,
                const Compute& compute) {
  const FailedNodes failed;
  try {
    compute();
  } catch (const CaptureError&) {
    throw;
  } catch (const NonFiniteLossError&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (...) {
    std::string text = model + ".backward failed";
    for (const FailedNode& node : failed.nodes()) {
      text += text_of(node, module, loss);
    }
    const auto named = node_in(describe(std::current_exception()));
    if (named && failed.nodes().empty()) {
      text += text_of(*named, module, loss);
    }
    std::throw_with_nested(BackwardError(text));
  }
}

}  // namespace

void run_backward(const std::string& model,
                  const torch::nn::Module& module,
                  const at::Tensor& loss,
                  const std::vector<at::Tensor>& inputs) {
  with_place(model, module, loss, [&] {
    torch::autograd::backward(
        {loss}, {}, /*retain_graph=*/c10::nullopt, /*create_graph=*/false, inputs);
  });
}

std::vector<at::Tensor> run_gradients(const std::string& model,
                                      const torch::nn::Module& module,
                                      const at::Tensor& loss,
                                      const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> gradients;
  with_place(model, module, loss, [&] {
    gradients = torch::autograd::grad({loss},
                                      inputs,
                                      {},
                                      /*retain_graph=*/c10::nullopt,
                                      /*create_graph=*/false,
                                      /*allow_unused=*/true);
  });
  return gradients;
}

}  // namespace rondo
