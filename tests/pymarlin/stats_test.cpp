#include "pymarlin/stats.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

TEST_SUITE_BEGIN("pymarlin/stats");

namespace rondo::pymarlin {
namespace {

using Lines = std::vector<std::string>;

class ListWriter final : public Writer {
 public:
  void log_scalar(const std::string& name, double value, int64_t step) override {
    lines.push_back(fmt::format("{} {} {}", step, name, value));
  }

  void log_multi(const std::string& group,
                 const std::map<std::string, double>& values,
                 int64_t step) override {
    lines.push_back(fmt::format("{} {} of {}", step, values.size(), group));
  }

  void finish() override { lines.push_back("finish"); }

  Lines lines;
};

}  // namespace

TEST_CASE("P33: frequent stats are written every log_steps, long ones when asked, once each") {
  StatInitArguments arguments;
  arguments.log_steps = 2;
  Stats stats(arguments);
  const auto writer = std::make_shared<ListWriter>();
  stats.add_writer(writer);
  stats.update("loss", 3.0, /*frequent=*/true);
  stats.update("loss", 2.0, /*frequent=*/true);
  stats.update("accuracy", 0.5);
  stats.log_stats(1);
  CHECK(writer->lines.empty());
  stats.log_stats(2);
  CHECK(writer->lines == Lines{"2 loss 2"});
  stats.log_stats(4);
  stats.log_long_stats(5);
  stats.log_long_stats(6);
  CHECK(writer->lines == Lines{"2 loss 2", "5 accuracy 0.5"});
  stats.update_multi("norms", {{"a", 1.0}, {"b", 2.0}}, /*frequent=*/true);
  stats.log_stats(7, /*force=*/true);
  stats.finish();
  CHECK(writer->lines == Lines{"2 loss 2", "5 accuracy 0.5", "7 2 of norms", "finish"});
}

}  // namespace rondo::pymarlin

TEST_SUITE_END();
