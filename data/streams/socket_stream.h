#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"

namespace rondo {

/// Samples that another process sends over a Unix socket, in the format of docs/data.md. rondo
/// listens, the producer connects; it is asked for each pass by its epoch, and a resumed run reads
/// over what it saw before.
class SocketStream final : public IterableDataset {
 public:
  struct Options {
    std::string path = {};                        ///< of the socket; one that is there is replaced
    double timeout = 60.0;                        ///< seconds that it waits for the producer, > 0
    int64_t max_sample_bytes = int64_t{1} << 28;  ///< of one sample; more is refused
    std::optional<int64_t> epoch_samples = {};    ///< of a pass, where it is known before
  };

  /// Listens. \throws IoError  when it cannot
  explicit SocketStream(const Options& options);
  ~SocketStream() override;

  /// \throws UsageError  for options that are out of range
  static void check(const Options& options);

  void start(int64_t epoch) override;

  /// \throws DataError  naming socket and offset in the stream: another format, a sample that is
  ///                    too large, a producer that is gone, or that sends nothing for `timeout`
  std::optional<Sample> next() override;

  std::optional<int64_t> size() const override { return options_.epoch_samples; }

 private:
  class Connection;

  Options options_;
  int listening_ = -1;
  std::unique_ptr<Connection> connection_;
};

}  // namespace rondo
