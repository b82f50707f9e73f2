// `rondo verify-resume` over runs drawn at random: every recipe, built-in model, optimizer and
// scheduler, killed at random moments and resumed by a new process.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cli/run_here.h"
#include "core/random.h"
#include "support/campaign.h"
#include "support/every_optimizer.h"
#include "support/process.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/resume_property");

namespace {

/// A component as it stands in a config.
struct Named {
  std::string name;
  std::string toml;
};

/// A model with data of its shape; "%" in `toml` stands for the share of dropout.
struct Subject {
  std::string name;
  std::string toml;
  std::string data;
};

constexpr char kGlyphs[] = R"(dataset = "Glyphs", size = 60)";
constexpr char kPictures[] = R"(dataset = "CifarBinary", files = ["pictures.bin"])";
constexpr char kMasks[] = R"(dataset = "Shapes", size = 30, side = 8)";
constexpr char kSeries[] = R"(dataset = "Waves", size = 40, window = 20)";
constexpr char kTable[] = R"(dataset = "CsvTable", file = "table.csv", missing = "mean")";
constexpr char kText[] = R"(dataset = "TextTokens", file = "text.txt", context = 12)";

const std::vector<Subject> kModels = {
    {"Mlp", "sizes = [784, 16, 10], dropout = %", kGlyphs},
    {"Cnn", "widths = [3, 5], dropout = %", kGlyphs},
    {"ResNet", "blocks = 1, width = 4", kPictures},
    {"Lstm", "layers = 2, width = 8, vocabulary = 30, dropout = %", kText},
    {"TableMlp", "hidden = [8, 8], dropout = %", kTable},
    {"Gpt", "layers = 1, heads = 2, width = 8, context = 12, vocabulary = 30, dropout = %", kText},
    {"Gru", "layers = 2, width = 8, vocabulary = 30, dropout = %", kText},
    {"DeepResNet", R"(width = 2, stem = "cifar")", kPictures},
    {"MobileNet", R"(width = 0.1, stem = "cifar", dropout = %)", kPictures},
    {"Vit", "layers = 1, heads = 2, width = 8, patch = 8, dropout = %", kPictures},
    {"UNet", R"(classes = 4, width = 4, depth = 1, loss = "Dice")", kMasks},
    {"Forecaster", R"(horizon = 8, layers = 2, width = 6, dropout = %, loss = "Huber")", kSeries},
    {"Autoencoder", R"(sizes = [784, 16, 4], loss = "BCE")", kGlyphs},
    {"Vae", "sizes = [784, 16, 4]", kGlyphs},
    {"Diffusion", "width = 8, depth = 1, steps = 10", kGlyphs},
};

/// Every registered optimizer, and one with groups.
std::vector<Named> optimizers() {
  std::vector<Named> all = {
      {"SGD", R"({ lr = 0.05, params = [{ params = ["*bias"], lr = 0.1, tag = "biases" }] })"}};
  for (const RegisteredOptimizer& one : every_optimizer()) {
    all.push_back({one.name, one.keys});
  }
  return all;
}

const std::vector<Named> kSchedulers = {
    {"ConstantLR", "learning_rate = 1e-3"},
    {"LinearLR", R"(initial_learning_rate = 1e-4, end_learning_rate = 2e-3, total_iters = "2ep")"},
    {"CosineDecayLR", "initial_learning_rate = 2e-3, end_learning_rate = 1e-5, total_iters = 0.75"},
    {"StepLR", "initial_learning_rate = 2e-3, step_size = 7, gamma = 0.5"},
    {"PolynomialLR", "initial_learning_rate = 2e-3, power = 2.0, total_iters = 0.8, warmup = 3"},
    {"WarmupStableDecayLR", "learning_rate = 2e-3, warmup_iters = 4, decay_iters = 0.3"},
    {"ExponentialLR", "initial_learning_rate = 2e-3, decay_rate = 0.5, total_iters = \"1ep\""},
    {"InverseExponentialTimeDecayLR",
     "initial_learning_rate = 2e-3, decay_rate = 0.5, total_iters = 9"},
    {"InverseSquareRootDecayLR", "initial_learning_rate = 2e-3, warmup_steps = 5, warmup = 5"},
    {"MultiplicativeLR", "initial_learning_rate = 1.0, coefficient = 0.97, relative = true"},
    {"MultiStepLR", "initial_learning_rate = 2e-3, milestones = [5, 0.5], gamma = 0.3"},
    {"PiecewiseConstantLR", "learning_rates = [1e-3, 2e-3, 1e-4], milestones = [3, 15]"},
    {"CosineAnnealingLR", "initial_learning_rate = 2e-3, T_max = 9"},
    {"CosineAnnealingWarmRestarts", "initial_learning_rate = 2e-3, T_0 = 4, T_mult = 2.0"},
    {"CyclicLR", "base_lr = 1e-4, max_lr = 2e-3, step_size_up = 3, step_size_down = 5"},
    {"OneCycleLR", "initial_learning_rate = 1e-4, max_lr = 2e-3"},
    {"ReduceLROnPlateau",
     R"(initial_learning_rate = 2e-3, metric = "loss", when = "update", patience = 1, factor = 0.7)"},
    {"ProductLR",
     "schedulers = [{ LinearLR = { initial_learning_rate = 2e-3 } }, "
     "{ StepLR = { initial_learning_rate = 1.0, step_size = 7 } }]"},
    {"ChainedScheduler",
     "schedulers = [{ LinearLR = { initial_learning_rate = 2e-3 } }, "
     "{ StepLR = { initial_learning_rate = 1.0, step_size = 7 } }]"},
    {"LinearLR",
     R"(initial_learning_rate = 1e-4, end_learning_rate = 2e-3, total_iters = "150sp")"},
    {"SequentialLR",
     "schedulers = [{ LinearLR = { initial_learning_rate = 1e-4, end_learning_rate = 1e-3, "
     "total_iters = 9 } }, { ConstantLR = { learning_rate = 1e-3 } }]"},
};

const std::vector<Subject> kRecipes = {
    {"quickstart.toml", "", ""},
    {"mnist_cnn.toml", "", "mnist"},
    {"shakespeare_gpt.toml", "", "shakespeare"},
    {"table_classification.toml", "", "tables"},
    {"table_regression.toml", "", "tables"},
    {"segmentation.toml", "", ""},
    {"forecasting.toml", "", ""},
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  bool flip() { return random_.below(2) == 1; }

  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
  }

  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[random_.below(choices.size())];
  }

 private:
  KeyedRandom random_;
};

/// Files of the kinds that the models' data sets read.
void write_data(const fs::path& dir) {
  KeyedRandom random(1);
  std::ofstream pictures(dir / "pictures.bin", std::ios::binary);
  for (int picture = 0; picture < 20; ++picture) {
    pictures.put(static_cast<char>(random.below(10)));
    for (int byte = 0; byte < 3 * 32 * 32; ++byte) {
      pictures.put(static_cast<char>(random.below(256)));
    }
  }
  std::ofstream table(dir / "table.csv");
  table << "number;word;label\n";
  for (int row = 0; row < 60; ++row) {
    table << random.below(100) << ',' << random.below(10) << ';' << "abc"[random.below(3)] << ';'
          << random.below(3) << '\n';
  }
  std::ofstream text(dir / "text.txt");
  for (int character = 0; character < 900; ++character) {
    text.put(static_cast<char>('a' + random.below(26)));
  }
}

std::string boolean(bool value) {
  return value ? "true" : "false";
}

std::string with_dropout(std::string model, bool has_dropout) {
  const size_t at = model.find('%');
  return at == std::string::npos ? model : model.replace(at, 1, has_dropout ? "0.2" : "0.0");
}

/// A run of a built-in model in `dir`, as TOML.
std::string drawn_run(const fs::path& dir, const Subject& subject, Draw& draw) {
  static const std::vector<Named> kOptimizers = optimizers();
  const Named& optimizer = draw.one_of(kOptimizers);
  const Named& scheduler = draw.one_of(kSchedulers);
  std::string toml = fmt::format("[trainer.init]\nmodel_dir = \"{}\"\nseed = {}\n",
                                 (dir / "run").string(),
                                 draw.between(0, 1000));
  toml += fmt::format(
      "model = {{ name = \"{}\", {} }}\n", subject.name, with_dropout(subject.toml, draw.flip()));
  toml += fmt::format("loop = {{ max_steps = 1, eval_frequency = {}, grad_accum_steps = {} }}\n",
                      draw.between(0, 9),
                      draw.between(1, 3));
  toml += fmt::format("backend = {{ mode = \"{}\" }}\n", draw.flip() ? "traced" : "eager");
  toml += fmt::format("precision = {{ dtype = \"{}\"{} }}\n",
                      draw.between(0, 3) == 0 ? "bf16" : "fp32",
                      draw.flip() ? ", max_gradient_norm = 0.3" : "");
  toml += fmt::format("sparsity = {{ sparsity = {} }}\n", draw.flip() ? "0.5" : "0.0");
  toml += fmt::format("checkpoint = {{ async = {} }}\n", boolean(draw.flip()));
  toml += fmt::format(
      "callbacks = [{{ KeepNCheckpoints = {{ n = 2 }} }}, {{ ComputeNorm = true }}, "
      "{{ SaveCheckpointState = {{ k = {} }} }}]\n",
      draw.between(1, 3));
  toml += fmt::format("[trainer.init.optimizer]\n{} = {}\n", optimizer.name, optimizer.toml);
  toml +=
      fmt::format("[[trainer.init.schedulers]]\n{} = {{ {} }}\n", scheduler.name, scheduler.toml);
  const std::string data_dir = fmt::format(", data_dir = \"{}\"", dir.string());
  const bool needs_no_file =
      subject.data == kGlyphs || subject.data == kMasks || subject.data == kSeries;
  const std::string data = subject.data + (needs_no_file ? "" : data_dir);
  toml += fmt::format(
      "[trainer.fit]\ntrain_dataloader = {{ label = \"train\", {}, batch_size = {}, shuffle = {}, "
      "drop_last = {}, prefetch = {} }}\n",
      data,
      draw.between(2, 7),
      boolean(draw.flip()),
      boolean(draw.flip()),
      draw.between(0, 3));
  toml += fmt::format("val_dataloader = [{{ label = \"val\", {}, batch_size = 16 }}]\n", data);
  return toml;
}

void check_resume(const fs::path& dir, const std::vector<std::string>& run, uint64_t seed) {
  std::vector<std::string> arguments = {RONDO_LAUNCHER, "verify-resume"};
  arguments.insert(arguments.end(), run.begin(), run.end());
  arguments.insert(arguments.end(), {"--kills=2", fmt::format("--seed={}", seed)});
  Process process(arguments, dir / "out");
  const int code = process.wait();
  std::ifstream stream(dir / "out");
  const std::string out{std::istreambuf_iterator<char>(stream), {}};
  INFO(out);
  CHECK(code == 0);
  CHECK(out.find("equal, bit for bit") != std::string::npos);
}

bool has_data(const std::string& folder) {
  const char* const data = std::getenv("RONDO_DATA");
  return folder.empty() || (data != nullptr && fs::exists(fs::path(data) / folder));
}

/// The names that `rondo describe` lists under `family`.
std::vector<std::string> described(const std::string& family) {
  std::istringstream lines(run_here({"describe"}).out);
  std::vector<std::string> names;
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  ", 0) != 0) {
      is_inside = line == family + ":";
    } else if (is_inside) {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

template <class Choices>
bool has_name(const Choices& choices, const std::string& name) {
  return std::any_of(
      choices.begin(), choices.end(), [&](const auto& choice) { return choice.name == name; });
}

}  // namespace

TEST_CASE("C59: a run of any built-in model, optimizer and scheduler is resumed bit for bit") {
  const int draws = 5 * campaign_scale();
  for (int seed = 0; seed < draws; ++seed) {
    const TempDir dir;
    write_data(dir.path());
    Draw draw(static_cast<uint64_t>(seed));
    const Subject& subject = kModels[static_cast<size_t>(seed) % kModels.size()];
    const std::string toml = drawn_run(dir.path(), subject, draw);
    std::ofstream(dir / "run.toml") << toml;
    CAPTURE(seed);
    CAPTURE(toml);
    check_resume(dir.path(),
                 {(dir / "run.toml").string(),
                  fmt::format("--steps={}", draw.between(20, 60)),
                  fmt::format("--every={}", draw.between(1, 7))},
                 static_cast<uint64_t>(seed));
  }
}

TEST_CASE("C59: every recipe is resumed bit for bit") {
  for (int seed = 0; seed < campaign_scale(); ++seed) {
    for (const Subject& recipe : kRecipes) {
      if (!has_data(recipe.data)) {
        MESSAGE("skipped: " << recipe.name << " needs RONDO_DATA");
        continue;
      }
      const TempDir dir;
      Draw draw(static_cast<uint64_t>(seed));
      CAPTURE(seed);
      CAPTURE(recipe.name);
      check_resume(dir.path(),
                   {fmt::format("{}/configs/recipes/{}", RONDO_SOURCE_DIR, recipe.name),
                    fmt::format("trainer.init.model_dir={}", (dir / "run").string()),
                    fmt::format("trainer.init.backend.mode={}", draw.flip() ? "eager" : "traced"),
                    fmt::format("trainer.init.loop.eval_steps={}", draw.between(1, 3)),
                    fmt::format("--steps={}", draw.between(8, 20)),
                    fmt::format("--every={}", draw.between(1, 5))},
                   static_cast<uint64_t>(seed));
    }
  }
}

TEST_CASE("what is drawn is all that is built in") {
  for (const std::string& name : described("models")) {
    CHECK((name == "ScriptModel" || has_name(kModels, name)));
  }
  for (const std::string& name : described("optimizers")) {
    CHECK(has_name(optimizers(), name));
  }
  for (const std::string& name : described("schedulers")) {
    CHECK(has_name(kSchedulers, name));
  }
  for (const auto& entry : fs::directory_iterator(RONDO_SOURCE_DIR "/configs/recipes")) {
    CHECK(has_name(kRecipes, entry.path().filename().string()));
  }
  CHECK(described("schedulers").size() >= 20);
}

TEST_SUITE_END();
