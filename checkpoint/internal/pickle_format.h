#pragma once

#include <cstdint>

namespace rondo::detail {

/// Python's pickle protocol 2, as much of it as checkpoints use.
/// Source: CPython, Lib/pickletools.py; what PyTorch 1.13's torch/_weights_only_unpickler.py takes.
constexpr uint8_t kPickleProtocol = 2;

enum class Op : uint8_t {
  Proto = 0x80,
  Stop = '.',
  Mark = '(',
  None = 'N',
  True = 0x88,
  False = 0x89,
  Int32 = 'J',
  Uint8 = 'K',
  Uint16 = 'M',
  Long = 0x8a,
  Float = 'G',  ///< read only: PyTorch 1.13 refuses it with weights_only
  Text = 'X',
  EmptyTuple = ')',
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  Tuple = 't',
  EmptyList = ']',
  Append = 'a',
  Appends = 'e',
  EmptyDict = '}',
  SetItem = 's',
  SetItems = 'u',
  Put = 'q',
  LongPut = 'r',
  Get = 'h',
  LongGet = 'j',
  Global = 'c',
  Reduce = 'R',
  NewObject = 0x81,  ///< read only
  Build = 'b',
  PersistentId = 'Q',
};

/// Dictionaries and lists may lie this deep in each other, when written as when read.
constexpr int kDeepestState = 100;

/// data.pkl is held in memory whole; this is room for over a million tensors.
constexpr uint64_t kLargestPickle = uint64_t{256} << 20;

}  // namespace rondo::detail
