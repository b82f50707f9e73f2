#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo {

/// What became of a run. `Crashed`: its process is gone and wrote no end.
enum class RunStatus { Running, Done, Stopped, Failed, Crashed };

/// "running", "done", …
const char* to_string(RunStatus status);

/// A number that was logged.
struct RecordPoint {
  int64_t step = 0;   ///< the update that it belongs to
  double time = 0.0;  ///< seconds since 1970
  double value = 0.0;
};

/// How much of the training data a run had seen after an update; 0: not recorded.
struct RecordPosition {
  int64_t step = 0;
  double epoch = 0.0;  ///< passes over the data, with the part of the current one where known
  double samples = 0.0;
  double tokens = 0.0;
};

/// A checkpoint that was written.
struct RecordSave {
  int64_t step = 0;
  double time = 0.0;
  std::string path;  ///< as the run wrote it: relative to the run's directory when it lies there
};

/// Something that the user was told at once.
struct RecordAlert {
  int64_t step = 0;
  double time = 0.0;
  std::string level;  ///< "warn" or "error"
  std::string text;
};

/// A validation that came to its end; its values are metrics of this step whose names begin with
/// the label.
struct RecordValidation {
  int64_t step = 0;
  double time = 0.0;
  std::string label;
};

/// A histogram, picture, text or table.
struct RecordMedia {
  int64_t step = 0;
  double time = 0.0;
  std::string kind;  ///< "histogram", "image", "text" or "table"
  std::string name;
  std::string file;  ///< below the run's directory; "" when the line itself holds it
  int64_t line = 0;  ///< the byte of the record at which its line begins
};

/// What a run wrote into its `record.jsonl`: `docs/record_format.md` describes the lines. Of lines
/// that a later session repeats only the later ones are here.
struct RunRecord {
  std::filesystem::path directory;  ///< of the run
  std::string name;
  int64_t format = 1;              ///< of the record, the latest that a session has
  std::string version;             ///< of the rondo that wrote the newest session
  double begin = 0.0;              ///< time of the first session
  double end = 0.0;                ///< of the newest line
  int64_t step = 0;                ///< the newest update that a line belongs to
  std::optional<int64_t> updates;  ///< of the whole run, where known at its start
  int sessions = 0;                ///< how often it was started
  RunStatus status = RunStatus::Crashed;
  std::string reason;                         ///< of a stop, or the error that ended the run
  std::string config_text;                    ///< the resolved config, TOML
  std::map<std::string, std::string> config;  ///< its values by key path
  std::map<std::string, std::vector<RecordPoint>> metrics;  ///< by update
  std::map<std::string, bool> higher_is_better;             ///< of metrics that say so
  std::vector<RecordPosition> positions;                    ///< by update
  std::vector<RecordSave> saves;
  std::vector<RecordValidation> validations;
  std::vector<RecordAlert> alerts;
  std::vector<RecordMedia> media;
  int64_t process = 0;  ///< of the newest session; 0: not known
  std::string host;     ///< where it ran
  int64_t damaged_lines = 0;
  int64_t damaged_line = 0;  ///< number of the first of them, from 1

  /// The best value of a metric that says which direction is better; null for others.
  const RecordPoint* best(const std::string& metric) const;
};

inline constexpr const char* kRecordFile = "record.jsonl";

/// What this rondo writes and reads. Of a later one lines and keys can mean something else.
inline constexpr int64_t kRecordFormat = 1;

/// Reads the record of a run.
/// \param path  the run's directory, or the file
/// \throws DataError  when there is no record, or it cannot be read. Lines that are damaged are
///                    counted; a last one without its end and lines of unknown kinds are passed
///                    over
RunRecord read_record(const std::filesystem::path& path);

/// Whether a process holds the record; on a file system without locks, whether it wrote within the
/// last minute.
bool has_writer(const std::filesystem::path& file);

/// As `read_record`, of a long record only lines within `most_bytes` of its beginning and of its
/// end: results and lists lack what lies between.
/// \return the record, and whether it is whole
std::pair<RunRecord, bool> glance_at_record(const std::filesystem::path& path, size_t most_bytes);

/// The line of a record that begins at a byte, such as `RecordMedia::line`.
/// \throws DataError  when there is none, or it is longer than 64 KiB
std::string record_line(const std::filesystem::path& path, int64_t begin);

/// Reads the record of a run, and later what was added to it.
class RecordFollower {
 public:
  /// \throws DataError  as `read_record`
  explicit RecordFollower(const std::filesystem::path& path);

  /// Reads the lines that were added; a file that was replaced or cut, from its beginning.
  /// \throws DataError  when it cannot be read
  void read();

  const RunRecord& run() const { return run_; }

 private:
  void start_again(uint64_t inode);

  std::filesystem::path file_;
  RunRecord run_;
  RunStatus recorded_ = RunStatus::Crashed;  // what its lines say
  int64_t offset_ = 0;                       // up to which lines were read
  int64_t lines_ = 0;
  uint64_t inode_ = 0;
};

/// Directories of runs below `root` and `root` itself, at most four folders deep, in order. Does
/// not look into runs, links and folders that begin with a dot.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& root);

}  // namespace rondo
