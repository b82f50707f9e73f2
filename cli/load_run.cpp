#include "cli/load_run.h"

#include "configs/overrides.h"
#include "configs/toml_file.h"
#include "core/error.h"

namespace rondo {

namespace {

const SourcePosition kCommandLine{"command line", 0, 0};

/// Sets `key` in the sections that the file has, in every phase.
void set_in_sections(ConfigValue& root,
                     const std::string& key,
                     const ConfigValue& value,
                     const std::vector<std::string>& sections) {
  ConfigValue* const trainer = root.get_if<ConfigTable>()->find("trainer");
  if (trainer == nullptr) {
    return;
  }
  std::vector<ConfigValue*> phases{trainer};
  if (auto* array = trainer->get_if<ConfigArray>()) {
    phases.clear();
    for (ConfigValue& phase : *array) {
      phases.push_back(&phase);
    }
  }
  for (ConfigValue* phase : phases) {
    auto* tables = phase->get_if<ConfigTable>();
    for (const std::string& section : sections) {
      ConfigValue* found = tables != nullptr ? tables->find(section) : nullptr;
      if (auto* table = found != nullptr ? found->get_if<ConfigTable>() : nullptr) {
        table->set(key, value, kCommandLine);
      }
    }
  }
}

/// The file as a tree; one that cannot be read is a fault of the command line.
ConfigValue read_file(const std::string& path) {
  try {
    return read_toml_file(path);
  } catch (const IoError& error) {
    throw ConfigError(Fault{kCommandLine, "", error.what()});
  }
}

}  // namespace

std::vector<RunConfig> load_run(const CommandLine& line, Registries& registries) {
  ConfigValue root = read_file(line.config);
  for (const std::string& assignment : line.overrides) {
    apply_override(root, assignment);
  }
  if (!line.model_dir.empty()) {
    set_in_sections(root, "model_dir", ConfigValue(line.model_dir, kCommandLine), {"init"});
  }
  if (!line.checkpoint.empty()) {
    const ConfigValue path = line.checkpoint == "none" ? ConfigValue(false, kCommandLine)
                                                       : ConfigValue(line.checkpoint, kCommandLine);
    set_in_sections(root, "ckpt_path", path, {"fit", "validate", "predict"});
    if (line.checkpoint != "none") {  // it evaluates files
      set_in_sections(
          root, "ckpt_paths", ConfigValue(ConfigArray{path}, kCommandLine), {"validate_all"});
    }
  }
  for (const std::filesystem::path& plugin : plugins_of(root)) {
    load_plugin(plugin, registries);
  }
  for (const std::string& plugin : line.plugins) {
    load_plugin(plugin, registries);
  }
  return read_phases(root, registries);
}

}  // namespace rondo
