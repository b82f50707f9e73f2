#include "trainer/distributed_keys.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "configs/toml_file.h"
#include "trainer/trainer_options.h"

using rondo::DistributedOptions;

namespace {

struct Answer {
  std::optional<DistributedOptions> options;
  std::string faults;
  rondo::ConfigValue written;
};

Answer read_keys(const std::string& text) {
  const rondo::ConfigValue root = rondo::parse_toml(text, "run.toml");
  rondo::TrainerOptions options;
  std::vector<rondo::Fault> faults;
  rondo::FaultSink sink("", faults);
  const rondo::OptionKey key = rondo::distributed_key();
  if (const auto* value = root.get_if<rondo::ConfigTable>()->find("distributed")) {
    key.read(*value, &options, sink);
  }
  Answer answer{options.distributed, "", key.write(&options)};
  for (const rondo::Fault& fault : faults) {
    answer.faults += to_string(fault) + "\n";
  }
  return answer;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/distributed_keys");

TEST_CASE("a run without the table is one process, and is written without it") {
  const Answer answer = read_keys("");
  CHECK_FALSE(answer.options);
  CHECK(answer.written.get_if<rondo::ConfigTable>() == nullptr);
}

TEST_CASE("an empty table asks for ranks, with every default") {
  const Answer answer = read_keys("[distributed]");
  REQUIRE(answer.options);
  CHECK_FALSE(answer.options->virtual_ranks);
  CHECK(answer.options->transport == "auto");
  CHECK(answer.options->timeout.value() == 300.0);
  CHECK(answer.options->batch_size == "global");
  REQUIRE(answer.written.get_if<rondo::ConfigTable>() != nullptr);
}

TEST_CASE("every key is read, by its other name too") {
  const Answer answer = read_keys(R"([distributed]
virtual_ranks = 4
transport = "gloo"
dist_timeout = "90s"
bucket_bytes = 65536
ddp_sync_strategy = "multi_auto_sync"
batch_size = "per_rank")");
  CHECK(answer.faults == "");
  REQUIRE(answer.options);
  CHECK(answer.options->virtual_ranks == 4);
  CHECK(answer.options->transport == "gloo");
  CHECK(answer.options->timeout.value() == 90.0);
  CHECK(answer.options->bucket_bytes == 65536);
  CHECK(answer.options->sync == "last");
  CHECK(answer.options->batch_size == "per_rank");
  CHECK(read_keys("distributed = { timeout = \"1h30m\" }").options->timeout.value() == 5400.0);
}

TEST_CASE("what cannot be is a fault that says why") {
  struct Row {
    const char* text;
    const char* named;
  };

  const Row rows[] = {
      {"distributed = 2", "a table"},
      {"distributed = { virtual_ranks = 3 }", "a power of two"},
      {"distributed = { virtual_ranks = 0 }", "a power of two"},
      {"distributed = { transport = \"mpi\" }", "shm"},
      {"distributed = { timeout = \"10ep\" }", "300s"},
      {"distributed = { timeout = \"0s\" }", "300s"},
      {"distributed = { bucket_bytes = 100 }", "4096"},
      {"distributed = { sync = \"forced_sync\" }", "changes nothing"},
      {"distributed = { timeout = \"5m\", dist_timeout = \"5m\" }", "another name"},
      {"distributed = { virtual_rank = 2 }", "virtual_ranks"},
  };
  for (const Row& row : rows) {
    const Answer answer = read_keys(row.text);
    CAPTURE(row.text);
    CAPTURE(answer.faults);
    CHECK(answer.faults.find(row.named) != std::string::npos);
  }
}

TEST_SUITE_END();
