#pragma once

#include <filesystem>

#include "core/file_system.h"
#include "core/state_dict.h"

namespace rondo {

/// Writes a state in the torch zip format to `{path}.{8 hex}.tmp`, makes it durable and renames it to
/// `path`: a crash at any instant leaves the old file or the new one. Shared storages are written
/// once; tensors are streamed.
/// \throws CheckpointError  naming the path, with the IoError nested; nothing is left behind
void write_checkpoint(FileSystem& files, const std::filesystem::path& path, const StateDict& state);

/// Reads a file that `write_checkpoint` or Python's `torch.save` wrote, verifying every record's
/// checksum. Executes nothing that stands in the file. Tensors share storage as they did when saved.
/// \throws CheckpointError  naming path, record and offset of what is wrong
StateDict read_checkpoint(const std::filesystem::path& path);

}  // namespace rondo
