#include "checkpoint/checkpoint_name.h"

#include <doctest/doctest.h>

#include <fstream>
#include <optional>
#include <string>

#include "core/error.h"
#include "support/temp_dir.h"

using namespace rondo;
using rondo::test::TempDir;

TEST_SUITE_BEGIN("checkpoint/checkpoint_name");

namespace {

/// 2024-05-06 07:08:09 UTC.
const auto kSomeTime = std::chrono::system_clock::from_time_t(1714979289);

CheckpointNameValues values_at(int64_t step) {
  CheckpointNameValues values;
  values.time.update = step;
  values.now = kSomeTime;
  return values;
}

std::string usage_error(const std::string& pattern) {
  try {
    CheckpointName name(pattern);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// "step", "step suffix" or "none".
std::string matched(const std::string& pattern, const std::string& name) {
  const auto step = CheckpointName(pattern).match(name);
  return step ? std::to_string(step->step) + (step->suffix.empty() ? "" : " " + step->suffix)
              : "none";
}

}  // namespace

TEST_CASE("every field is filled in") {
  CheckpointNameValues values = values_at(12);
  values.time.epoch = 3;
  values.time.batch = 48;
  values.time.sample = 1536;
  values.rank = 2;
  values.run_name = "glyphs";
  values.world_size = 8;
  values.local_rank = 1;
  values.node_rank = 3;
  CHECK(CheckpointName("w{world_size}-l{local_rank}-n{node_rank}-{step}.pt").format(values) ==
        "w8-l1-n3-12.pt");
  const CheckpointName name(
      "{run_name}-e{epoch}-s{step}-b{batch}-n{sample}-r{rank}-{date}_{time}.pt");
  CHECK(name.format(values) == "glyphs-e3-s12-b48-n1536-r2-20240506_070809.pt");
  CHECK(name.match(name.format(values))->step == 12);
  CHECK(CheckpointName().format(values) == "checkpoint_12.pt");
  values.time.batch_in_epoch = 8;
  values.time.sample_in_epoch = 256;
  values.time.token = 98304;
  values.time.token_in_epoch = 16384;
  values.time.total_seconds = 61.25;
  values.time.epoch_seconds = 10.0004;
  values.time.batch_seconds = 0.25;
  const CheckpointName times(
      "s{step}-b{batch_in_epoch}-n{sample_in_epoch}-t{token}-e{token_in_epoch}-"
      "{total_wct}-{epoch_wct}-{batch_wct}.pt");
  CHECK(times.format(values) == "s12-b8-n256-t98304-e16384-61.250-10.000-0.250.pt");
  CHECK(times.match(times.format(values))->step == 12);
  CHECK(times.match(times.format_with_suffix(values))->suffix == "20240506_070809");
}

TEST_CASE("T101: a template without {step}, or with another field, is a usage error") {
  CHECK(usage_error("checkpoint.pt").find("{step}") != std::string::npos);
  CHECK(usage_error("").find("{step}") != std::string::npos);
  CHECK(usage_error("checkpoint_{steps}.pt").find("\"step\"") != std::string::npos);
  CHECK(usage_error("{step}_{loss}.pt").find("{loss}") != std::string::npos);
  for (const char* bad : {"{step",
                          "step}",
                          "{{step}}",
                          "{step}}",
                          "{}",
                          "{step}_{step}.pt",
                          "a/{step}.pt",
                          "{step}.tmp",
                          "{step}.safetensors"}) {
    CHECK(usage_error(bad) != "");
  }
}

TEST_CASE("templates whose names could not be read back are usage errors") {
  CHECK(usage_error("{step}{epoch}.pt") != "");
  CHECK(usage_error("{step}0{epoch}.pt") != "");
  CHECK(usage_error("1{step}e{epoch}0") == "");
}

TEST_CASE("T106: a name is matched whole, and as it is written") {
  const std::string pattern = "checkpoint_{step}.pt";
  CHECK(matched(pattern, "checkpoint_100.pt") == "100");
  CHECK(matched(pattern, "checkpoint_0.pt") == "0");
  for (const char* other : {"checkpoint_100xpt",
                            "checkpoint_.pt",
                            "checkpoint_-1.pt",
                            "checkpoint_1.5.pt",
                            "checkpoint_100.pt.0a1b2c3d.tmp",
                            "my_checkpoint_100.pt",
                            "checkpoint_100.pt ",
                            "checkpoint_100",
                            "",
                            "checkpoint_99999999999999999999.pt"}) {
    CHECK(matched(pattern, other) == "none");
  }
  CHECK(matched("a+(b)[{step}]^$", "a+(b)[7]^$") == "7");
  CHECK(matched("a+(b)[{step}]^$", "aab[7]^$") == "none");
}

TEST_CASE("T103: a suffix is a time; others are no checkpoint's") {
  const std::string pattern = "checkpoint_{step}.pt";
  CHECK(matched(pattern, "checkpoint_5_20240506_070809.pt") == "5 20240506_070809");
  CHECK(matched(pattern, "checkpoint_5_20241306_070809.pt") == "none");
  CHECK(matched(pattern, "checkpoint_5_20240506_250809.pt") == "none");
  CHECK(matched(pattern, "checkpoint_5_2024.pt") == "none");
  CHECK(matched("{run_name}_{step}.pt", "a_5_20240506_070809.pt") == "5 20240506_070809");
  CHECK(matched("{run_name}_{step}.pt", "a_b_1_5.pt") == "5");
  CHECK(matched("step{step}", "step5_20240506_070809") == "5 20240506_070809");
}

TEST_CASE("T106: steps are ordered as numbers, then by suffix, none first") {
  CHECK(CheckpointStep{20, ""} < CheckpointStep{100, ""});
  CHECK(CheckpointStep{20, ""} < CheckpointStep{20, "20240506_070809"});
  CHECK(CheckpointStep{20, "20240506_070809"} < CheckpointStep{20, "20240506_070810"});
  CHECK(CheckpointStep{20, "20240506_070809"} < CheckpointStep{21, ""});
}

TEST_CASE("T103: saves at one step, also within one second, get names of their own") {
  const TempDir dir;
  const CheckpointName name;
  const auto save = [&] {
    const auto path = free_checkpoint_path(*real_file_system(), dir.path(), name, values_at(5));
    std::ofstream(path) << "x";
    return path.filename().string();
  };
  CHECK(save() == "checkpoint_5.pt");
  CHECK(save() == "checkpoint_5_20240506_070809.pt");
  CHECK(save() == "checkpoint_5_20240506_070810.pt");
  CHECK(save() == "checkpoint_5_20240506_070811.pt");
}

TEST_CASE("a suffix stands before both endings of a compressed file's name") {
  const CheckpointName name("c{step}.pt.zst");
  CHECK(name.is_compressed());
  CHECK_FALSE(CheckpointName().is_compressed());
  CHECK(name.format_with_suffix(values_at(3)) == "c3_20240506_070809.pt.zst");
  CHECK(matched("c{step}.pt.zst", "c3_20240506_070809.pt.zst") == "3 20240506_070809");
  CHECK(matched("c{step}.pt.zst", "c3.pt.zst") == "3");
  CHECK(matched("c{step}.pt.zst", "c3.pt") == "none");
  CHECK(matched("c{step}.gz", "c3_20240506_070809.gz") == "3 20240506_070809");
}

TEST_CASE("a run name that would leave the directory is a usage error") {
  CheckpointNameValues values = values_at(1);
  values.run_name = "../other";
  CHECK_THROWS_AS(CheckpointName("{run_name}_{step}.pt").format(values), UsageError);
}

TEST_SUITE_END();
