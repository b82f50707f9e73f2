#include "support/glyphs_run.h"

#include "configs/overrides.h"
#include "configs/toml_file.h"
#include "support/builtins.h"

namespace rondo::test {

std::string glyphs_toml(const std::filesystem::path& model_dir, const std::string& sizes) {
  return "[trainer.init]\nmodel_dir = \"" + model_dir.string() +
         "\"\nseed = 1\nmodel = { name = \"Mlp\", sizes = " + sizes +
         " }\n"
         "loop = { max_steps = 2 }\n"
         "loggers = [{ ProgressLogger = false }]\n"
         "[trainer.init.optimizer.Adam]\nlr = 0.001\n"
         "[trainer.fit]\ntrain_dataloader = { dataset = \"Glyphs\", size = 96, "
         "batch_size = 16, prefetch = 0 }\n";
}

RunConfig glyphs_run(const std::filesystem::path& model_dir,
                     const std::string& sizes,
                     const std::vector<std::string>& overrides) {
  ConfigValue root = parse_toml(glyphs_toml(model_dir, sizes), "run.toml");
  for (const std::string& assignment : overrides) {
    apply_override(root, assignment);
  }
  return read_run_config(root, builtins());
}

}  // namespace rondo::test
