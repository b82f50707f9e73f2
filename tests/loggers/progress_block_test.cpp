#include "loggers/progress_block.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

TEST_SUITE_BEGIN("loggers/progress_block");

using namespace rondo;

namespace {

ProgressFacts facts_half_way() {
  ProgressFacts facts;
  facts.update = 500;
  facts.updates = 1000;
  facts.share = 0.5;
  facts.epoch = 2;
  facts.seconds_left = 65.0;
  facts.pass = "train";
  facts.done = 10;
  facts.all = 40;
  facts.updates_per_s = 123.456;
  facts.samples_per_s = 7901.2;
  facts.memory = int64_t{300} << 20;
  facts.saved = 400;
  facts.values = {{"loss", 0.5, 0.25, 480}, {"val/accuracy", 0.9, {}, 0}};
  return facts;
}

}  // namespace

TEST_CASE("the block says how far run and pass are, the metrics, speed and memory") {
  CHECK(progress_lines(facts_half_way(), 200) ==
        std::vector<std::string>{
            "run     ━━━━━━━━━━━━━━──────────────  500/1000 updates  epoch 2  0:01:05 left",
            "train   ━━━━━━━─────────────────────  10/40",
            "        loss 0.5 (best 0.25 @480)  val/accuracy 0.9",
            "        123.5 updates/s  7901 samples/s  300 MiB  saved @400"});
}

TEST_CASE("what is not known is left out") {
  ProgressFacts facts;
  facts.pass = "a_long_label";
  CHECK(progress_lines(facts, 200) ==
        std::vector<std::string>{"run     ────────────────────────────  0 updates  epoch 0",
                                 "a_long_ ────────────────────────────  0",
                                 "        "});
}

TEST_CASE("a bar ends at half a column, and never beyond its end") {
  ProgressFacts facts;
  facts.share = 1.0 / 56;
  CHECK(progress_lines(facts, 200)[0].find("╸───") == 8);
  facts.share = 7.0;
  CHECK(progress_lines(facts, 200)[0].find("─") == std::string::npos);
}

TEST_CASE("lines are cut at the terminal's width, between characters") {
  for (const std::string& line : progress_lines(facts_half_way(), 10)) {
    CAPTURE(line);
    CHECK(line.size() <= 10 + 2 * 2);  // two characters of the bar have three bytes each
  }
  CHECK(progress_lines(facts_half_way(), 10)[0] == "run     ━━");
  CHECK(progress_lines(facts_half_way(), 1)[3] == " ");
}

TEST_SUITE_END();
