#include "trainer/distributed_keys.h"

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/distributed_options.h"
#include "trainer/trainer_options.h"

namespace rondo {

namespace {

struct VirtualRanksOption {
  static std::string name() { return "a power of two"; }

  static std::optional<std::optional<int64_t>> read(const ConfigValue& value, FaultSink& faults) {
    const int64_t* const ranks = value.get_if<int64_t>();
    if (ranks == nullptr || *ranks < 1 || (*ranks & (*ranks - 1)) != 0) {
      detail::mismatch(value, name(), faults);
      return std::nullopt;
    }
    return std::optional(*ranks);
  }

  static ConfigValue write(const std::optional<int64_t>& ranks) {
    return OptionType<std::optional<int64_t>>::write(ranks);
  }
};

struct TimeoutOption {
  static std::string name() { return "a time such as \"300s\""; }

  static std::optional<Time> read(const ConfigValue& value, FaultSink& faults) {
    if (const std::optional<Time> seconds = plain_seconds(value)) {
      return seconds;
    }
    const std::optional<Time> time = detail::read_time(value, faults);
    if (time && (time->unit() != TimeUnit::Second || time->value() < 1.0)) {
      return detail::mismatch(value, name(), faults);
    }
    return time;
  }

  static ConfigValue write(const Time& time) { return OptionType<Time>::write(time); }

 private:
  /// "300s", which is no time of a run: there, 60 s are written "1m".
  static std::optional<Time> plain_seconds(const ConfigValue& value) {
    const std::string* const text = value.get_if<std::string>();
    int64_t seconds = 0;
    if (text == nullptr) {
      return std::nullopt;
    }
    const char* const end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, seconds);
    const bool is_meant = error == std::errc() && std::string_view(rest) == "s" && seconds >= 1;
    return is_meant ? std::optional(Time::in(TimeUnit::Second, seconds)) : std::nullopt;
  }
};

/// "last" and PyTorch Lightning's and Composer's words for it.
struct SyncOption {
  static std::string name() { return "\"last\""; }

  static std::optional<std::string> read(const ConfigValue& value, FaultSink& faults) {
    const std::string* const word = value.get_if<std::string>();
    if (word != nullptr &&
        (*word == "last" || *word == "single_auto_sync" || *word == "multi_auto_sync")) {
      return "last";
    }
    if (word != nullptr && *word == "forced_sync") {
      faults.add(value.position(),
                 "\"forced_sync\" sums gradients at every batch of an update, which costs time and "
                 "changes nothing: use \"last\"");
      return std::nullopt;
    }
    return detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::string& sync) { return ConfigValue(sync); }
};

KeyTable<DistributedOptions> keys_of_distributed() {
  KeyTable<DistributedOptions> keys;
  keys.key_of("virtual_ranks",
              &DistributedOptions::virtual_ranks,
              VirtualRanksOption{},
              "parts that every update is cut into, so that its bits do not depend on the number "
              "of ranks; absent: the number of ranks at the first start")
      .key("transport",
           &DistributedOptions::transport,
           one_of({"auto", "shm", "gloo"}),
           "what carries sums between ranks: shared memory, the network, or shared memory where "
           "all ranks have it")
      .key_of("timeout",
              &DistributedOptions::timeout,
              TimeoutOption{},
              "how long a rank waits for the others")
      .key("bucket_bytes",
           &DistributedOptions::bucket_bytes,
           between(4096, 1 << 30),
           "size of the pieces in which gradients go through shared memory")
      .key_of("sync",
              &DistributedOptions::sync,
              SyncOption{},
              "when ranks sum their gradients: at the last batch of an update")
      .key("shard_optimizer",
           &DistributedOptions::shard_optimizer,
           "true: each rank keeps the optimizer's state of some parameters only, and updates these "
           "for all; bits stay the same")
      .key("batch_size",
           &DistributedOptions::batch_size,
           one_of({"global", "per_rank"}),
           "whether a loader's batch_size counts the samples of all ranks or of one");
  return keys;
}

/// Composer's names of keys, and rondo's.
const std::pair<const char*, const char*> kAliases[] = {{"dist_timeout", "timeout"},
                                                        {"ddp_sync_strategy", "sync"}};

ConfigTable without_aliases(const ConfigTable& table, FaultSink& faults) {
  ConfigTable own = table;
  for (const auto& [alias, name] : kAliases) {
    const ConfigEntry* const given = table.find_entry(alias);
    if (given == nullptr) {
      continue;
    }
    if (table.find(name) != nullptr) {
      faults.add(
          given->key_position,
          std::string("\"") + alias + "\" is another name of \"" + name + "\": give one of them");
    } else {
      own.set(name, given->value, given->key_position);
    }
    own.erase(alias);
  }
  return own;
}

}  // namespace

OptionKey distributed_key() {
  const auto keys = std::make_shared<const KeyTable<DistributedOptions>>(keys_of_distributed());
  OptionKey key;
  key.name = "distributed";
  key.type = "a table";
  key.doc = "how several processes share a run; absent: one process, or what `rondo launch` starts";
  key.nested = keys->keys();
  key.read = [keys](const ConfigValue& value, void* options, FaultSink& faults) {
    const auto* table = value.get_if<ConfigTable>();
    if (table == nullptr) {
      return detail::add_mismatch(value, "a table", "", faults);
    }
    auto& distributed = static_cast<TrainerOptions*>(options)->distributed;
    distributed.emplace();
    keys->read(without_aliases(*table, faults), value.position(), &*distributed, faults);
  };
  key.write = [keys](const void* options) {
    const auto& distributed = static_cast<const TrainerOptions*>(options)->distributed;
    return distributed ? ConfigValue(keys->write(&*distributed)) : ConfigValue();
  };
  return key;
}

}  // namespace rondo
