#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tracing/exported_step.h"
#include "trainer/run_config.h"

namespace rondo {

class Trainer;

/// How a model leaves rondo to be used.
struct ExportOptions {
  /// "torchscript": a module for `torch.jit.load`; "inference-step": a forward pass for
  /// rondo_step.h; "safetensors": the weights alone, by name.
  std::string format = "torchscript";
  int64_t batch_size = 0;                 ///< rows of a batch of the two first; 0: as the loader's
  std::vector<std::string> outputs = {};  ///< which; none: all but losses
};

/// Writes the model as it is. Its outputs are those of an evaluation of `data`, bit for bit: what
/// callbacks do around a forward pass is in it, such as averaged weights and normalised inputs. All
/// but "safetensors" run some batches of `data` and need backend.mode "traced".
/// \throws UsageError         for an unknown format or output, or an eager backend
/// \throws NotSupportedError  naming what stands in the way
void export_model(Trainer& trainer,
                  const DataLoader& data,
                  const ExportOptions& options,
                  const std::filesystem::path& file);

/// The same for a run, with the checkpoint that it would evaluate.
/// \return which that was
std::filesystem::path export_model(const RunConfig& run,
                                   const ExportOptions& options,
                                   const std::filesystem::path& file);

/// \throws UsageError  for an unknown format
void check(const ExportOptions& options);

}  // namespace rondo
