#include "tracing/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/json.h"

namespace rondo {

namespace {

constexpr size_t kDearest = 20;  // instructions that are listed one by one

struct Share {
  std::string name;
  int64_t count = 0;
  double seconds = 0.0;
  int64_t bytes = 0;
};

void add_row(std::string& text, const Share& share, double whole) {
  text += fmt::format(
      "  {:>6.1f} % {:>10.1f} us {:>5} x {:>8.2f} MiB {:>6.1f} GB/s  {}\n",
      100.0 * share.seconds / whole,
      share.seconds * 1e6,
      share.count,
      static_cast<double>(share.bytes) / (1 << 20),
      share.seconds > 0.0 ? static_cast<double>(share.bytes) / share.seconds * 1e-9 : 0.0,
      share.name);
}

void sort_by_time(std::vector<Share>& shares) {
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.seconds > b.seconds;
  });
}

std::vector<Share> grouped(const StepTimeline& timeline, std::string InstructionTime::*name) {
  std::map<std::string, Share> groups;
  for (const InstructionTime& time : timeline.instructions) {
    Share& group = groups[time.*name];
    group.name = time.*name;
    ++group.count;
    group.seconds += time.seconds;
    group.bytes += time.bytes;
  }
  std::vector<Share> shares;
  for (const auto& group : groups) {
    shares.push_back(group.second);
  }
  sort_by_time(shares);
  return shares;
}

std::vector<Share> dearest(const StepTimeline& timeline) {
  std::vector<Share> shares;
  for (const InstructionTime& time : timeline.instructions) {
    shares.push_back({time.text, 1, time.seconds, time.bytes});
  }
  sort_by_time(shares);
  shares.resize(std::min(shares.size(), kDearest));
  return shares;
}

}  // namespace

std::string timeline_table(const StepTimeline& timeline) {
  if (timeline.replays == 0) {
    return "";
  }
  double sum = 0.0;
  for (const InstructionTime& time : timeline.instructions) {
    sum += time.seconds;
  }
  std::string text = fmt::format(
      "{:.1f} us in {} instructions; {:.1f} us a replay without timing them; means over the "
      "middle half of {} replays\n",
      sum * 1e6,
      timeline.instructions.size(),
      timeline.replay_s * 1e6,
      timeline.replays);
  const auto add_section = [&](const char* title, const std::vector<Share>& shares) {
    text += fmt::format(" {}\n", title);
    for (const Share& share : shares) {
      add_row(text, share, sum);
    }
  };
  add_section("by operator", grouped(timeline, &InstructionTime::op));
  add_section("by module", grouped(timeline, &InstructionTime::module));
  add_section("by line", grouped(timeline, &InstructionTime::source));
  add_section("dearest instructions", dearest(timeline));
  return text;
}

std::string chrome_trace(const std::string& step, const StepTimeline& timeline) {
  std::string events;
  double start = 0.0;
  for (const InstructionTime& time : timeline.instructions) {
    events += fmt::format(
        "{}{{\"name\": {}, \"cat\": {}, \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": {:.3f}, "
        "\"dur\": {:.3f}, \"args\": {{\"instruction\": {}, \"line\": {}, \"bytes\": {}}}}}",
        events.empty() ? "" : ",\n",
        json_string(time.op),
        json_string(time.module),
        start * 1e6,
        time.seconds * 1e6,
        json_string(time.text),
        json_string(time.source),
        time.bytes);
    start += time.seconds;
  }
  return fmt::format(
      "{{\"otherData\": {{\"step\": {}, \"untimed_us\": {:.3f}}}, \"traceEvents\": [\n{}\n]}}\n",
      json_string(step),
      timeline.replay_s * 1e6,
      events);
}

}  // namespace rondo
