#include "distributed/communicator.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/connect.h"
#include "distributed/handshake.h"
#include "distributed/internal/gloo_link.h"
#include "distributed/same_bytes.h"
#include "ranks.h"

using rondo::Communicator;
using rondo::DistributedOptions;
using rondo::test::Ends;
using rondo::test::run_ranks;
using rondo::test::same_bytes;

namespace {

struct Row {
  const char* transport;
  int world_size;
};

std::vector<Row> rows() {
  std::vector<Row> rows = {{"shm", 2}, {"shm", 4}};
  if (rondo::has_gloo()) {
    rows.insert(rows.end(), {{"gloo", 2}, {"gloo", 4}});
  }
  return rows;
}

DistributedOptions with(const char* transport) {
  DistributedOptions options;
  options.transport = transport;
  options.timeout = "30sec";
  options.bucket_bytes = 1 << 16;  // large tensors take several pieces
  return options;
}

bool all_well(const Ends& ends) {
  for (const std::string& end : ends) {
    CHECK(end == "");
  }
  return ends == Ends(ends.size());
}

/// What each rank has, before it is summed.
std::vector<at::Tensor> parts_of(int world_size, at::ScalarType dtype, int64_t size) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < world_size; ++rank) {
    // Numbers of many sizes: the order of a sum shows in them.
    const at::Tensor numbers = at::arange(size, at::kDouble) + 0.37 * rank;
    const at::Tensor values = (numbers * 12.9898).sin().mul(43758.5453);
    parts.push_back(dtype == at::kBool ? values.gt(0.0) : values.to(dtype));
  }
  return parts;
}

}  // namespace

TEST_SUITE_BEGIN("distributed/communicator");

TEST_CASE("ranks sum to the bytes of the tree, whatever dtype, size and transport") {
  const at::ScalarType dtypes[] = {
      at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kBool};
  for (const Row& row : rows()) {
    CAPTURE(row.transport);
    CAPTURE(row.world_size);
    for (const int64_t size : {0, 1, 7, 5000, 200001}) {
      CAPTURE(size);
      std::vector<std::vector<at::Tensor>> sums(static_cast<size_t>(row.world_size));
      const Ends ends = run_ranks(row.world_size, with(row.transport), [&](Communicator& ranks) {
        const auto rank = static_cast<size_t>(ranks.rank());
        CHECK(std::string(ranks.transport()) == row.transport);
        for (const at::ScalarType dtype : dtypes) {
          at::Tensor values = parts_of(row.world_size, dtype, size)[rank];
          ranks.all_reduce(values);
          sums[rank].push_back(values);
        }
      });
      REQUIRE(all_well(ends));
      for (size_t i = 0; i < std::size(dtypes); ++i) {
        CAPTURE(i);
        std::vector<at::Tensor> parts = parts_of(row.world_size, dtypes[i], size);
        rondo::tree_sum(parts);
        for (const auto& of_rank : sums) {
          CHECK(same_bytes(of_rank[i], parts[0]));
        }
      }
    }
  }
}

TEST_CASE("a broadcast gives every rank the bytes of its root") {
  for (const Row& row : rows()) {
    CAPTURE(row.transport);
    const Ends ends = run_ranks(row.world_size, with(row.transport), [&](Communicator& ranks) {
      for (int root = 0; root < row.world_size; ++root) {
        for (const int64_t size : {1, 100000}) {
          at::Tensor values = torch::full({size}, static_cast<double>(ranks.rank()));
          ranks.broadcast(values, root);
          CHECK(same_bytes(values, torch::full({size}, static_cast<double>(root))));
        }
      }
    });
    CHECK(all_well(ends));
  }
}

TEST_CASE("texts of any length are gathered in rank order") {
  for (const Row& row : rows()) {
    CAPTURE(row.transport);
    const auto text_of = [](int rank) {
      return std::string(rank == 1 ? 0 : 100000 * static_cast<size_t>(rank), 'a') +
             std::to_string(rank);
    };
    const Ends ends = run_ranks(row.world_size, with(row.transport), [&](Communicator& ranks) {
      for (int i = 0; i < 3; ++i) {
        const std::vector<std::string> all = ranks.all_gather(text_of(ranks.rank()));
        REQUIRE(all.size() == static_cast<size_t>(row.world_size));
        for (int rank = 0; rank < row.world_size; ++rank) {
          CHECK(all[static_cast<size_t>(rank)] == text_of(rank));
        }
        ranks.barrier();
      }
    });
    CHECK(all_well(ends));
  }
}

TEST_CASE("ranks that do different things are told so, and no process dies") {
  for (const Row& row : rows()) {
    CAPTURE(row.transport);
    if (row.world_size != 2) {
      continue;
    }
    const Ends other_size = run_ranks(2, with(row.transport), [](Communicator& ranks) {
      at::Tensor values = torch::zeros({ranks.rank() == 0 ? 100000 : 99999});
      ranks.all_reduce(values);
    });
    const Ends other_call = run_ranks(2, with(row.transport), [](Communicator& ranks) {
      at::Tensor values = torch::zeros({2});
      if (ranks.rank() == 0) {
        ranks.all_reduce(values);
      } else {
        ranks.broadcast(values, 0);
      }
    });
    for (const std::string& end : other_size) {
      CAPTURE(end);
      CHECK(end.find("400000 bytes") != std::string::npos);
      CHECK(end.find("399996 bytes") != std::string::npos);
      CHECK(end.find("rank 0 is in") != std::string::npos);
    }
    for (const std::string& end : other_call) {
      CAPTURE(end);
      CHECK(end.find("rank 0 is in all_reduce") != std::string::npos);
      CHECK(end.find("rank 1 is in broadcast") != std::string::npos);
    }
  }
}

TEST_CASE("a rank that gives up ends the others, which name it and its cause") {
  for (const Row& row : rows()) {
    CAPTURE(row.transport);
    CAPTURE(row.world_size);
    const int last = row.world_size - 1;
    const Ends ends = run_ranks(row.world_size, with(row.transport), [&](Communicator& ranks) {
      ranks.barrier();
      if (ranks.rank() == last) {
        throw rondo::DataError("the disk is full");
      }
      ranks.barrier();
    });
    for (const std::string& end : ends) {
      CAPTURE(end);
      CHECK(end.find("the disk is full") != std::string::npos);
    }
    CHECK(ends[static_cast<size_t>(last) - 1].find("rank " + std::to_string(last)) !=
          std::string::npos);
  }
}

TEST_CASE("without space to share, gloo carries the sums, with a warning and the same bytes") {
  if (!rondo::has_gloo()) {
    return;
  }
  std::mutex mutex;
  std::string said;
  const rondo::TextLog log = rondo::TextLog::to([&](rondo::LogLevel, std::string_view message) {
    const std::lock_guard lock(mutex);
    said += message;
  });
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 1 << 16;
  const auto sum = [](Communicator& ranks) {
    CHECK(std::string(ranks.transport()) == "gloo");
    at::Tensor values = torch::full({3}, 1.0);
    ranks.all_reduce(values);
    CHECK(same_bytes(values, torch::full({3}, 2.0)));
  };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Ends ends = run_ranks(2, with("auto"), sum, log);
  const Ends insisting = run_ranks(2, with("shm"), sum, log);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(all_well(ends));
  CHECK(said.find("cannot reserve") != std::string::npos);
  CHECK(said.find("gloo") != std::string::npos);
  for (const std::string& end : insisting) {
    CAPTURE(end);
    CHECK(end.find("cannot share memory") != std::string::npos);
  }
}

TEST_CASE("C66: ranks that differ in a fact are named, with the line that differs") {
  const Ends ends = run_ranks(4, with("shm"), [](Communicator& ranks) {
    const bool differs = ranks.rank() == 1 || ranks.rank() == 3;
    require_same_facts(
        ranks,
        {{"the version", "1"},
         {"the configuration", differs ? "a = 1\nlr = 0.2\n" : "a = 1\nlr = 0.1\n"}});
  });
  for (const std::string& end : ends) {
    CAPTURE(end);
    CHECK(end.find("the configuration") != std::string::npos);
    CHECK(end.find("rank 1, 3 has \"lr = 0.2\"") != std::string::npos);
    CHECK(end.find("rank 0 has \"lr = 0.1\"") != std::string::npos);
  }
}

TEST_CASE("the number of ranks has to divide that of virtual ranks, a power of two") {
  for (const int world_size : {1, 2, 4}) {
    CHECK(rondo::problem_of_ranks(world_size, std::nullopt) == "");
    CHECK(rondo::problem_of_ranks(world_size, 4) == "");
  }
  CHECK(rondo::problem_of_ranks(8, 4).find("start 1, 2 or 4 of them") != std::string::npos);
  CHECK(rondo::problem_of_ranks(3, 4).find("start 1, 2 or 4 of them") != std::string::npos);
  CHECK(rondo::problem_of_ranks(3, std::nullopt).find("start 1, 2 or 4 of them") !=
        std::string::npos);
}

TEST_SUITE_END();
