#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/file_system.h"
#include "core/state_dict.h"

namespace rondo {

/// Writes a state in the torch zip format to `{path}.{8 hex}.tmp`, makes it durable and renames it
/// to `path`: a crash at any instant leaves the old file or the new one. Python reads it with
/// `torch.load(path, weights_only=True)`. Streams tensors from their own memory; one that is not on
/// the CPU or not contiguous costs a copy while it is written.
///
/// Writes a storage that several tensors of the state share once, from the first to the last
/// element in use. If only one tensor uses a storage, such as a slice of a large buffer, writes
/// only that part. Floats become 0-dim float64 tensors; tensors come back detached, on the CPU.
///
/// For a name that ends with ".gz" or ".zst" it compresses the file with gzip or zstd; Python reads
/// it after `gunzip` or `unzstd`. Endings of other archive formats are an error.
/// \throws CheckpointError  naming the path, with the IoError nested, or the entry that cannot be
///                          saved (undefined, sparse, quantised, deeper than 100 levels); no file
///                          is left then
void write_checkpoint(FileSystem& files, const std::filesystem::path& path, const StateDict& state);

/// The same for a new file that never replaces one, even if another process saves into the
/// directory.
/// \return its path
std::filesystem::path write_new_checkpoint(FileSystem& files,
                                           const NewName& name,
                                           const StateDict& state);

/// Checks a state before it is saved, and throws to prevent the save.
using StateCheck = std::function<void(const StateDict& state)>;

namespace detail {

struct PickledState;
class SnapshotMemory;

}  // namespace detail

/// A snapshot of a state in its own memory, to write while the run changes its tensors. The next
/// `take` reuses the memory. The file has the same bytes as `write_checkpoint`'s, and never
/// replaces one.
///
/// Where the system can write-protect pages (Linux 6.4), `write` copies large tensors. A thread
/// that changes one of them before that waits, and none of them can be resized until `release`.
class CheckpointSnapshot {
 public:
  CheckpointSnapshot();
  CheckpointSnapshot(const CheckpointSnapshot&) = delete;
  CheckpointSnapshot& operator=(const CheckpointSnapshot&) = delete;
  ~CheckpointSnapshot();

  /// Takes the current state, for a new file. `write` or `release` must follow soon.
  /// \throws CheckpointError  as `write_checkpoint`
  void take(NewName name, const StateDict& state);

  /// Writes the last snapshot, once; any thread may call it. \return its path
  /// \param check  called with the copy before anything is written; its exceptions pass through
  /// \throws CheckpointError  as `write_checkpoint`
  std::filesystem::path write(FileSystem& files, const StateCheck& check = {});

  /// True when `write` no longer needs the state's tensors; may be called while it runs.
  bool is_copied() const { return is_copied_; }

  /// Releases the state's tensors. Call it when `is_copied`, or instead of `write`.
  void release();

  /// Seconds for which threads that wanted to change a tensor waited for `write` to copy it.
  double waited_s() const { return waited_s_; }

 private:
  std::unique_ptr<detail::SnapshotMemory> memory_;
  std::unique_ptr<detail::PickledState> pickled_;
  NewName name_;
  std::filesystem::path path_;  // the first that was free
  double waited_s_ = 0.0;
  std::atomic<bool> is_copied_ = false;
};

/// What rondo wrote into a file about its origin: format, writer, LibTorch, one `key = value` per
/// line. "" when the file is not one of rondo's archives. \throws CheckpointError  when it cannot
/// be read
std::string read_manifest(const std::filesystem::path& path);

/// Reads a file that `write_checkpoint` or Python's `torch.save` wrote, verifying every record's
/// checksum, and in rondo's own files every byte. The file may be compressed, whatever its name.
/// Executes nothing from the file. Tensors own their memory and share it as they did when saved. A
/// Python tuple becomes a list, an integer name its decimal text, an OrderedDict a dictionary, a
/// Parameter its tensor, a class its name, another object its attributes; a module, also in a file
/// of TorchScript or of C++'s `torch::save`, becomes its tensors by dotted names. A safetensors
/// file becomes {"model": tensors}.
/// \throws CheckpointError  naming path, record and offset of the error
StateDict read_checkpoint(const std::filesystem::path& path);

}  // namespace rondo
