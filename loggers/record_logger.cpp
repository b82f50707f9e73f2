#include "loggers/record_logger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <chrono>
#include <cmath>

#include "callbacks/core/metric_direction.h"
#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/json.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "core/version.h"
#include "record/run_charts.h"
#include "record/run_record.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr int kFormat = 1;

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// JSON has no numbers that are not finite: they are texts.
std::string value_text(double value) {
  if (std::isfinite(value)) {
    return json_number(value);
  }
  return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
}

/// "," and a member of an object.
std::string member(const char* key, const std::string& text) {
  return fmt::format(",\"{}\":{}", key, json_string(text));
}

}  // namespace

void RecordLogger::pre_setup(Trainer& trainer) {
  trainer_ = &trainer;
  file_.set_path(trainer.options().model_dir / kRecordFile);
}

void RecordLogger::go_back(const LogPosition& position) {
  begin_session(position.update);
}

// Of a further fit of the Trainer, for which nothing goes back.
void RecordLogger::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!is_open_) {
    begin_session(trainer.state().global_step());
  }
}

void RecordLogger::begin_session(int64_t update) {
  const TrainerOptions& options = trainer_->options();
  const fs::path directory = fs::absolute(options.model_dir).lexically_normal();
  const fs::path name = directory.has_filename() ? directory : directory.parent_path();
  is_open_ = true;
  told_.clear();
  std::string members = fmt::format(",\"format\":{}", kFormat) +
                        member("run", name.filename().string()) + member("version", kVersion);
  const RunPlan* const plan = trainer_->state().plan;
  if (plan != nullptr && plan->length().total && plan->length().total->unit() == TimeUnit::Update) {
    members += fmt::format(",\"updates\":{}", plan->length().total->count());
  }
  write("session", update, members);
  if (!options.config_text.empty()) {
    write("config", update, member("text", options.config_text));
  }
  file_.flush();
  lock();
}

// Held until the session's end, or that of the process.
void RecordLogger::lock() {
  lock_ = detail::FileDescriptor(::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (lock_.get() >= 0 && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    trainer_->log().warning(fmt::format(
        "{} is written by another process: two runs share this model_dir", file_.path().string()));
  }
}

void RecordLogger::on_fit_end(Trainer& trainer, Loop&) {
  const State& state = trainer.state();
  const bool is_over = state.plan == nullptr || state.plan->is_over(state.timestamp);
  const char* const reason = trainer.stop_reason();
  end_session(is_over ? "done" : "stopped", is_over || reason == nullptr ? "" : reason);
}

void RecordLogger::on_fit_exception(Trainer&, std::exception_ptr error) {
  end_session("failed", describe(error));
}

void RecordLogger::end_session(const char* status, const std::string& reason) {
  if (!is_open_) {
    return;
  }
  write("end",
        trainer_->state().global_step(),
        member("status", status) + (reason.empty() ? "" : member("text", reason)));
  is_open_ = false;
  file_.flush();
  lock_ = detail::FileDescriptor(-1);
  write_summary();
}

void RecordLogger::write_summary() {
  constexpr uintmax_t kMostBytes = uintmax_t{256} << 20;  // some seconds of reading
  std::error_code error;
  if (fs::file_size(file_.path(), error) > kMostBytes || error) {
    trainer_->log().info(
        fmt::format("{} is too long for a summary; `rondo plot` draws it", file_.path().string()));
    return;
  }
  try {
    const RunRecord run = read_record(file_.path());
    const fs::path& directory = trainer_->state().artifact_dir;
    write_report(trainer_->log(), directory / "summary.md", summary_of(run));
    write_report(trainer_->log(), directory / "results.svg", svg_charts(charts_of(run)));
  } catch (const DataError& unreadable) {
    trainer_->log().warning(unreadable.what());
  }
}

void RecordLogger::on_after_save_checkpoint(Trainer& trainer, const fs::path& path) {
  if (is_open_) {
    const fs::path below = path.lexically_relative(trainer.options().model_dir);
    const bool is_below = !below.empty() && *below.begin() != "..";
    write(
        "save", trainer.state().global_step(), member("text", (is_below ? below : path).string()));
  }
}

void RecordLogger::log(const Metrics& values, int64_t update) {
  if (!is_open_) {
    return;
  }
  std::string numbers;
  for (const Metrics::Item& item : values.items()) {
    if (const std::optional<double> value = values.number(item.first)) {
      tell_direction(item.first, update);
      numbers += fmt::format(
          "{}{}:{}", numbers.empty() ? "" : ",", json_string(item.first), value_text(*value));
    }
  }
  if (!numbers.empty()) {
    write("numbers", update, fmt::format(",\"values\":{{{}}}", numbers));
  }
}

void RecordLogger::tell_direction(const std::string& metric, int64_t update) {
  if (!told_.insert(metric).second) {
    return;
  }
  if (const std::optional<Better> better = better_of(*trainer_, metric)) {
    write(
        "metric",
        update,
        member("text", metric) + member("better", *better == Better::Higher ? "higher" : "lower"));
  }
}

/// Readers follow a run: what is older than a second is written out.
void RecordLogger::write(const char* kind, int64_t update, const std::string& members) {
  const double time = now();
  file_.append(fmt::format(
      "{{\"kind\":\"{}\",\"step\":{},\"time\":{:.3f}{}}}", kind, update, time, members));
  if (time - flushed_ > 1.0) {
    flushed_ = time;
    file_.flush();
  }
}

void register_record_logger(Registry<Logger>& registry) {
  registry.add<RecordLogger>("RecordLogger",
                             "Writes record.jsonl, which `rondo runs`, `plot` and `diff` read.");
}

}  // namespace rondo
