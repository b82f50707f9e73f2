#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tracing/exported_step.h"
#include "trainer/run_config.h"

namespace rondo {

class Trainer;

/// What `export_model` writes.
struct ExportOptions {
  /// "torchscript": a module for `torch.jit.load`; "inference-step": a forward pass for
  /// rondo_step.h; "safetensors": the weights alone, by name.
  std::string format = "torchscript";
  int64_t batch_size = 0;                 ///< rows of a batch, for the first two; 0: the loader's
  std::vector<std::string> outputs = {};  ///< outputs to keep; empty: all but losses
};

/// Writes the current model. Its outputs match an evaluation of `data` bit for bit: it includes
/// what callbacks do around a forward pass, such as averaging weights and normalising inputs.
/// "safetensors" has the weights of such an evaluation. All other formats run some batches of
/// `data` and need backend.mode "traced". \throws UsageError         for an unknown format or
/// output, or an eager backend \throws NotSupportedError  when something cannot be exported, naming
/// it
void export_model(Trainer& trainer,
                  const DataLoader& data,
                  const ExportOptions& options,
                  const std::filesystem::path& file);

/// The same for a run, with the checkpoint that it would evaluate.
/// \return that checkpoint
std::filesystem::path export_model(const RunConfig& run,
                                   const ExportOptions& options,
                                   const std::filesystem::path& file);

/// \throws UsageError  for an unknown format
void check(const ExportOptions& options);

}  // namespace rondo
