#include "cli/arguments/shared.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

namespace rondo {

namespace {

/// The rule of a `key.path=value` argument. \return what is wrong, as CLI11 wants it; "" when right
std::string override_fault(const std::string& text) {
  const size_t equals = text.find('=');
  const bool has_key = equals != std::string::npos && equals != 0;
  return has_key ? "" : fmt::format("expected key.path=value, got \"{}\"", text);
}

/// Puts in place of a directory the file that it stands for: its run.toml, or else its only TOML
/// file. An index of checkpoints is none. The directory of a run that trained stays.
/// \return the fault; "" when there is none
std::string find_config(std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return "";
  }
  if (fs::is_regular_file(fs::path(path) / "run.toml", error)) {
    path = (fs::path(path) / "run.toml").string();
    return "";
  }
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".toml" &&
        entry.path().filename() != "checkpoints_index.toml") {
      found.insert(entry.path().string());
    }
  }
  if (found.size() == 1) {
    path = *found.begin();
    return "";
  }
  if (found.empty() && fs::is_regular_file(fs::path(path) / "logs/latest/trainer_params.toml")) {
    return "";  // of a run that trained
  }
  return found.empty() ? "the directory " + path + " holds no TOML file"
                       : fmt::format(
                             "the directory {} holds several TOML files and none is "
                             "run.toml; name one of {}",
                             path,
                             fmt::join(found, ", "));
}

}  // namespace

void add_plugins(CLI::App& app, CommandLine& line) {
  // An option of many values would take the overrides after it as well.
  app.add_option("--plugin", line.plugins, "Load components from this shared library (repeatable)")
      ->type_name("SO")
      ->allow_extra_args(false);
}

CLI::Option& add_count(
    CLI::App& app, const char* name, int64_t& value, const char* doc, int64_t least) {
  return *app.add_option(name, value, doc)
              ->capture_default_str()
              ->check(CLI::Range(least, int64_t{1} << 40));
}

void add_config(CLI::App& app, CommandLine& line) {
  app.add_option("config",
                 line.config,
                 "The run: a TOML file, the directory of one, or of a run that trained")
      ->required()
      ->type_name("RUN.toml")
      ->transform(CLI::Validator(&find_config, ""));
}

void add_overrides(CLI::App& app, CommandLine& line) {
  app.add_option("overrides", line.overrides, "Values that replace those of the file")
      ->type_name("KEY.PATH=VALUE")
      ->check(override_fault);
  app.add_option("--params",
                 line.params,
                 "The same as a JSON object, such as {\"trainer.init.seed\": 3}; applied last")
      ->type_name("JSON");
}

void add_run_file(CLI::App& app, CommandLine& line) {
  add_config(app, line);
  add_overrides(app, line);
  app.add_option("-o,--model-dir",
                 line.model_dir,
                 "Directory of the run, for checkpoints and logs (default: as in the file)")
      ->type_name("DIR");
  add_plugins(app, line);
}

void add_checkpoint_to_load(CLI::App& app, CommandLine& line) {
  app.add_option("--checkpoint",
                 line.checkpoint,
                 "Begin with this checkpoint, or with none (default: as in the file)")
      ->type_name("PATH|none");
}

void add_output(CLI::App& app, CommandLine& line) {
  app.add_option("-o,--output", line.output, "The file to write")->required()->type_name("FILE");
}

}  // namespace rondo
