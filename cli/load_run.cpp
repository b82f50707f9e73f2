#include "cli/load_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "configs/overrides.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/file_system.h"

namespace rondo {

namespace {

const SourcePosition kCommandLine{"command line", 0, 0};

/// The sections that begin with one checkpoint.
const std::vector<std::string> kLoading{"fit", "validate", "predict"};

/// The table of a file of one phase, or those of `[[trainer]]`.
std::vector<ConfigValue*> phases_of(ConfigValue& root) {
  ConfigValue* const trainer = root.get_if<ConfigTable>()->find("trainer");
  if (trainer == nullptr) {
    return {};
  }
  std::vector<ConfigValue*> phases{trainer};
  if (auto* array = trainer->get_if<ConfigArray>()) {
    phases.clear();
    for (ConfigValue& phase : *array) {
      phases.push_back(&phase);
    }
  }
  return phases;
}

/// Sets `key` in the sections that the file has, in every phase.
void set_in_sections(ConfigValue& root,
                     const std::string& key,
                     const ConfigValue& value,
                     const std::vector<std::string>& sections) {
  for (ConfigValue* phase : phases_of(root)) {
    auto* tables = phase->get_if<ConfigTable>();
    for (const std::string& section : sections) {
      ConfigValue* found = tables != nullptr ? tables->find(section) : nullptr;
      if (auto* table = found != nullptr ? found->get_if<ConfigTable>() : nullptr) {
        table->set(key, value, kCommandLine);
      }
    }
  }
}

/// What `--checkpoint` stands for in the section that a command runs.
const char* checkpoint_key(Command command) {
  switch (command) {
    case Command::Validate:
      return "validate.ckpt_path";
    case Command::ValidateAll:
      return "validate_all.ckpt_paths";
    case Command::Predict:
      return "predict.ckpt_path";
    default:
      return "fit.ckpt_path";
  }
}

/// Refuses an option that names one directory or one file when the file has several runs: all
/// would share it, and each would take what the one before it left for its own.
void check_one_phase(const CommandLine& line,
                     ConfigValue& root,
                     const char* option,
                     const std::string& key) {
  const size_t count = phases_of(root).size();
  if (count > 1) {
    throw UsageError(
        fmt::format("{} is for one run, and {} has {} phases; set it for the phases that you mean, "
                    "such as trainer[0].{}=… on the command line, or in the file",
                    option,
                    line.config,
                    count,
                    key));
  }
}

/// Adds the plugins of the command line to those of the file: the resolved file that a run leaves
/// names all that it needs, wherever it is read again.
void add_plugins(ConfigValue& root, const std::vector<std::string>& plugins) {
  std::vector<std::filesystem::path> all = plugins_of(root);
  all.insert(all.end(), plugins.begin(), plugins.end());
  auto* table = root.get_if<ConfigTable>();
  if (table == nullptr || all.empty()) {
    return;
  }
  ConfigArray paths;
  std::set<std::string> known;
  for (const std::filesystem::path& plugin : all) {
    const std::string path = std::filesystem::weakly_canonical(plugin).string();
    if (known.insert(path).second) {
      paths.push_back(ConfigValue(path, kCommandLine));
    }
  }
  table->set("plugins", ConfigValue(std::move(paths), kCommandLine), kCommandLine);
}

/// The content of the file; one that cannot be read is a fault of the command line.
std::string read_file(const std::string& path) {
  try {
    return real_file_system()->read(path);
  } catch (const IoError& error) {
    throw ConfigError(Fault{kCommandLine, "", error.what()});
  }
}

/// A comment, whatever is in `text`.
std::string comment(const std::string& what, const std::string& text) {
  std::string line = fmt::format("# {}: {}", what, text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line + "\n";
}

/// The file behind comments that name it and say what the command line changes of it.
std::string as_written(const CommandLine& line, const std::string& file) {
  std::string text = comment("as written in", line.config);
  for (const std::string& assignment : line.overrides) {
    text += comment("override", assignment);
  }
  for (const auto& [option, value] :
       {std::pair("-o", line.model_dir), std::pair("--checkpoint", line.checkpoint)}) {
    text += value.empty() ? "" : comment("option", fmt::format("{} {}", option, value));
  }
  text += line.params.empty() ? "" : comment("option", "--params " + line.params);
  for (const std::string& plugin : line.plugins) {
    text += comment("option", "--plugin " + plugin);
  }
  return text + "\n" + file;
}

}  // namespace

std::vector<RunConfig> load_run(const CommandLine& line, Registries& registries) {
  const bool is_run = std::filesystem::is_directory(line.config);
  const std::string file = is_run ? config_of_run(line.config).string() : line.config;
  const std::string text = read_file(file);
  ConfigValue root = parse_toml(text, file);
  for (const std::string& assignment : line.overrides) {
    apply_override(root, assignment);
  }
  if (!line.params.empty()) {
    apply_params(root, line.params);
  }
  if (!line.model_dir.empty()) {
    check_one_phase(line, root, "-o", "init.model_dir");
    set_in_sections(root, "model_dir", ConfigValue(line.model_dir, kCommandLine), {"init"});
  } else if (is_run && phases_of(root).size() == 1) {  // which may have been moved
    set_in_sections(root, "model_dir", ConfigValue(line.config, kCommandLine), {"init"});
  }
  if (line.checkpoint == "none") {
    set_in_sections(root, "ckpt_path", ConfigValue(false, kCommandLine), kLoading);
  } else if (!line.checkpoint.empty()) {
    check_one_phase(line, root, "--checkpoint", checkpoint_key(line.command));
    const ConfigValue path(line.checkpoint, kCommandLine);
    set_in_sections(root, "ckpt_path", path, kLoading);
    const ConfigValue paths(ConfigArray{path}, kCommandLine);
    set_in_sections(root, "ckpt_paths", paths, {"validate_all"});
  }
  add_plugins(root, line.plugins);
  for (const std::filesystem::path& plugin : plugins_of(root)) {
    load_plugin(plugin, registries);
  }
  std::vector<RunConfig> phases = read_phases(root, registries);
  for (RunConfig& phase : phases) {
    phase.as_written = as_written(line, text);
  }
  return phases;
}

std::filesystem::path config_of_run(const std::filesystem::path& directory) {
  for (const std::filesystem::path& candidate :
       {directory / "trainer_params.toml", directory / "logs" / "latest" / "trainer_params.toml"}) {
    if (std::filesystem::is_regular_file(candidate)) {
      return candidate;
    }
  }
  throw IoError(fmt::format("{} holds no run that began with a file: expected "
                            "logs/latest/trainer_params.toml in it",
                            directory.string()),
                0);
}

}  // namespace rondo
