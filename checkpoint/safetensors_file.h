#pragma once

#include <filesystem>

#include "core/file_system.h"
#include "core/state_dict.h"

namespace rondo {

/// Writes tensors by name in the safetensors format, which holds nothing else, atomically as
/// `write_checkpoint` does. Shared memory is written once per tensor.
/// Source: https://github.com/huggingface/safetensors, "Format".
/// \throws CheckpointError  naming the path, and the entry that is not a tensor of a plain dtype
void write_safetensors(FileSystem& files,
                       const std::filesystem::path& path,
                       const StateDict& tensors);

/// Reads what `write_safetensors` or another program wrote: tensors by name, on the CPU.
/// \throws CheckpointError  naming the path and the error: an invalid JSON header, or tensors that
///                          overlap, leave gaps or reach outside of the file
StateDict read_safetensors(const std::filesystem::path& path);

}  // namespace rondo
