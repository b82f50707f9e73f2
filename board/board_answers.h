#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "board/run_index.h"
#include "board/series.h"

namespace rondo {

/// Parameters of an address, decoded.
using BoardParameters = std::multimap<std::string, std::string>;

/// What the board answers to an address.
struct BoardAnswer {
  int status = 200;
  std::string type = "application/json";
  std::shared_ptr<const std::string> body;
};

/// Answers addresses of the board's interface (`docs/board.md`), without a network. Runs are those
/// of the index: an address names a run by its id, and a file by what the run's record or
/// directory lists. Safe to use from many threads.
class BoardAnswers {
 public:
  explicit BoardAnswers(RunIndex& index) : index_(index) {}

  /// The answer to a path such as "/api/runs"; 400 for wrong parameters, 404 for what there is not.
  BoardAnswer answer(const std::string& path, const BoardParameters& parameters);

 private:
  using Route = std::string (BoardAnswers::*)(const BoardParameters&);

  /// What is drawn of a metric, for one state of the record.
  struct CachedSeries {
    FileStamp stamp;
    std::string text;
  };

  std::string runs(const BoardParameters& parameters);
  std::string series(const BoardParameters& parameters);
  std::string run(const BoardParameters& parameters);
  std::string diff(const BoardParameters& parameters);
  BoardAnswer step(const BoardParameters& parameters);
  std::string log(const BoardParameters& parameters);
  std::string table(const BoardParameters& parameters);
  std::string alerts(const BoardParameters& parameters);
  BoardAnswer media(const BoardParameters& parameters);
  std::string prometheus() const;
  std::string one_series(const std::string& id, const std::string& metric, const SeriesView& view);

  RunIndex& index_;
  std::mutex mutex_;  // of the cache
  std::map<std::string, CachedSeries> cache_;
  size_t cached_bytes_ = 0;
};

/// The value of a parameter; "" when there is none.
std::string parameter_of(const BoardParameters& parameters, const char* name);

}  // namespace rondo
