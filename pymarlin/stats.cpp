#include "pymarlin/stats.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace rondo::pymarlin {

namespace {

class StdoutWriter final : public Writer {
 public:
  void log_scalar(const std::string& name, double value, int64_t step) override {
    fmt::print("step = {}, {} : {}\n", step, name, value);
  }

  void log_multi(const std::string& group,
                 const std::map<std::string, double>& values,
                 int64_t step) override {
    for (const auto& [name, value] : values) {
      log_scalar(group + "/" + name, value, step);
    }
  }

  void flush() override { std::fflush(stdout); }
};

}  // namespace

void Stats::update(const std::string& name, double value, bool frequent) {
  (frequent ? frequent_ : long_).scalars[name] = value;
}

void Stats::update_multi(const std::string& group,
                         const std::map<std::string, double>& values,
                         bool frequent) {
  (frequent ? frequent_ : long_).groups[group] = values;
}

void Stats::log_stats(int64_t step, bool force) {
  if (force || step % arguments_.log_steps == 0) {
    write(frequent_, step);
  }
}

void Stats::log_long_stats(int64_t step) {
  write(long_, step);
}

bool Stats::logs_model_of(const std::string& parameter) const {
  return arguments_.exclude_list.empty() || !std::regex_search(parameter, excluded_);
}

void Stats::log_model(int64_t step, const std::map<std::string, double>& norms) {
  Tier tier;
  tier.scalars = norms;
  write(tier, step);
}

void Stats::write(Tier& tier, int64_t step) {
  const Tier written = std::exchange(tier, {});
  for (const auto& writer : writers_) {
    for (const auto& [name, value] : written.scalars) {
      writer->log_scalar(name, value, step);
    }
    for (const auto& [group, values] : written.groups) {
      writer->log_multi(group, values, step);
    }
    writer->flush();
  }
}

void Stats::finish() {
  for (const auto& writer : writers_) {
    writer->finish();
  }
}

std::shared_ptr<Writer> stdout_writer() {
  return std::make_shared<StdoutWriter>();
}

}  // namespace rondo::pymarlin
