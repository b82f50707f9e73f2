#pragma once

#include <string_view>

#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/pickle_calls.h"
#include "core/state_dict.h"

namespace rondo::detail {

/// Reads the pickle of a checkpoint: the part of protocol 2 that torch.save uses for state
/// dictionaries. Runs nothing; memory and stack stay within fixed multiples of the pickle's size
/// and of the storages it names. \param place  where `bytes` begin in the file \throws
/// CheckpointError  naming the place of the operation that is wrong
StateDict read_pickle(std::string_view bytes,
                      FilePlace place,
                      LoadStorage load_storage,
                      OtherClasses other_classes = OtherClasses::Refused);

}  // namespace rondo::detail
