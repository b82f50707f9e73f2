#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// A node of a step's graph, as viewers of graphs show it.
struct GraphNode {
  std::string name;  ///< unique; folders, with "/" between them, are what the operator works for
  std::string op;    ///< "aten::addmm"; "input", "state" or "constant" for what is read
  std::vector<std::string> inputs = {};  ///< names of nodes
};

/// What a recorded step reads, then its operators in order. An operator that writes a tensor in
/// place is an input of those that read it later.
/// \param program  the text of a report: see StepReport::program
std::vector<GraphNode> graph_of(std::string_view program);

}  // namespace rondo
