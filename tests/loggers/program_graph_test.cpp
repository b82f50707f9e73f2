#include "loggers/program_graph.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Names = std::vector<std::string>;

constexpr const char* kProgram = R"(step train/update
inputs
  %0 x: Float[2, 4]
captured
  %1 model.layer0.weight: Float[3, 4]
  %2 model.layer0.bias: Float[3]
constants
  %3 Float[] = 1.0
instructions
  # the step, forward of layer0
  %4 = aten::t(%1)
  %5, %6 = example::both(%2, %0, %4, sizes=[1, 2])
  # the step, optimizer
  aten::add_.Tensor(%1, %5, alpha=1) !%1
  %7 = aten::t(%1)
outputs
  loss %7
)";

}  // namespace

TEST_SUITE_BEGIN("loggers/program_graph");

TEST_CASE("a graph has what a step reads, and its operators in order with what they take") {
  const std::vector<GraphNode> nodes = graph_of(kProgram);
  Names names;
  for (const GraphNode& node : nodes) {
    names.push_back(node.name);
  }
  CHECK(names == Names{"input/x",
                       "state/model/layer0/weight",
                       "state/model/layer0/bias",
                       "constant/3",
                       "the_step__forward_of_layer0/t",
                       "the_step__forward_of_layer0/both",
                       "the_step__optimizer/add_.Tensor",
                       "the_step__optimizer/t"});
  REQUIRE(nodes.size() == 8);
  CHECK(nodes[4].op == "aten::t");
  CHECK(nodes[4].inputs == Names{"state/model/layer0/weight"});
  CHECK(nodes[5].inputs ==
        Names{"state/model/layer0/bias", "input/x", "the_step__forward_of_layer0/t"});
  CHECK(nodes[6].inputs == Names{"state/model/layer0/weight", "the_step__forward_of_layer0/both"});
  CHECK(nodes[7].inputs == Names{"the_step__optimizer/add_.Tensor"});
}

TEST_CASE("a text that is no program has no graph") {
  CHECK(graph_of("").empty());
  CHECK(graph_of("instructions\n  \n  # \n  nothing\n  =(\n").size() <= 1);
}

TEST_CASE("every operator of a recorded step has what it reads in its graph") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = "traced";
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const std::vector<StepReport> reports = trainer.state().backend->reports();
  REQUIRE(!reports.empty());
  std::set<std::string> known;
  size_t operators = 0;
  for (const GraphNode& node : graph_of(reports.front().program)) {
    for (const std::string& input : node.inputs) {
      CHECK(known.count(input) == 1);
    }
    CHECK(known.insert(node.name).second);
    operators += node.op.find("::") != std::string::npos ? 1 : 0;
  }
  CHECK(operators == static_cast<size_t>(reports.front().stats.operators_replayed));
}

TEST_SUITE_END();
