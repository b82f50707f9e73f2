#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "board/run_index.h"

namespace rondo {

struct BoardServerOptions {
  std::string host = "127.0.0.1";  ///< another one than this machine wants a token
  int port = 7007;                 ///< 0: any that is free
};

/// Serves the board's page and interface (`docs/board.md`) over HTTP. Reads runs, and changes
/// nothing.
class BoardServer {
 public:
  /// Takes the port.
  /// \throws UsageError  when the host is not this machine's, or the port is taken
  BoardServer(RunIndex& index, const BoardServerOptions& options);
  BoardServer(const BoardServer&) = delete;
  BoardServer& operator=(const BoardServer&) = delete;
  ~BoardServer();

  /// Where the page is, with the token where one is wanted.
  const std::string& url() const;

  /// Answers requests until `stop`.
  void serve();

  /// Ends `serve`, from another thread; also one that begins later.
  void stop();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rondo
