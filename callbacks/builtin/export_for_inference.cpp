#include "callbacks/builtin/export_for_inference.h"

#include "core/registry.h"
#include "trainer/export_inference.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

ExportOptions export_options(const ExportForInference::Options& options) {
  return {options.format, options.batch_size, options.outputs};
}

}  // namespace

ExportForInference::ExportForInference(const Options& options) : options_(options) {
  check(export_options(options));
}

void ExportForInference::on_fit_start(Trainer&,
                                      const DataLoader& train,
                                      const Loaders& val,
                                      Loop&) {
  data_ = val.empty() ? train : val.front();
}

void ExportForInference::on_fit_end(Trainer& trainer, Loop&) {
  const bool writes = trainer.state().writes();
  const std::filesystem::path file =
      writes ? trainer.options().model_dir / options_.file
             : trainer.state().artifact_dir / std::filesystem::path(options_.file).filename();
  export_model(trainer, *data_, export_options(options_), file);  // all ranks evaluate
  if (!writes) {
    return;
  }
  trainer.log().info("exported the trained model to " + file.string());
}

void register_export_for_inference(Registry<Callback>& registry) {
  registry
      .add<ExportForInference>("ExportForInference",
                               "Writes the trained model for other programs when a fit ends.")
      .key("file", &ExportForInference::Options::file, "file in model_dir that gets the model")
      .key("format",
           &ExportForInference::Options::format,
           one_of({"torchscript", "safetensors", "inference-step"}),
           "what other programs read")
      .key("batch_size",
           &ExportForInference::Options::batch_size,
           at_least(0),
           "rows of a batch; 0: as the loader's")
      .key("outputs", &ExportForInference::Options::outputs, "which; none: all but losses");
}

}  // namespace rondo
