#include <ATen/core/Tensor.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "callbacks/core/sparsity_callback.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "loops/fit_run.h"
#include "models/builtin/deep_resnet.h"
#include "models/builtin/gpt.h"
#include "models/model_state.h"
#include "support/builtins.h"
#include "support/campaign.h"
#include "support/covering_array.h"
#include "support/every_model.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/run_config.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kMatrixUpdates = 30;
constexpr int64_t kStop = 17;  ///< where the run that is resumed ends at first

/// One of the things that a run chooses: what it is called, and its lines under `[trainer.init]`.
struct Value {
  std::string name;
  std::string toml;
};

using Kind = std::vector<Value>;

const ModelOnData& model_named(const std::string& name) {
  const std::vector<ModelOnData>& all = every_model();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const ModelOnData& one) { return one.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

/// Every model, and those that can compute their blocks again in the backward pass.
const std::vector<ModelOnData>& subjects() {
  static const std::vector<ModelOnData> made = [] {
    std::vector<ModelOnData> all = every_model();
    all.push_back({"recomputed Gpt",
                   [](double dropout) {
                     Gpt::Options options;
                     options.layers = 2;
                     options.heads = 2;
                     options.width = 8;
                     options.context = 6;
                     options.vocabulary = 11;
                     options.dropout = dropout;
                     options.recompute = true;
                     return use<Gpt>(options);
                   },
                   model_named("Gpt").data});
    all.push_back({"recomputed DeepResNet",
                   [](double) {
                     DeepResNet::Options options;
                     options.width = 2;
                     options.stem = "cifar";
                     options.recompute = true;
                     return use<DeepResNet>(options);
                   },
                   model_named("DeepResNet").data});
    return all;
  }();
  return made;
}

Kind models() {
  Kind kind;
  for (const ModelOnData& subject : subjects()) {
    kind.push_back({subject.name, ""});
  }
  return kind;
}

Kind optimizers() {
  Kind kind;
  for (const auto& entry : builtins().optimizers.entries()) {
    kind.push_back({entry.name, "optimizer = { " + entry.name + " = {} }\n"});
  }
  return kind;
}

/// The examples of docs/schedules.md, of which there is one for each schedule.
Kind schedules() {
  const std::string begin = "```toml\n[[trainer.init.schedulers]]\n";
  const std::string page = real_file_system()->read(RONDO_SOURCE_DIR "/docs/schedules.md");
  std::map<std::string, std::string> examples;
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const size_t start = at + begin.size();
    const std::string example = page.substr(start, page.find("```", start) - start);
    examples.emplace(example.substr(0, example.find(' ')), example);
  }
  Kind kind = {{"no schedule", ""}};
  for (const auto& entry : builtins().schedulers.entries()) {
    CAPTURE(entry.name);
    REQUIRE(examples.count(entry.name) == 1);
    kind.push_back({entry.name, "[[trainer.init.schedulers]]\n" + examples.at(entry.name)});
  }
  return kind;
}

Kind sparsity() {
  Kind kind = {{"dense", ""}};
  for (const auto& entry : builtins().sparsity_algorithms.entries()) {
    const bool is_static = entry.name == "Static";
    kind.push_back({entry.name,
                    "[trainer.init.sparsity]\nsparsity = " +
                        std::string(is_static ? "0.5" : "{ from = 0.25, to = 0.75 }") +
                        "\nalgorithm = \"" + entry.name + "\"\n" +
                        (is_static ? "" : "update = { every = 5, start = 2, stop = 25 }\n")});
  }
  return kind;
}

Kind steps() {
  Kind kind;
  for (const auto& entry : builtins().steps.entries()) {
    const bool has_teacher = entry.name == "Distillation";
    kind.push_back({entry.name,
                    "[trainer.init.step." + entry.name + "]\n" +
                        (has_teacher ? "teacher = { Mlp = { sizes = [64, 16, 10] } }\n" : "")});
  }
  return kind;
}

const Kind kPrecisions = {
    {"fp32", ""},
    {"fp64", "precision.dtype = \"fp64\"\n"},
    {"bf16", "precision.dtype = \"bf16\"\n"},
    {"fp16", "precision.dtype = \"fp16\"\nprecision.on_unsupported = \"emulate\"\n"},
    {"bf16_pure", "precision.dtype = \"bf16_pure\"\n"},
};

const Kind kGroups = {
    {"whole batches", ""},
    {"groups of batches", "loop.grad_accum_steps = 3\n"},
    {"micro-batches", "loop.device_train_microbatch_size = 3\n"},
};

const Kind kClippings = {
    {"no clipping", ""},
    {"norm", "precision.max_gradient_norm = 0.5\n"},
    {"norm by group", "precision.max_gradient_norm = 0.5\nprecision.clip_by_group = true\n"},
    {"value", "precision.max_gradient_value = 0.01\n"},
    {"ratio", "precision.max_gradient_ratio = 0.1\n"},
};

const Kind kAdapters = {
    {"no adapter", ""},
    {"Lora", "[[trainer.init.callbacks]]\nLora = { modules = [\"*\"], rank = 2 }\n"},
    {"average", "[[trainer.init.callbacks]]\nAverageWeights = { kind = \"ema\" }\n"},
    {"average instead",
     "[[trainer.init.callbacks]]\nAverageWeights = { kind = \"swa\", start = 5, every = 2, save = "
     "\"instead\" }\n"},
};

struct Matrix {
  std::vector<Kind> kinds;
  std::vector<Choices> rows;
};

/// Pairs of values that do not go together, each with the reason.
struct Exclusion {
  std::string a;
  std::string b;
  std::string why;
};

const std::vector<Exclusion> kExclusions = {
    {"UNet", "bf16_pure", "LibTorch 1.13 has no transposed convolution in bfloat16 on CPUs"},
    {"Diffusion", "bf16_pure", "LibTorch 1.13 has no transposed convolution in bfloat16 on CPUs"},
    {"UNet", "Lora", "its layers are no modules that adapters replace"},
    {"Diffusion", "Lora", "its layers are no modules that adapters replace"},
    {"recomputed Gpt", "Lora", "a block with adapters cannot be computed again"},
    {"recomputed DeepResNet", "Lora", "a block with adapters cannot be computed again"},
    {"ScriptModel", "Lora", "adapters replace layers, which TorchScript has none of"},
};

/// Distillation needs a teacher with the model's inputs and outputs; the one here takes the images
/// of the Mlp.
bool has_teacher(const std::string& model) {
  return model == "Mlp" || model == "Cnn";
}

bool exclude_each_other(const std::string& a, const std::string& b) {
  return std::any_of(kExclusions.begin(), kExclusions.end(), [&](const Exclusion& pair) {
    return (pair.a == a && pair.b == b) || (pair.a == b && pair.b == a);
  });
}

Matrix matrix() {
  Matrix made;
  made.kinds = {models(), optimizers(), schedules(), sparsity(), steps()};
  made.kinds.insert(made.kinds.end(), {kPrecisions, kGroups, kClippings, kAdapters});
  std::vector<size_t> sizes;
  for (const Kind& kind : made.kinds) {
    sizes.push_back(kind.size());
  }
  made.rows = covering_array(sizes, [&](size_t i, size_t a, size_t j, size_t b) {
    const std::string& first = made.kinds[i][a].name;
    const std::string& second = made.kinds[j][b].name;
    return exclude_each_other(first, second) ||
           (i == 0 && second == "Distillation" && !has_teacher(first));
  });
  return made;
}

/// The lines of a row: keys first, then the tables.
std::string toml_of(const Matrix& matrix, const Choices& row) {
  std::string keys =
      "[trainer.init]\nmodel_dir = \"runs\"\nseed = 3\nmodel = { name = \"Mlp\", sizes = [1, 1] }\n"
      "loop.max_steps = " +
      std::to_string(kMatrixUpdates) +
      "\nloop.eval_frequency = 10\ncheckpoint.steps = 5\nbackend.on_refusal = \"error\"\n";
  std::string tables;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string& toml = matrix.kinds[i][row[i]].toml;
    (toml.rfind('[', 0) == 0 ? tables : keys) += toml;
  }
  return keys + tables;
}

struct Run {
  TrainerOptions options;
  const ModelOnData* subject = nullptr;

  DataLoader loader(const std::string& label) const {
    LoaderOptions batches;
    batches.batch_size = 5;
    batches.shuffle = label == "train";
    return {label, subject->data(), batches};
  }
};

Run run_of(const Matrix& matrix, const Choices& row) {
  Run run;
  run.subject = &subjects()[row[0]];
  run.options = read_run_config(parse_toml(toml_of(matrix, row), "matrix.toml"), builtins()).init;
  run.options.model = run.subject->model(0.2);
  run.options.loggers.clear();
  run.options.config_text.clear();
  return run;
}

/// Each step that was recorded is recorded once, and none runs as written.
void check_captures(Trainer& trainer) {
  std::map<std::string, int> captures;
  for (const StepReport& step : trainer.state().backend->reports()) {
    CHECK_MESSAGE(!is_eager(step), step.name << ": " << step.reason);
    const std::string kind = step.name.substr(0, step.name.rfind('.'));
    ++captures[kind + " " + std::to_string(step.position.size) + " " +
               std::to_string(step.samples)];
  }
  for (const auto& [step, count] : captures) {
    CAPTURE(step);
    CHECK(count == 1);
  }
}

/// What masks prune is zero, whatever else updates the weights.
void check_pruned(Trainer& trainer) {
  const SparsityMasks* const masks = trainer.slot<SparsityCallback>().masks();
  for (const NamedTensor& parameter : named_parameters(trainer.state().model->module())) {
    const Mask* const mask = masks != nullptr ? masks->mask_of(parameter.second) : nullptr;
    if (mask != nullptr) {
      CAPTURE(parameter.first);
      const at::Tensor pruned = mask->kept().logical_not();
      CHECK(pruned.any().item<bool>());
      CHECK(parameter.second.detach().masked_select(pruned).eq(0).all().item<bool>());
    }
  }
}

/// How a run ended: with these bits, or with this error. Some rows learn so fast that their loss is
/// not finite in the end; then it is not finite in all modes.
struct Ending {
  StateDict bits;
  std::string error;
};

Ending ending_of(const std::function<StateDict()>& train) {
  try {
    return {train(), ""};
  } catch (const NonFiniteLossError&) {
    return {StateDict(), describe(std::current_exception())};
  }
}

void check_equal(const Ending& a, const Ending& b) {
  CHECK(a.error == b.error);
  CHECK(first_difference(a.bits, b.bits) == "");
}

Ending trained(Run run, const std::string& mode) {
  const TempDir dir;
  run.options.model_dir = dir / "run";
  run.options.backend.mode = mode;
  Trainer trainer(run.options, quiet_log());
  const Ending ending = ending_of([&] {
    trainer.fit(run.loader("train"), {run.loader("val")});
    return bits_of(trainer);
  });
  if (mode == "traced") {
    check_captures(trainer);
  }
  if (ending.error.empty()) {
    check_pruned(trainer);
  }
  return ending;
}

/// The same run, stopped in the middle and resumed by another Trainer.
Ending resumed(Run run) {
  const TempDir dir;
  run.options.model_dir = dir / "run";
  run.options.backend.mode = "traced";
  const DataLoader train = run.loader("train");
  const DataLoader val = run.loader("val");
  return ending_of([&] {
    {
      Trainer first(run.options, quiet_log());
      FitRun fit(first, train, {val}, {});
      while (first.state().global_step() < kStop && fit.advance()) {
      }
    }
    Trainer second(run.options, quiet_log());
    second.fit(train, {val});
    return bits_of(second);
  });
}

/// Every so many rows are run, spread over all of them; the long campaign runs each.
size_t stride() {
  constexpr size_t kSample = 16;
  return std::max<size_t>(1, campaign_scale() > 1 ? 1 : kSample);
}

}  // namespace

TEST_SUITE_BEGIN("trainer/matrix");

TEST_CASE("each two values of two kinds meet in a row, unless they exclude each other") {
  const auto odd = [](size_t i, size_t a, size_t j, size_t b) {
    return i == 0 && a == 1 && j == 2 && b == 0;
  };
  const std::vector<size_t> sizes = {3, 2, 4};
  const std::vector<Choices> rows = covering_array(sizes, odd);
  CHECK(rows.size() < 24);
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = i + 1; j < sizes.size(); ++j) {
      for (size_t a = 0; a < sizes[i]; ++a) {
        for (size_t b = 0; b < sizes[j]; ++b) {
          const bool meet = std::any_of(rows.begin(), rows.end(), [&](const Choices& row) {
            return row[i] == a && row[j] == b;
          });
          CHECK(meet != odd(i, a, j, b));
        }
      }
    }
  }
}

TEST_CASE(
    "T75: model, optimizer, schedule, precision, groups, clipping, sparsity, adapter and step in "
    "all "
    "pairs: traced equals eager, resumed unstopped, and each step is recorded once") {
  const Matrix all = matrix();
  size_t runs = 0;
  size_t not_finite = 0;
  MESSAGE(all.rows.size() << " rows, of which each " << stride() << ". is run");
  for (size_t i = 0; i < all.rows.size(); i += stride()) {
    const std::string toml = toml_of(all, all.rows[i]);
    const std::string model = all.kinds[0][all.rows[i][0]].name;
    CAPTURE(i);
    CAPTURE(model);
    CAPTURE(toml);
    try {
      const Run run = run_of(all, all.rows[i]);
      const Ending eager = trained(run, "eager");
      check_equal(eager, trained(run, "traced"));
      check_equal(eager, resumed(run));
      not_finite += eager.error.empty() ? 0 : 1;
      ++runs;
    } catch (...) {
      FAIL_CHECK(describe(std::current_exception()));
    }
  }
  MESSAGE(not_finite << " of " << runs << " runs end with a loss that is not finite");
  CHECK(not_finite * 20 <= runs);
}

TEST_SUITE_END();
