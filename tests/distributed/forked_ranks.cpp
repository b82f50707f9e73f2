#include "forked_ranks.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/temp_dir.h"

namespace rondo::test {

namespace {

void send_all(int socket, const void* bytes, size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(socket, next, size, MSG_NOSIGNAL);
    if (sent <= 0) {
      throw PeerLostError("a rank is gone");
    }
    next += sent;
    size -= static_cast<size_t>(sent);
  }
}

void receive_all(int socket, void* bytes, size_t size) {
  char* next = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::recv(socket, next, size, 0);
    if (got <= 0) {
      throw PeerLostError("a rank is gone");
    }
    next += got;
    size -= static_cast<size_t>(got);
  }
}

void send_text(int socket, const std::string& text) {
  const uint64_t size = text.size();
  send_all(socket, &size, sizeof size);
  send_all(socket, text.data(), text.size());
}

std::string receive_text(int socket) {
  uint64_t size = 0;
  receive_all(socket, &size, sizeof size);
  std::string text(size, '\0');
  receive_all(socket, text.data(), text.size());
  return text;
}

/// Without tensors of other processes, which have no bytes here.
StateDict own_part(const StateDict& state) {
  StateDict own;
  for (const StateDict::Item& item : state.items()) {
    if (item.second.is_dict()) {
      own.set(item.first, own_part(item.second.as_dict()));
    } else if (!item.second.is_tensor() || !item.second.as_tensor().is_meta()) {
      own.set(item.first, item.second);
    }
  }
  return own;
}

/// Through the first rank, which adds.
class StarOfSockets final : public Communicator {
 public:
  /// \param sockets  of rank 0: to each other rank; of another rank: to rank 0
  StarOfSockets(int rank, int ranks, std::vector<int> sockets)
      : rank_(rank), ranks_(ranks), sockets_(std::move(sockets)) {}

  int rank() const override { return rank_; }

  int world_size() const override { return ranks_; }

  const char* transport() const override { return "sockets"; }

  void all_reduce(at::Tensor& values) override {
    if (rank_ != 0) {
      send_all(sockets_[0], values.data_ptr(), values.nbytes());
      receive_all(sockets_[0], values.data_ptr(), values.nbytes());
      return;
    }
    std::vector<at::Tensor> parts{values};
    for (const int socket : sockets_) {
      parts.push_back(values.clone());
      receive_all(socket, parts.back().data_ptr(), parts.back().nbytes());
    }
    tree_sum(parts);
    broadcast(values, 0);
  }

  void broadcast(at::Tensor& values, int root) override {
    if (rank_ == root && rank_ != 0) {
      send_all(sockets_[0], values.data_ptr(), values.nbytes());
    } else if (rank_ == 0 && root != 0) {
      receive_all(sockets_[static_cast<size_t>(root) - 1], values.data_ptr(), values.nbytes());
    }
    for (const int socket : sockets_) {
      if (rank_ == 0) {
        send_all(socket, values.data_ptr(), values.nbytes());
      } else {
        receive_all(socket, values.data_ptr(), values.nbytes());
      }
    }
  }

  std::vector<std::string> all_gather(const std::string& bytes) override {
    std::vector<std::string> all;
    if (rank_ != 0) {
      send_text(sockets_[0], bytes);
      for (int i = 0; i < ranks_; ++i) {
        all.push_back(receive_text(sockets_[0]));
      }
      return all;
    }
    all.push_back(bytes);
    for (const int socket : sockets_) {
      all.push_back(receive_text(socket));
    }
    for (const int socket : sockets_) {
      for (const std::string& part : all) {
        send_text(socket, part);
      }
    }
    return all;
  }

  void barrier() override { all_gather(""); }

  void give_up(const std::string&) noexcept override {}

 private:
  int rank_;
  int ranks_;
  std::vector<int> sockets_;
};

[[noreturn]] void run_child(const RankWork& work,
                            std::shared_ptr<Communicator> communicator,
                            const std::filesystem::path& file) {
  StateDict result;
  try {
    result = work(communicator);
  } catch (const std::exception& error) {
    result = StateDict{{"error", describe(std::current_exception())}};
  }
  write_checkpoint(*real_file_system(), file, own_part(result));
  ::_exit(0);
}

}  // namespace

std::vector<StateDict> on_processes(int processes, const RankWork& work) {
  const TempDir directory;
  std::vector<std::array<int, 2>> pairs(static_cast<size_t>(processes));
  for (size_t rank = 1; rank < pairs.size(); ++rank) {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[rank].data()) != 0) {
      throw std::runtime_error("socketpair failed");
    }
  }
  const auto file_of = [&](size_t rank) {
    return directory.path() / ("rank" + std::to_string(rank) + ".pt");
  };
  std::vector<pid_t> children;
  for (size_t rank = 0; rank < pairs.size(); ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) {
      std::vector<int> own;
      for (size_t other = 1; other < pairs.size(); ++other) {
        ::close(pairs[other][rank == 0 ? 1 : 0]);
        if (rank == 0) {
          own.push_back(pairs[other][0]);
        } else if (rank == other) {
          own.push_back(pairs[other][1]);
        } else {
          ::close(pairs[other][1]);
        }
      }
      run_child(work,
                std::make_shared<StarOfSockets>(static_cast<int>(rank), processes, std::move(own)),
                file_of(rank));
    }
  }
  for (size_t rank = 1; rank < pairs.size(); ++rank) {
    ::close(pairs[rank][0]);
    ::close(pairs[rank][1]);
  }
  std::vector<StateDict> results;
  for (size_t rank = 0; rank < pairs.size(); ++rank) {
    int status = 0;
    ::waitpid(children[rank], &status, 0);
    results.push_back(std::filesystem::exists(file_of(rank))
                          ? read_checkpoint(file_of(rank))
                          : StateDict{{"error", "died of " + std::to_string(status)}});
  }
  return results;
}

}  // namespace rondo::test
