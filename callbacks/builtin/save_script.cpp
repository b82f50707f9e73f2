#include "callbacks/builtin/save_script.h"

#include "core/error.h"
#include "core/registry.h"
#include "models/builtin/script_model.h"
#include "trainer/trainer.h"

namespace rondo {

void SaveScript::setup(Trainer& trainer) {
  if (dynamic_cast<ScriptModel*>(trainer.state().model.get()) == nullptr) {
    throw UsageError("SaveScript needs a ScriptModel; the model is " +
                     trainer.options().model.name());
  }
}

void SaveScript::on_fit_end(Trainer& trainer, Loop&) {
  if (!trainer.state().writes()) {
    return;
  }
  const std::filesystem::path file = trainer.options().model_dir / options_.file;
  dynamic_cast<ScriptModel&>(*trainer.state().model).save(file);
  trainer.log().info("wrote the trained script to " + file.string());
}

void register_save_script(Registry<Callback>& registry) {
  registry
      .add<SaveScript>("SaveScript",
                       "Writes a trained ScriptModel back as TorchScript when a fit ends.")
      .key("file", &SaveScript::Options::file, "file in model_dir that gets the script");
}

}  // namespace rondo
