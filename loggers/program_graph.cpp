#include "loggers/program_graph.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace rondo {

namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// A part of a name, of what TensorBoard's names are made of.
std::string plain(std::string_view text) {
  std::string name(text);
  std::replace_if(
      name.begin(),
      name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '/'; },
      '_');
  return name;
}

/// The tensors that a text names as "%4" or, of those that are written, as "!%4".
std::vector<std::string> tensors_in(std::string_view text, bool are_written) {
  std::vector<std::string> found;
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && is_digit(text[end])) {
      ++end;
    }
    const bool is_written = at > 0 && text[at - 1] == '!';
    if (end > at + 1 && is_written == are_written) {
      found.emplace_back(text.substr(at, end - at));
    }
  }
  return found;
}

class GraphReader {
 public:
  void read(std::string_view line) {
    if (line.empty()) {
      return;
    }
    if (line.front() != ' ') {
      section_ = line;
      return;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) {
      return;
    }
    if (section_ == "instructions") {
      read_instruction(line);
    } else if (section_ == "inputs" || section_ == "captured" || section_ == "constants") {
      read_source(line);
    }
  }

  std::vector<GraphNode> nodes;

 private:
  /// "%0 image: Float[32, 1]" or "%52 Float[] = 1.0"
  void read_source(std::string_view line) {
    const std::vector<std::string> tensors = tensors_in(line.substr(0, line.find(' ')), false);
    if (tensors.empty()) {
      return;
    }
    const char* const kind = section_ == "inputs"     ? "input"
                             : section_ == "captured" ? "state"
                                                      : "constant";
    std::string name = tensors.front().substr(1);
    if (section_ != "constants") {
      const size_t begin = line.find(' ') + 1;
      name = line.substr(begin, line.rfind(": ") - begin);
      std::replace(name.begin(), name.end(), '.', '/');
    }
    add(std::string(kind) + "/" + plain(name), kind, {});
    made_by_[tensors.front()] = nodes.back().name;
  }

  /// "# the step, forward of layer1" or "%6 = aten::addmm(%5, %2, beta=1) !%7"
  void read_instruction(std::string_view line) {
    if (line.front() == '#') {
      line.remove_prefix(std::min(line.find_first_not_of("# "), line.size()));
      folder_ = plain(line);
      return;
    }
    const size_t equals = line.find(" = ");
    const size_t opens = line.find('(');
    if (opens == std::string_view::npos) {
      return;
    }
    const bool has_results = equals < opens;
    const std::string_view call = has_results ? line.substr(equals + 3) : line;
    const std::string op(call.substr(0, call.find('(')));
    std::vector<std::string> inputs;
    for (const std::string& tensor : tensors_in(call, false)) {
      const auto source = made_by_.find(tensor);
      if (source != made_by_.end() &&
          std::find(inputs.begin(), inputs.end(), source->second) == inputs.end()) {
        inputs.push_back(source->second);
      }
    }
    const size_t colons = op.rfind(':');
    add(folder_ + "/" + plain(op.substr(colons == std::string::npos ? 0 : colons + 1)),
        op,
        std::move(inputs));
    const std::string& name = nodes.back().name;
    if (has_results) {
      for (const std::string& tensor : tensors_in(line.substr(0, equals), false)) {
        made_by_[tensor] = name;
      }
    }
    for (const std::string& tensor : tensors_in(call, true)) {
      made_by_[tensor] = name;
    }
  }

  void add(const std::string& name, const std::string& op, std::vector<std::string> inputs) {
    const int number = ++uses_[name];
    nodes.push_back(
        {number == 1 ? name : name + "_" + std::to_string(number), op, std::move(inputs)});
  }

  std::string_view section_;
  std::string folder_ = "step";
  std::map<std::string, std::string> made_by_;  // the newest node that a tensor's value is of
  std::map<std::string, int> uses_;             // of names
};

}  // namespace

std::vector<GraphNode> graph_of(std::string_view program) {
  GraphReader reader;
  while (!program.empty()) {
    const size_t end = std::min(program.find('\n'), program.size());
    reader.read(program.substr(0, end));
    program.remove_prefix(std::min(end + 1, program.size()));
  }
  return std::move(reader.nodes);
}

}  // namespace rondo
