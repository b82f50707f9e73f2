#include "distributed/internal/key_store.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/internal/c10d_store.h"
#include "distributed/internal/gave_up.h"
#include "distributed/launch_environment.h"

namespace rondo {

namespace {

c10d::TCPStoreOptions tcp_options(const LaunchEnvironment& environment,
                                  std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(environment.master_port);
  options.isServer = environment.rank == 0 && !environment.store_is_there;
  options.waitWorkers = false;
  options.timeout = timeout;
#if TORCH_VERSION_MAJOR >= 2
  options.useLibUV = false;  // LibTorch may be built without it
#endif
  return options;
}

[[noreturn]] void throw_server_lost(const std::exception& error) {
  throw PeerLostError(
      fmt::format("lost rank 0, where the ranks meet: {}", first_line_of(error.what())));
}

/// Calls of a store whose server is frozen do not return.
/// \return false when `work` goes on, or has thrown
bool do_in_time(std::chrono::milliseconds timeout, std::function<void()> work) {
  auto done = std::make_shared<std::promise<bool>>();
  std::future<bool> result = done->get_future();
  std::thread([done, work = std::move(work)] {
    try {
      work();
      done->set_value(true);
    } catch (...) {  // whoever serves it is gone
      done->set_value(false);
    }
  }).detach();
  return result.wait_for(timeout) == std::future_status::ready && result.get();
}

}  // namespace

KeyStore::KeyStore(const LaunchEnvironment& environment, std::chrono::milliseconds timeout) {
  try {
    store_ = std::make_shared<C10dStore>();
    store_->store = c10::make_intrusive<c10d::TCPStore>(environment.master_addr,
                                                        tcp_options(environment, timeout));
  } catch (const std::exception& error) {
    const bool serves = environment.rank == 0 && !environment.store_is_there;
    throw PeerLostError(
        fmt::format(serves ? "rank 0 cannot serve the other ranks at {}:{}: {}"
                           : "rank 0 cannot be reached at {}:{}; did it start there? {}",
                    environment.master_addr,
                    environment.master_port,
                    first_line_of(error.what())));
  }
}

KeyStore KeyStore::below(const std::string& prefix) const {
  auto store = std::make_shared<C10dStore>();
  store->store = c10::make_intrusive<c10d::PrefixStore>(prefix, store_->store);
  return KeyStore(std::move(store));
}

void KeyStore::set(const std::string& key, const std::string& value) const {
  try {
    store_->store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
  } catch (const std::exception& error) {
    throw_server_lost(error);
  }
}

// TCPStore's own wait leaves an answer behind when it gives up, which the next call would take for
// its own.
std::optional<std::string> KeyStore::get(const std::string& key,
                                         std::chrono::milliseconds timeout) const {
  constexpr std::chrono::milliseconds kLongest(50);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::chrono::milliseconds pause(1);
  try {
    while (!store_->store->check({key})) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return std::nullopt;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongest);
    }
    const std::vector<uint8_t> value = store_->store->get(key);
    return std::string(value.begin(), value.end());
  } catch (const std::exception& error) {
    throw_server_lost(error);
  }
}

std::optional<std::string> KeyStore::get_in_time(const std::string& key,
                                                 std::chrono::milliseconds timeout) const {
  auto found = std::make_shared<std::optional<std::string>>();
  const bool is_done = do_in_time(timeout + std::chrono::milliseconds(100),
                                  [=, store = *this] { *found = store.get(key, timeout); });
  return is_done ? *found : std::nullopt;
}

void KeyStore::set_in_time(const std::string& key,
                           const std::string& value,
                           std::chrono::milliseconds timeout) const {
  do_in_time(timeout, [=, store = *this] { store.set(key, value); });
}

}  // namespace rondo
