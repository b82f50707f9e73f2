#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "core/state_dict.h"

namespace rondo {

/// What `rondo checkpoint` does with files, outside of any run. A file whose name ends with
/// ".safetensors" is one of those, every other one is a torch archive. All throw CheckpointError
/// naming the file.

/// Writes either kind; of a state, safetensors get what `module_state` finds.
void write_any(FileSystem& files, const std::filesystem::path& path, const StateDict& state);

/// The tensors of a model: the entry "model", or the state itself when it is tensors by name.
/// \throws CheckpointError  when it is neither
const StateDict& module_state(const StateDict& state);

/// Bytes of all tensors, those that share memory counted each for itself.
int64_t tensor_bytes(const StateDict& state);

/// Every entry in which two states differ, one line each: `path: only in the first`, kinds that
/// differ, values that differ, for tensors of floats the largest absolute difference.
std::vector<std::string> state_differences(const StateDict& a, const StateDict& b);

/// {"model": …} with the mean of the models in the files, taken in float64; what is no float is
/// that of the last file. One file is in memory at a time. \throws CheckpointError  also when names
/// or shapes differ, naming them
StateDict average_models(const std::vector<std::filesystem::path>& paths);

/// {"model": …} with every low-rank adapter of a state written into its layer's weight, as in the
/// steps that trained it, and without the adapters.
/// \param base  has the weights that the state does not have; may be empty
/// \throws CheckpointError  when there is no adapter, or none of both has a weight, naming it
StateDict merge_adapters(const StateDict& state, const StateDict& base);

/// Copies a file byte by byte, durably, when it can be read whole.
/// \throws CheckpointError  also when the name asks for another compression
void copy_checkpoint(FileSystem& files,
                     const std::filesystem::path& from,
                     const std::filesystem::path& to);

/// Deletes a file, takes it out of the index beside it, and lets `latest` lead to the newest that
/// is left. \throws CheckpointError  when there is no such file
void delete_checkpoint(const std::shared_ptr<FileSystem>& files, const std::filesystem::path& path);

}  // namespace rondo
