#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/media.h"
#include "loggers/program_graph.h"

namespace rondo {

/// \throws NotSupportedError  where rondo was built without Protobuf (RONDO_WITH_TENSORBOARD); so
/// do all of the below
void require_event_files();

/// A TensorBoard event file: records of a length, a payload and their masked CRC-32C.
/// Source: TensorFlow's TFRecord format and tensorboard/compat/proto/event.proto.
class EventFile {
 public:
  /// Creates `directory` and in it a new `events.out.tfevents.…` file.
  /// \throws IoError
  explicit EventFile(const std::filesystem::path& directory);

  /// One event with scalars by tag.
  void add_scalars(int64_t step, const std::vector<std::pair<std::string, float>>& scalars);

  /// One event with a histogram, a picture, a text or, as Markdown, a table.
  void add_media(int64_t step, const Media& media);

  /// One event with a tensor of numbers.
  void add_tensor(int64_t step, const std::string& tag, const at::Tensor& tensor);

  /// What a run was started with, for TensorBoard's page of hyper-parameters: numbers, "true" and
  /// "false", and texts, by name.
  void add_hyperparameters(int64_t step,
                           const std::string& run,
                           const std::map<std::string, std::string>& values);

  /// The run came to its end.
  void add_end(int64_t step);

  /// The graph of a step.
  void add_graph(int64_t step, const std::vector<GraphNode>& nodes);

  /// Starts a session at `step`: readers drop what stands before it, in this file and in older ones
  /// of the directory, from that step on. Values of `step` itself are written again.
  /// \param is_kept  which of those are, by tag and by whether this file has them
  /// \throws IoError  when a file cannot be read
  void start_session(int64_t step,
                     const std::function<bool(const std::string& tag, bool is_own)>& is_kept);

  /// Goes on in a new file when what was added could not be written, on a full disk for instance.
  /// \throws IoError  then, once until something can be written again
  void flush();

  /// Events that could not be written, as far as flushes have found.
  int64_t lost() const { return lost_; }

  const std::filesystem::path& path() const { return path_; }

 private:
  void begin();
  void write_record(const std::string& payload);

  std::filesystem::path path_;
  std::ofstream out_;
  bool is_failing_ = false;
  int64_t unflushed_ = 0;  // events since the last flush
  int64_t lost_ = 0;
};

/// The event files of a directory, oldest first; none when there is no such directory.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& directory);

/// CRC-32C (Castagnoli) of `bytes`. Source: RFC 3720, appendix B.4.
uint32_t crc32c(const void* bytes, size_t size);

}  // namespace rondo
