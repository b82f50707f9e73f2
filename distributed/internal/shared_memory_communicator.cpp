#include "distributed/internal/shared_memory_communicator.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <utility>

namespace rondo {

namespace {

constexpr size_t kLine = 64;             // of the cache; ranks write into lines of their own
constexpr size_t kCause = 1024;          // bytes of a message
constexpr int kSpins = 2000;             // about 10 us: below, a rank that sleeps comes too late
constexpr int64_t kSumWhole = 16 << 10;  // bytes that each rank adds faster than it waits once more
constexpr std::chrono::milliseconds kGlance(50);  // between two looks at the other processes

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// glibc has no function for it, and ranks are other processes: no FUTEX_PRIVATE_FLAG.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  const timespec longest = {0, std::chrono::nanoseconds(kGlance).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &longest, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// "stopped", "running" … of a process, as far as the system says.
std::string state_of(int32_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("State:", 0) == 0) {
      const size_t open = line.find('(');
      return open == std::string::npos ? line : line.substr(open + 1, line.find(')') - open - 1);
    }
  }
  return "gone";
}

}  // namespace

struct SharedRank {
  alignas(kLine) std::atomic<uint32_t> meetings{0};  // that this rank has come to
  std::atomic<uint32_t> sleepers{0};                 // ranks that sleep until it comes
  std::atomic<int32_t> process{0};
  std::atomic<uint32_t> has_given_up{0};
  CollectiveCall calls[2];  // the newest two: a slow rank may still read the one before
  uint64_t text_bytes[2] = {0, 0};
  char cause[kCause] = {};
};

static_assert(std::atomic<uint32_t>::is_always_lock_free);

size_t SharedMemoryCommunicator::bytes_for(int world_size, size_t block_bytes) {
  return static_cast<size_t>(world_size) * (sizeof(SharedRank) + 2 * block_bytes);
}

SharedMemoryCommunicator::SharedMemoryCommunicator(SharedPlace place, SharedMemory memory)
    : place_(place), memory_(std::move(memory)) {
  // Fresh memory is zero, which is what all members begin with, so ranks need no order here.
  shared(place_.rank).process = static_cast<int32_t>(::getpid());
  meet();
  for (int rank = 0; rank < place_.world_size; ++rank) {
    const int32_t process = shared(rank).process;
    processes_.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  }
  barrier();
}

SharedMemoryCommunicator::~SharedMemoryCommunicator() = default;

SharedRank& SharedMemoryCommunicator::shared(int rank) const {
  return *std::launder(reinterpret_cast<SharedRank*>(memory_.data()) + rank);
}

char* SharedMemoryCommunicator::block(int rank) const {
  const size_t set = is_second_ ? 1 : 0;
  const size_t place = set * static_cast<size_t>(place_.world_size) + static_cast<size_t>(rank);
  return memory_.data() + static_cast<size_t>(place_.world_size) * sizeof(SharedRank) +
         place * place_.block_bytes;
}

void SharedMemoryCommunicator::begin(const CollectiveCall& call) {
  call_ = call;
  call_.number = ++calls_;
  shared(place_.rank).calls[calls_ % 2] = call_;
  is_call_new_ = true;
}

/// Returns when every rank has come. What it wrote before, the others read afterwards. The sets of
/// blocks take turns: who has come to a meeting no longer reads the set of the one before.
void SharedMemoryCommunicator::meet() {
  SharedRank& own = shared(place_.rank);
  const uint32_t meeting = ++meetings_;
  own.meetings.store(meeting);
  if (own.sleepers.load() > 0) {
    wake_all(own.meetings);
  }
  for (int rank = 0; rank < place_.world_size; ++rank) {
    if (rank != place_.rank) {
      wait_for(rank, meeting);
    }
  }
  if (is_call_new_) {
    is_call_new_ = false;
    for (int rank = 0; rank < place_.world_size; ++rank) {
      require_same_call(place_.rank, call_, rank, shared(rank).calls[calls_ % 2]);
    }
  }
}

void SharedMemoryCommunicator::wait_for(int rank, uint32_t meeting) {
  SharedRank& other = shared(rank);
  const auto has_come = [&] { return static_cast<int32_t>(other.meetings.load() - meeting) >= 0; };
  for (int spin = 0; spin < kSpins; ++spin) {
    if (has_come()) {
      return;
    }
    pause_briefly();
  }
  const auto deadline = std::chrono::steady_clock::now() + place_.timeout;
  while (!has_come()) {
    require_alive(rank, deadline);
    other.sleepers.fetch_add(1);
    const uint32_t seen = other.meetings.load();
    if (static_cast<int32_t>(seen - meeting) < 0) {
      sleep_while(other.meetings, seen);
    }
    other.sleepers.fetch_sub(1);
  }
}

void SharedMemoryCommunicator::require_alive(int waited_for,
                                             std::chrono::steady_clock::time_point deadline) {
  for (int rank = 0; rank < place_.world_size; ++rank) {
    if (rank != place_.rank && shared(rank).has_given_up.load() != 0) {
      lose(rank, std::string("it gave up: ") + shared(rank).cause);
    }
  }
  // A rank that came to the meeting may have ended after it.
  const bool is_known = static_cast<size_t>(waited_for) < processes_.size();
  const int process = is_known ? processes_[static_cast<size_t>(waited_for)].get() : -1;
  pollfd ended = {process, POLLIN, 0};
  if (process >= 0 && ::poll(&ended, 1, 0) == 1) {
    // Between the look at its meetings and this one, it may have come to its last.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (static_cast<int32_t>(shared(waited_for).meetings.load() - meetings_) < 0) {
      lose(waited_for, fmt::format("its process {} is gone", shared(waited_for).process.load()));
    }
  }
  if (std::chrono::steady_clock::now() >= deadline) {
    const int32_t number = shared(waited_for).process;
    lose(waited_for,
         number == 0 ? fmt::format("it did not start within {} s", place_.timeout.count() / 1000)
                     : fmt::format("it did not come to {} within {} s; its process {} is {}",
                                   to_string(call_),
                                   place_.timeout.count() / 1000,
                                   number,
                                   state_of(number)));
  }
}

void SharedMemoryCommunicator::lose(int rank, const std::string& cause) {
  const std::string message = fmt::format("rank {} lost rank {}: {}", place_.rank, rank, cause);
  give_up(message);
  throw PeerLostError(message);
}

void SharedMemoryCommunicator::give_up(const std::string& cause) noexcept {
  SharedRank& own = shared(place_.rank);
  if (own.has_given_up.load() != 0) {
    return;
  }
  const size_t length = std::min(cause.size(), kCause - 1);
  std::memcpy(own.cause, cause.data(), length);
  own.cause[length] = '\0';
  own.has_given_up.store(1);
  wake_all(own.meetings);
}

std::vector<at::Tensor> SharedMemoryCommunicator::parts_of(int64_t begin,
                                                           int64_t end,
                                                           at::ScalarType dtype) const {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < place_.world_size; ++rank) {
    char* const first = block(rank) + static_cast<size_t>(begin) * c10::elementSize(dtype);
    parts.push_back(at::from_blob(first, {end - begin}, dtype));
  }
  return parts;
}

/// Each rank adds everything, which is one meeting less.
void SharedMemoryCommunicator::sum_whole(char* values, int64_t count, at::ScalarType dtype) {
  meet();
  std::vector<at::Tensor> parts = parts_of(0, count, dtype);
  for (at::Tensor& part : parts) {
    part = part.clone();
  }
  tree_sum(parts);
  if (count > 0) {
    std::memcpy(values, parts[0].data_ptr(), parts[0].nbytes());
  }
}

/// Each rank adds its slice, then all of them are read.
void SharedMemoryCommunicator::sum_slices(char* values, int64_t count, at::ScalarType dtype) {
  meet();
  const auto in_line = static_cast<int64_t>(kLine / c10::elementSize(dtype));
  const int64_t lines = (count + in_line - 1) / in_line;
  const int64_t slice = (lines + place_.world_size - 1) / place_.world_size * in_line;
  const int64_t begin = std::min(count, slice * place_.rank);
  std::vector<at::Tensor> parts = parts_of(begin, std::min(count, begin + slice), dtype);
  tree_sum(parts);
  meet();
  std::memcpy(values, block(0), static_cast<size_t>(count) * c10::elementSize(dtype));
}

void SharedMemoryCommunicator::all_reduce(at::Tensor& values) {
  require_plain(values, "all_reduce");
  CollectiveCall call;
  call.collective = Collective::AllReduce;
  call.detail = static_cast<int32_t>(values.scalar_type());
  call.bytes = values.nbytes();
  begin(call);
  const size_t size = values.element_size();
  const auto most = static_cast<int64_t>(place_.block_bytes / size);
  char* const data = static_cast<char*>(values.data_ptr());
  int64_t at = 0;
  do {
    const int64_t count = std::min(most, values.numel() - at);
    char* const piece = data + static_cast<size_t>(at) * size;
    const size_t bytes = static_cast<size_t>(count) * size;
    if (bytes > 0) {
      std::memcpy(block(place_.rank), piece, bytes);
    }
    if (static_cast<int64_t>(bytes) <= kSumWhole) {
      sum_whole(piece, count, values.scalar_type());
    } else {
      sum_slices(piece, count, values.scalar_type());
    }
    is_second_ = !is_second_;
    at += count;
  } while (at < values.numel());
}

void SharedMemoryCommunicator::broadcast(at::Tensor& values, int root) {
  require_plain(values, "broadcast");
  CollectiveCall call;
  call.collective = Collective::Broadcast;
  call.detail = root;
  call.bytes = values.nbytes();
  begin(call);
  char* const data = static_cast<char*>(values.data_ptr());
  size_t at = 0;
  do {
    const size_t bytes = std::min(place_.block_bytes, values.nbytes() - at);
    if (place_.rank == root && bytes > 0) {
      std::memcpy(block(root), data + at, bytes);
    }
    meet();
    if (place_.rank != root && bytes > 0) {
      std::memcpy(data + at, block(root), bytes);
    }
    is_second_ = !is_second_;
    at += bytes;
  } while (at < values.nbytes());
}

std::vector<std::string> SharedMemoryCommunicator::all_gather(const std::string& bytes) {
  CollectiveCall call;
  call.collective = Collective::AllGather;
  begin(call);
  const size_t turn = calls_ % 2;
  shared(place_.rank).text_bytes[turn] = bytes.size();
  meet();
  std::vector<std::string> texts(static_cast<size_t>(place_.world_size));
  size_t longest = 0;
  for (int rank = 0; rank < place_.world_size; ++rank) {
    const size_t size = shared(rank).text_bytes[turn];
    texts[static_cast<size_t>(rank)].resize(size);
    longest = std::max(longest, size);
  }
  for (size_t at = 0; at < longest; at += place_.block_bytes) {
    const auto piece_of = [&](const std::string& text) {
      return at < text.size() ? std::min(place_.block_bytes, text.size() - at) : size_t{0};
    };
    std::memcpy(block(place_.rank), bytes.data() + std::min(at, bytes.size()), piece_of(bytes));
    meet();
    for (int rank = 0; rank < place_.world_size; ++rank) {
      std::string& text = texts[static_cast<size_t>(rank)];
      std::memcpy(text.data() + std::min(at, text.size()), block(rank), piece_of(text));
    }
    is_second_ = !is_second_;
  }
  return texts;
}

void SharedMemoryCommunicator::barrier() {
  begin(CollectiveCall{});
  meet();
}

}  // namespace rondo
