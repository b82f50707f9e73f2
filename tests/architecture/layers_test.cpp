#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

/// Which folders a folder may include, itself aside. Lower layers never include higher ones, nor
/// siblings of the same layer.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core", {}},
    {"record", {"core"}},
    {"board", {"core", "record"}},
    {"remote", {"core"}},
    {"backends", {"core"}},
    {"distributed", {"core"}},
    {"tracing", {"core", "backends"}},
    {"models", {"core"}},
    {"optim", {"core"}},
    {"sparsity", {"core"}},
    {"metrics", {"core"}},
    {"checkpoint", {"core"}},
    {"configs", {"core"}},
    {"data", {"core", "backends", "checkpoint"}},
    {"callbacks",
     {"core",
      "backends",
      "distributed",
      "tracing",
      "models",
      "optim",
      "sparsity",
      "metrics",
      "checkpoint",
      "remote",
      "data"}},
    {"loops",
     {"core",
      "backends",
      "distributed",
      "tracing",
      "models",
      "optim",
      "sparsity",
      "metrics",
      "checkpoint",
      "remote",
      "data",
      "callbacks"}},
    {"loggers",
     {"core",
      "backends",
      "distributed",
      "tracing",
      "models",
      "optim",
      "sparsity",
      "metrics",
      "checkpoint",
      "data",
      "callbacks",
      "record"}},
    {"trainer",
     {"core",
      "backends",
      "distributed",
      "tracing",
      "models",
      "optim",
      "sparsity",
      "metrics",
      "checkpoint",
      "remote",
      "configs",
      "data",
      "callbacks",
      "loops",
      "loggers"}},
    {"pymarlin",
     {"core", "models", "optim", "checkpoint", "data", "callbacks", "loggers", "trainer"}},
    {"cli", {"core", "record", "board", "configs", "distributed", "trainer"}},
};

/// An edge that the table forbids and that is meant.
struct Exception {
  const char* from;       ///< a folder, or one file
  const char* extension;  ///< of the including files
  const char* to;         ///< one file, or a folder
  const char* reason;
};

const Exception kExceptions[] = {
    {"callbacks",
     ".cpp",
     "trainer/trainer.h",
     "hooks take the Trainer, which offers what they ask"},
    {"callbacks/core/backend_callback.cpp",
     ".cpp",
     "trainer/thread_calibration.h",
     "the environment is fixed when a fit begins, by trying the run"},
    {"callbacks/core/grad_accum_callback.cpp",
     ".cpp",
     "trainer/micro_batch_size.h",
     "the size of micro-batches is found by trying the run"},
    {"callbacks/builtin/export_for_inference.cpp",
     ".cpp",
     "trainer/export_inference.h",
     "exports the Trainer's model as the command does"},
    {"loops", ".cpp", "trainer/trainer.h", "stages fire the hooks with the Trainer"},
    {"loggers", ".cpp", "trainer/trainer.h", "hooks take the Trainer, which offers what they ask"},
    {"trainer/rondo_step.cpp", ".cpp", "rondo_step.h", "defines the C interface of exported steps"},
    {"trainer/rondo_train.cpp", ".cpp", "rondo_train.h", "defines the C interface of runs"},
    {"models", ".cpp", "metrics", "a model names the metrics of its outputs"},
    {"cli/inspect_command.cpp", ".cpp", "checkpoint/checkpoint_file.h", "prints what a file holds"},
    {"cli/export_step_command.cpp", ".cpp", "checkpoint", "writes the file"},
    {"cli/debug_command.cpp", ".cpp", "checkpoint", "finds a checkpoint to begin with"},
    {"cli/debug_command.cpp", ".cpp", "tracing", "looks for NaN in it"},
    {"cli/inspect_command.cpp", ".cpp", "tracing/timeline.h", "prints where a step's time goes"},
    {"cli/checkpoint_command.cpp", ".cpp", "checkpoint", "works on files without a run"},
    {"cli/reference_pages.cpp", ".cpp", "data/optional_reader.h", "leaves out what is not built"},
    {"cli/data_command.cpp", ".cpp", "data", "looks at the data of a run without training"},
    {"cli/data_command.cpp", ".cpp", "loggers/media_bytes.h", "writes pictures"},
    {"cli/verify_resume_command.cpp", ".cpp", "checkpoint", "compares what two runs saved"},
};

/// A part of a folder: folders in it, and files without their extensions. What another part names
/// more closely is not in it.
struct Part {
  const char* name;
  std::vector<std::string> members;
};

/// The parts of a folder that has an order inside. A part includes itself and those before it.
const std::map<std::string, std::vector<Part>> kParts = {
    {"tracing",
     {{"program", {"tracing/program"}},
      {"onednn", {"tracing/onednn"}},
      {"kernels", {"tracing/kernels"}},
      {"operators", {"tracing/operators"}},
      {"recording", {"tracing/recording"}},
      {"passes", {"tracing/passes"}},
      {"plan", {"tracing/plan"}},
      {"interpreter", {"tracing/interpreter"}},
      {"graphs", {"tracing/graphs"}},
      {"checks", {"tracing/checks"}},
      {"traced steps", {"tracing"}}}},
    {"data",
     {{"interface and loaders", {"data"}},
      {"splits", {"data/splits", "data/class_folders"}},
      {"data sets of other data sets", {"data/derived"}},
      {"generated", {"data/generated"}},
      {"images", {"data/images"}},
      {"audio", {"data/audio"}},
      {"text", {"data/text"}},
      {"arrays", {"data/arrays"}},
      {"records", {"data/records"}},
      {"tables", {"data/tables"}},
      {"streams", {"data/streams"}},
      {"optional readers", {"data/optional"}},
      {"all data sets", {"data/datasets"}}}},
    {"models",
     {{"interface", {"models"}},
      {"losses", {"models/losses"}},
      {"modules with a loss", {"models/from_module", "models/register"}},
      {"blocks", {"models/blocks"}},
      {"built-in models", {"models/builtin"}},
      {"all models", {"models/models"}}}},
    {"callbacks",
     {{"interface", {"callbacks"}},
      {"core callbacks", {"callbacks/core"}},
      {"built-in callbacks", {"callbacks/builtin"}},
      {"algorithms", {"callbacks/algorithms"}}}},
};

/// One `#include "to"`, both files relative to the root of the source tree.
struct Include {
  std::string from;
  int line = 0;
  std::string to;
};

std::string to_string(const Include& include) {
  return include.from + ":" + std::to_string(include.line) + ": includes \"" + include.to + "\"";
}

/// "core/time.h" and "core" lie in "core".
bool lies_in(const std::string& path, const std::string& folder_or_file) {
  return path == folder_or_file || path.rfind(folder_or_file + "/", 0) == 0;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

bool covers(const Exception& exception, const Include& include) {
  return lies_in(include.from, exception.from) && lies_in(include.to, exception.to) &&
         fs::path(include.from).extension() == exception.extension;
}

bool is_excepted(const Include& include) {
  return std::any_of(std::begin(kExceptions), std::end(kExceptions), [&](const auto& exception) {
    return covers(exception, include);
  });
}

/// A folder in which a file is, or the file without its extension.
bool names(const std::string& member, const std::string& file) {
  return lies_in(file, member) || fs::path(file).replace_extension() == member;
}

/// The number of the part that names a file most closely.
size_t part_of(const std::string& file, const std::vector<Part>& parts) {
  size_t closest = 0;
  size_t part = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const std::string& member : parts[i].members) {
      if (names(member, file) && member.size() > closest) {
        closest = member.size();
        part = i;
      }
    }
  }
  return part;
}

bool is_in_order(const Include& include) {
  const auto parts = kParts.find(folder_of(include.from));
  return parts == kParts.end() ||
         part_of(include.to, parts->second) <= part_of(include.from, parts->second);
}

/// By the tables, without the exceptions.
bool is_regular(const Include& include) {
  const std::string from = folder_of(include.from);
  const std::string to = folder_of(include.to);
  if (from == to) {
    return is_in_order(include);
  }
  if (kMayInclude.count(to) == 0) {
    return false;  // such as a header for whole programs, or a test's
  }
  const bool is_internal = fs::path(include.to).parent_path().filename() == "internal";
  return kMayInclude.at(from).count(to) != 0 && !is_internal;
}

bool is_allowed(const Include& include) {
  return is_regular(include) || is_excepted(include);
}

/// The files below a folder of the source tree with one of these extensions, sorted.
std::vector<fs::path> files_below(const fs::path& folder, const std::set<std::string>& extensions) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && extensions.count(entry.path().extension().string()) != 0) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

const fs::path& source_root() {
  static const fs::path root = RONDO_SOURCE_DIR;
  return root;
}

std::vector<Include> includes_of(std::istream& source, const std::string& from) {
  const std::string start = "#include \"";
  std::vector<Include> includes;
  std::string text;
  for (int line = 1; std::getline(source, text); ++line) {
    if (text.rfind(start, 0) == 0) {
      const size_t end = text.find('"', start.size());
      includes.push_back({from, line, text.substr(start.size(), end - start.size())});
    }
  }
  return includes;
}

/// Every quoted include of the folders of the table.
std::vector<Include> all_includes() {
  std::vector<Include> all;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& file : files_below(source_root() / folder, {".h", ".cpp"})) {
      std::ifstream source(file);
      const auto found = includes_of(source, file.lexically_relative(source_root()).string());
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  return all;
}

std::string content(const fs::path& file) {
  std::ifstream source(file);
  return {std::istreambuf_iterator<char>(source), {}};
}

using HeaderGraph = std::map<std::string, std::vector<std::string>>;

/// The headers of a cycle that is reached from `header`; empty when there is none.
std::vector<std::string> find_cycle(const HeaderGraph& graph,
                                    const std::string& header,
                                    std::vector<std::string>& path,
                                    std::set<std::string>& done) {
  if (const auto seen = std::find(path.begin(), path.end(), header); seen != path.end()) {
    return {seen, path.end()};
  }
  const auto edges = graph.find(header);
  if (edges == graph.end() || done.count(header) != 0) {
    return {};
  }
  path.push_back(header);
  for (const std::string& next : edges->second) {
    if (auto cycle = find_cycle(graph, next, path, done); !cycle.empty()) {
      return cycle;
    }
  }
  path.pop_back();
  done.insert(header);
  return {};
}

}  // namespace

TEST_SUITE_BEGIN("architecture/layers");

TEST_CASE("every include goes from a layer to a lower one, or is a named exception") {
  const std::vector<Include> includes = all_includes();
  CHECK(includes.size() > 50);
  for (const Include& include : includes) {
    INFO(to_string(include));
    CHECK(is_allowed(include));
  }
}

TEST_CASE("every exception is used by an include that the tables forbid") {
  const std::vector<Include> includes = all_includes();
  for (const Exception& exception : kExceptions) {
    const bool is_used = std::any_of(includes.begin(), includes.end(), [&](const Include& include) {
      return covers(exception, include) && !is_regular(include);
    });
    const std::string edge = std::string(exception.from) + " -> " + exception.to;
    INFO(edge);
    CHECK(is_used);
  }
}

TEST_CASE("the check of layers sees what it is for") {
  std::istringstream source("#pragma once\n\n#include \"trainer/trainer.h\"\n");
  const std::vector<Include> includes = includes_of(source, "core/time.h");
  REQUIRE(includes.size() == 1);
  CHECK(includes[0].line == 3);
  CHECK(includes[0].to == "trainer/trainer.h");
  CHECK_FALSE(is_allowed(includes[0]));

  CHECK(is_allowed({"data/tables/csv_table.cpp", 1, "core/error.h"}));
  CHECK(is_allowed({"data/tables/csv_table.cpp", 1, "data/internal/require.h"}));
  CHECK_FALSE(is_allowed({"callbacks/hooks.cpp", 1, "data/internal/require.h"}));
  CHECK_FALSE(is_allowed({"optim/sgd.h", 1, "models/model.h"}));
  CHECK_FALSE(is_allowed({"core/time.h", 1, "tests/support/temp_dir.h"}));
  CHECK(is_allowed({"callbacks/hooks.cpp", 1, "trainer/trainer.h"}));
  CHECK_FALSE(is_allowed({"callbacks/hooks.h", 1, "trainer/trainer.h"}));
  CHECK_FALSE(is_allowed({"cli/fit_command.cpp", 1, "checkpoint/checkpoint_file.h"}));
}

TEST_CASE("the check of parts sees what it is for") {
  CHECK(is_allowed({"tracing/plan/plan.cpp", 1, "tracing/passes/passes.h"}));
  CHECK_FALSE(is_allowed({"tracing/passes/passes.cpp", 1, "tracing/plan/plan.h"}));
  CHECK_FALSE(is_allowed({"tracing/kernels/rows.cpp", 1, "tracing/plan/plan.h"}));
  CHECK(is_allowed({"tracing/kernels/images/max_pool.cpp", 1, "tracing/kernels/rows.h"}));
  CHECK_FALSE(is_allowed({"tracing/plan/plan.h", 1, "tracing/traced_step.h"}));
  CHECK_FALSE(is_allowed({"callbacks/callback.h", 1, "callbacks/core/loop.h"}));
  CHECK_FALSE(is_allowed({"backends/step.h", 1, "tracing/program/step_program.h"}));
}

TEST_CASE("every part of a folder has a file") {
  for (const auto& [folder, parts] : kParts) {
    std::vector<std::string> files;
    for (const fs::path& file : files_below(source_root() / folder, {".h", ".cpp"})) {
      files.push_back(file.lexically_relative(source_root()).string());
    }
    for (const Part& part : parts) {
      for (const std::string& member : part.members) {
        INFO(part.name << ": " << member);
        CHECK(std::any_of(files.begin(), files.end(), [&](const std::string& file) {
          return names(member, file);
        }));
      }
    }
  }
}

TEST_CASE("every folder with a source is in the table of layers") {
  const std::set<std::string> outside = {"tests", "bench", "examples", "docs", "cmake"};
  for (const auto& entry : fs::directory_iterator(source_root())) {
    const std::string name = entry.path().filename().string();
    const bool is_of_the_project = entry.is_directory() && outside.count(name) == 0 &&
                                   fs::exists(entry.path() / "CMakeLists.txt");
    if (is_of_the_project) {
      INFO(name);
      CHECK(kMayInclude.count(name) == 1);
    }
  }
}

TEST_CASE("headers include each other in no cycle") {
  HeaderGraph graph;
  for (const Include& include : all_includes()) {
    if (fs::path(include.from).extension() == ".h") {
      graph[include.from].push_back(include.to);
    }
  }
  std::set<std::string> done;
  for (const auto& [header, edges] : graph) {
    std::vector<std::string> path;
    std::string text;
    for (const std::string& step : find_cycle(graph, header, path, done)) {
      text += step + " -> ";
    }
    INFO(text);
    REQUIRE(text.empty());  // every header that leads to the cycle would tell it again
  }
}

TEST_CASE("no header includes torch/torch.h, which takes 12 s to read") {
  std::vector<fs::path> headers = {
      source_root() / "rondo.h", source_root() / "module.h", source_root() / "plugin.h"};
  for (const auto& [folder, allowed] : kMayInclude) {
    const auto found = files_below(source_root() / folder, {".h"});
    headers.insert(headers.end(), found.begin(), found.end());
  }
  for (const fs::path& header : headers) {
    INFO(header.string());
    CHECK(content(header).find("#include <torch/torch.h>") == std::string::npos);
  }
}

TEST_CASE("rondo.h reaches no header of torch/, which takes longer to read than all of rondo") {
  std::vector<std::string> open = {"rondo.h"};
  std::set<std::string> seen(open.begin(), open.end());
  while (!open.empty()) {
    const std::string header = open.back();
    open.pop_back();
    INFO(header);
    CHECK(content(source_root() / header).find("#include <torch/") == std::string::npos);
    std::ifstream source(source_root() / header);
    for (const Include& include : includes_of(source, header)) {
      if (seen.insert(include.to).second) {
        open.push_back(include.to);
      }
    }
  }
  CHECK(seen.count("models/builtin/mlp.h") == 1);
}

TEST_CASE("what the launcher is made of reaches no header of LibTorch") {
  std::vector<std::string> open = {"cli/launcher.cpp",
                                   "cli/argument_errors.cpp",
                                   "cli/command_help.cpp",
                                   "cli/command_line.cpp",
                                   "cli/board_command.cpp",
                                   "cli/record_commands.cpp",
                                   "cli/rank_launcher.cpp",
                                   "cli/signal_handlers.cpp",
                                   "distributed/launch_environment.cpp",
                                   "cli/text_table.cpp",
                                   "core/base64.cpp",
                                   "core/csv.cpp",
                                   "core/glob.cpp",
                                   "core/json_reader.cpp",
                                   "core/json_text.cpp",
                                   "core/terminal.cpp",
                                   "core/openblas_core.cpp"};
  for (const char* folder : {"cli/arguments", "record", "board"}) {
    for (const fs::path& file : files_below(source_root() / folder, {".h", ".cpp"})) {
      open.push_back(file.lexically_relative(source_root()).string());
    }
  }
  std::set<std::string> seen(open.begin(), open.end());
  while (!open.empty()) {
    const std::string file = open.back();
    open.pop_back();
    INFO(file);
    for (const char* header : {"#include <torch/", "#include <ATen/", "#include <c10/"}) {
      CHECK(content(source_root() / file).find(header) == std::string::npos);
    }
    std::ifstream source(source_root() / file);
    for (const Include& include : includes_of(source, file)) {
      if (seen.insert(include.to).second) {
        open.push_back(include.to);
      }
    }
  }
  CHECK(seen.count("record/run_record.h") == 1);
}

TEST_CASE("callbacks.h, and so rondo.h, brings every callback that a config can name") {
  const std::string start = "register_";
  const std::string brought = content(source_root() / "callbacks/builtin/callbacks.h");
  std::ifstream list(source_root() / "callbacks/builtin/register.h");
  int count = 0;
  for (std::string word; list >> word;) {
    const size_t end = word.find("(Registry<Callback>&");
    if (word.rfind(start, 0) != 0 || end == std::string::npos || word.find("builtin") == 9) {
      continue;
    }
    const std::string name = word.substr(start.size(), end - start.size());
    CAPTURE(name);
    const auto brings = [&](const char* folder) {
      return brought.find("#include \"callbacks/" + (folder + name) + ".h\"") != std::string::npos;
    };
    CHECK((brings("builtin/") || brings("core/")));
    ++count;
  }
  CHECK(count > 10);
  CHECK(content(source_root() / "rondo.h").find("callbacks/builtin/callbacks.h") !=
        std::string::npos);
}

TEST_CASE(
    "who switches gradients off includes the header, which ATen.h of LibTorch 1 brings only") {
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& file : files_below(source_root() / folder, {".h", ".cpp"})) {
      INFO(file.string());
      const std::string text = content(file);
      CHECK((text.find("at::NoGradGuard") == std::string::npos ||
             text.find("#include <ATen/core/grad_mode.h>") != std::string::npos));
    }
  }
}

TEST_SUITE_END();
