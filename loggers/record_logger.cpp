#include "loggers/record_logger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <variant>

#include "backends/backend.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/metric_direction.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/core/run_schedule_callback.h"
#include "core/base64.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/host_name.h"
#include "core/json.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "core/version.h"
#include "loggers/held_bytes.h"
#include "loggers/media_bytes.h"
#include "loggers/register.h"
#include "record/confusion.h"
#include "record/run_charts.h"
#include "record/run_record.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// "," and a member of an object.
std::string member(const char* key, const std::string& text) {
  return fmt::format(",\"{}\":{}", key, json_string(text));
}

template <class Value>
std::string numbers_of(const std::vector<Value>& values) {
  std::string text;
  for (const Value value : values) {
    text += (text.empty() ? "" : ",") + json_any_number(static_cast<double>(value));
  }
  return text;
}

std::string texts_of(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) {
    text += (text.empty() ? "" : ",") + json_string(value);
  }
  return "[" + text + "]";
}

/// The members of an object.
std::string json_of(const Histogram& histogram) {
  return fmt::format(
      "\"least\":{},\"most\":{},\"sum\":{},\"sum_of_squares\":{},\"count\":{},\"not_finite\":{},"
      "\"edges\":[{}],\"counts\":[{}]",
      json_any_number(histogram.least),
      json_any_number(histogram.most),
      json_any_number(histogram.sum),
      json_any_number(histogram.sum_of_squares),
      histogram.count,
      histogram.not_finite,
      numbers_of(histogram.edges),
      numbers_of(histogram.counts));
}

std::string json_of(const TextTable& table) {
  std::string rows;
  for (const std::vector<std::string>& row : table.rows) {
    rows += (rows.empty() ? "" : ",") + texts_of(row);
  }
  return fmt::format("\"columns\":{},\"rows\":[{}]", texts_of(table.columns), rows);
}

/// The first members of a line.
std::string head_of(const char* kind, int64_t update, double time) {
  return fmt::format("{{\"kind\":\"{}\",\"step\":{},\"time\":{:.3f}", kind, update, time);
}

/// The member of a line that names a file with these bytes, or the line's own members where they
/// are few.
std::string file_or(const std::string& bytes,
                    const char* suffix,
                    const fs::path& run,
                    const std::function<std::string()>& line) {
  constexpr size_t kMostInLine = 4096;
  if (bytes.size() <= kMostInLine) {
    return line();
  }
  const std::string name = "media/" + content_name(bytes) + suffix;
  const fs::path path = run / name;
  if (!real_file_system()->exists(path)) {
    real_file_system()->create_directories(path.parent_path());
    write_atomically(*real_file_system(), path, bytes);
  }
  return member("file", name);
}

std::string json_or_file(const std::string& json, const fs::path& run) {
  return file_or("{" + json + "}", ".json", run, [&] { return "," + json; });
}

const char* kind_of(const Media& media) {
  constexpr std::array kKinds = {"histogram", "image", "text", "table"};  // as `Media::value` lists
  return kKinds.at(media.value.index());
}

/// The members of a line; writes the file that it names.
std::string members_of(const Media& media, const fs::path& run) {
  const std::string name = member("name", media.name);
  if (const auto* histogram = std::get_if<Histogram>(&media.value)) {
    return name + json_or_file(json_of(*histogram), run);
  }
  if (const auto* table = std::get_if<TextTable>(&media.value)) {
    return name + json_or_file(json_of(*table), run);
  }
  if (const auto* picture = std::get_if<Picture>(&media.value)) {
    const std::string png = png_of(*picture);
    return name + fmt::format(",\"height\":{},\"width\":{}", picture->height, picture->width) +
           file_or(png, ".png", run, [&] { return member("data", base64(png)); });
  }
  const auto& text = std::get<std::string>(media.value);
  return name + file_or(text, ".txt", run, [&] { return member("text", text); });
}

/// Steps that could not be recorded, for the summary; "" when there are none.
std::string steps_as_written(const Backend& backend) {
  std::string text;
  for (const EagerSteps& steps : backend.eager_steps()) {
    text += fmt::format("\nStep {} ran as it is written {} times, in {:.0f} % of the time: {}\n",
                        steps.name,
                        steps.runs,
                        100.0 * steps.share_of_time,
                        steps.reason);
  }
  return text;
}

std::string entries_not_written(const CallbackMap& callbacks) {
  const std::string lost = lost_entries(callbacks);
  return lost.empty() ? "" : fmt::format("\nNot written, on a full disk for instance: {}.\n", lost);
}

}  // namespace

void RecordLogger::pre_setup(Trainer& trainer) {
  trainer_ = &trainer;
  file_.set_path(trainer.options().model_dir / kRecordFile, trainer.log());
}

void RecordLogger::go_back(const LogPosition& position) {
  begin_session(position.update);
}

// Of a further fit of the Trainer, for which nothing goes back.
void RecordLogger::on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) {
  samples_of_epoch_ = samples_of_pass(train, trainer.options().loop);
  if (!is_open_) {
    begin_session(trainer.state().global_step());
  }
}

void RecordLogger::begin_session(int64_t update) {
  const TrainerOptions& options = trainer_->options();
  is_open_ = true;
  told_.clear();
  std::string members = fmt::format(",\"format\":{}", kRecordFormat) +
                        member("run", trainer_->state().run_name) + member("version", kVersion) +
                        member("host", host_name()) + fmt::format(",\"process\":{}", ::getpid());
  const RunPlan* const plan = trainer_->state().plan;
  if (plan != nullptr && plan->length().total && plan->length().total->unit() == TimeUnit::Update) {
    members += fmt::format(",\"updates\":{}", plan->length().total->count());
  }
  write("session", update, members);
  if (!options.config_text.empty()) {
    write("config", update, member("text", options.config_text));
  }
  call(&TextFile::flush);
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

// The session goes on to the end of the fit's scope: the last checkpoint is saved after
// `on_fit_end` of loggers.
void RecordLogger::on_enter_fit(
    Trainer&, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  cleanup.push([this](const std::exception_ptr& error) {
    end_session(error ? "failed" : status_, error ? describe(error) : stop_reason_);
  });
}

void RecordLogger::on_fit_end(Trainer& trainer, Loop&) {
  const State& state = trainer.state();
  const bool is_over = state.plan == nullptr || state.plan->is_over(state.timestamp);
  const char* const reason = trainer.stop_reason();
  status_ = is_over ? "done" : "stopped";
  stop_reason_ = is_over || reason == nullptr ? "" : reason;
}

void RecordLogger::end_session(const char* status, const std::string& reason) {
  if (!is_open_) {
    return;
  }
  write("end",
        trainer_->state().global_step(),
        member("status", status) + (reason.empty() ? "" : member("text", reason)));
  is_open_ = false;
  call(&TextFile::flush);
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
    write_report(trainer_->log(),
                 directory / "summary.md",
                 summary_of(run) + steps_as_written(*trainer_->state().backend) +
                     entries_not_written(trainer_->callbacks()));
    write_report(
        trainer_->log(), directory / "results.svg", svg_charts(charts_of(run), confusions_of(run)));
  } catch (const DataError& unreadable) {
    trainer_->log().warning(unreadable.what());
  }
}

void RecordLogger::on_after_save_checkpoint(Trainer& trainer, const fs::path& path) {
  if (is_open_) {
    const fs::path below = path.lexically_relative(trainer.options().model_dir);
    const bool is_below = !below.empty() && *below.begin() != "..";
    const int64_t update = trainer.slot<CheckpointCallback>().saved_update();
    write("save", update, member("text", (is_below ? below : path).string()));
  }
}

/// Members that say how much of the data the run has seen; "" for values of an earlier update.
std::string RecordLogger::position_at(int64_t update) const {
  const Timestamp& now_at = trainer_->state().timestamp;
  if (now_at.update != update) {
    return "";
  }
  const double part =
      samples_of_epoch_.value_or(0) > 0
          ? static_cast<double>(now_at.sample_in_epoch) / static_cast<double>(*samples_of_epoch_)
          : 0.0;
  const double epoch = static_cast<double>(now_at.epoch) + part;
  return fmt::format(",\"epoch\":{:.9g},\"samples\":{}", epoch, now_at.sample) +
         (now_at.token > 0 ? fmt::format(",\"tokens\":{}", now_at.token) : "");
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
          "{}{}:{}", numbers.empty() ? "" : ",", json_string(item.first), json_any_number(*value));
    }
  }
  if (!numbers.empty()) {
    write("numbers", update, position_at(update) + fmt::format(",\"values\":{{{}}}", numbers));
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

// A stop may have left batches out: that is no result.
void RecordLogger::on_validate_end(Trainer& trainer, Model&, Loop&) {
  std::string label = trainer.metric_log().scope_path();
  if (!is_open_ || label.empty() || !trainer.is_log_step()) {
    return;
  }
  label.pop_back();
  write("validation", trainer.state().global_step(), member("text", label));
}

void RecordLogger::on_alert(Trainer&, const AlertMessage& alert) {
  if (is_open_) {
    write("alert",
          alert.update,
          member("level", to_string(alert.level)) + member("text", alert.text));
    call(&TextFile::start_flush);
  }
}

void RecordLogger::log_media(const Media& media, int64_t update) {
  if (!is_open_) {
    return;
  }
  file_.append_later(
      held_bytes(media),
      [media, run = trainer_->options().model_dir, head = head_of(kind_of(media), update, now())] {
        return head + members_of(media, run) + "}";
      });
  file_.check();
}

/// Readers follow a run: what is older than a second is written out.
void RecordLogger::write(const char* kind, int64_t update, const std::string& members) {
  const double time = now();
  file_.append(head_of(kind, update, time) + members + "}");
  call(&TextFile::check);
  if (time - flushed_ > 1.0) {
    flushed_ = time;
    call(&TextFile::start_flush);
  }
}

// Not only values are written, and a full disk ends no run.
void RecordLogger::call(void (TextFile::*method)()) {
  try {
    (file_.*method)();
  } catch (const IoError& error) {
    warn_of_lost_values(trainer_->log(), error);
  }
}

void register_record_logger(Registry<Logger>& registry) {
  add_filter_keys(registry.add<RecordLogger>(
      "RecordLogger", "Writes record.jsonl, which `rondo runs`, `plot` and `diff` read."));
}

}  // namespace rondo
