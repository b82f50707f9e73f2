#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "core/state_dict.h"

namespace rondo {

/// The operations of `rondo checkpoint` on files, outside of any run. A name that ends with
/// ".safetensors" means that format, any other name a torch archive. All throw CheckpointError
/// naming the file.

/// Writes either kind; a safetensors file gets only what `module_state` returns.
void write_any(FileSystem& files, const std::filesystem::path& path, const StateDict& state);

/// The tensors of a model: the entry "model", or the state itself if it holds tensors by name.
/// \throws CheckpointError  when it is neither
const StateDict& module_state(const StateDict& state);

/// Bytes of all tensors; counts shared memory once per tensor.
int64_t tensor_bytes(const StateDict& state);

/// Every entry in which two states differ, one line each: `path: only in the first`, kinds that
/// differ, values that differ, for tensors of floats the largest absolute difference.
std::vector<std::string> state_differences(const StateDict& a, const StateDict& b);

/// {"model": …} with the mean of the models in the files, computed in float64; values other than
/// floats come from the last file. Holds one file in memory at a time. \throws CheckpointError
/// also when names or shapes differ, naming them
StateDict average_models(const std::vector<std::filesystem::path>& paths);

/// {"model": …} with every low-rank adapter of a state merged into its layer's weight, as in the
/// steps that trained it.
/// \param base  supplies weights that the state lacks; may be empty
/// \throws CheckpointError  when there is no adapter, or when neither has a weight, naming it
StateDict merge_adapters(const StateDict& state, const StateDict& base);

/// Copies a file byte by byte, durably, if all of it is readable.
/// \throws CheckpointError  also when the new name implies another compression
void copy_checkpoint(FileSystem& files,
                     const std::filesystem::path& from,
                     const std::filesystem::path& to);

/// Deletes a file, removes it from the index next to it, and points `latest` at the newest that is
/// left. \throws CheckpointError  when there is no such file
void delete_checkpoint(const std::shared_ptr<FileSystem>& files, const std::filesystem::path& path);

}  // namespace rondo
