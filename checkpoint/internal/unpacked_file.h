#pragma once

#include <cstdint>

#include "checkpoint/internal/compression.h"
#include "core/file_descriptor.h"

namespace rondo::detail {

class RandomAccessFile;

/// Unpacks a compressed file into one without a name, on disk: beside it, or in /var/tmp where
/// nothing can be written there. It goes when its descriptor is closed, also when the process dies.
/// Memory is that of the decoder.
/// \throws CheckpointError  naming the file, when it is damaged, cut short, or unpacks to more than
///                          a thousand times its size (and 64 MiB), which no checkpoint does
/// \throws IoError
FileDescriptor unpack(const RandomAccessFile& packed, Compression compression);

}  // namespace rondo::detail
