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
/// `torch.load(path, weights_only=True)`. Tensors are streamed from where they lie; one that is not
/// on the CPU or not contiguous costs a copy while it is written.
///
/// A storage that several tensors of the state share is written once, from the first to the last
/// element that one of them reaches. A tensor that alone uses its storage, such as a slice of a
/// large buffer, is written without the rest of it. Floats become 0-dim float64 tensors; tensors
/// come back detached, on the CPU.
///
/// A name that ends with ".gz" or ".zst" is that file compressed by gzip or zstd, which Python
/// reads after `gunzip` or `unzstd`; one that ends like other archives is refused.
/// \throws CheckpointError  naming the path, with the IoError nested, or the entry that cannot be
///                          saved (undefined, sparse, quantised, deeper than 100 levels); nothing
///                          is left behind
void write_checkpoint(FileSystem& files, const std::filesystem::path& path, const StateDict& state);

/// The same for a file that is to replace none, even when another process saves into the directory.
/// \return where it is
std::filesystem::path write_new_checkpoint(FileSystem& files,
                                           const NewName& name,
                                           const StateDict& state);

/// Looks at a state before it is saved, and throws to keep it from being saved.
using StateCheck = std::function<void(const StateDict& state)>;

namespace detail {

struct PickledState;
class SnapshotMemory;

}  // namespace detail

/// A state on its way to a file, in memory of its own: the run may go on changing its tensors.
/// Memory is used again by the next `take`. The file has the same bytes as `write_checkpoint`'s,
/// and replaces none.
///
/// Where the system can hold pages (Linux 6.4), large tensors are copied by `write`: who changes
/// one of them before that waits, and until `release` none of them can be resized.
class CheckpointSnapshot {
 public:
  CheckpointSnapshot();
  CheckpointSnapshot(const CheckpointSnapshot&) = delete;
  CheckpointSnapshot& operator=(const CheckpointSnapshot&) = delete;
  ~CheckpointSnapshot();

  /// Takes the state as it is now, for a new file. `write` or `release` must follow soon.
  /// \throws CheckpointError  as `write_checkpoint`
  void take(NewName name, const StateDict& state);

  /// Writes what was taken last, once, from any thread. \return where it is
  /// \param check  called with the copy before anything is written; what it throws is thrown on
  /// \throws CheckpointError  as `write_checkpoint`
  std::filesystem::path write(FileSystem& files, const StateCheck& check = {});

  /// True when `write` needs the state's tensors no more; may be asked while it runs.
  bool is_copied() const { return is_copied_; }

  /// Lets go of the state's tensors. When `is_copied`, or instead of `write`.
  void release();

  /// Seconds in which somebody waited for `write` to copy what they were about to change.
  double waited_s() const { return waited_s_; }

 private:
  std::unique_ptr<detail::SnapshotMemory> memory_;
  std::unique_ptr<detail::PickledState> pickled_;
  NewName name_;
  std::filesystem::path path_;  // the first that was free
  double waited_s_ = 0.0;
  std::atomic<bool> is_copied_ = false;
};

/// What rondo wrote into a file about itself: format, writer, LibTorch, a `key = value` a line. ""
/// when the file is none of rondo's archives. \throws CheckpointError  when it cannot be read
std::string read_manifest(const std::filesystem::path& path);

/// Reads a file that `write_checkpoint` or Python's `torch.save` wrote, verifying every record's
/// checksum, and of rondo's own files every byte; compressed or not, whatever its name. Executes
/// nothing that stands in the file. Tensors own their memory and share it as they did when saved.
/// Of Python's values a tuple becomes a list, an integer name its decimal text, an OrderedDict a
/// dictionary, a Parameter its tensor, a class its name, another object its attributes; a module,
/// also in a file of TorchScript or of C++'s `torch::save`, becomes its tensors by dotted names.
/// A safetensors file becomes {"model": tensors}.
/// \throws CheckpointError  naming path, record and offset of what is wrong
StateDict read_checkpoint(const std::filesystem::path& path);

}  // namespace rondo
