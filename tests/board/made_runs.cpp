#include "board/made_runs.h"

#include <fmt/format.h>

#include <fstream>

#include "core/json_text.h"
#include "record/run_record.h"

namespace rondo::test {

namespace fs = std::filesystem;

void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void append_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::app) << text;
}

std::string session_line(const std::string& run) {
  return fmt::format(
      "{{\"kind\":\"session\",\"step\":0,\"time\":100,\"format\":1,\"run\":{},\"version\":\"0.2."
      "0\","
      "\"updates\":20,\"host\":\"here\",\"process\":7}}\n",
      json_string(run));
}

std::string config_line(const std::string& toml) {
  return fmt::format("{{\"kind\":\"config\",\"step\":0,\"time\":100,\"text\":{}}}\n",
                     json_string(toml));
}

std::string numbers_line(int step, const std::string& values, const std::string& more) {
  return fmt::format("{{\"kind\":\"numbers\",\"step\":{},\"time\":{}{},\"values\":{{{}}}}}\n",
                     step,
                     100 + step,
                     more,
                     values);
}

std::string done_line(int step) {
  return fmt::format(
      "{{\"kind\":\"end\",\"step\":{},\"time\":{},\"status\":\"done\"}}\n", step, 100 + step);
}

void write_run(const fs::path& directory, double lr, double loss) {
  write_text(directory / kRecordFile,
             session_line(directory.filename().string()) +
                 config_line(fmt::format("[optimizer]\nlr = {}", lr)) +
                 numbers_line(1, "\"loss\":2") + numbers_line(2, fmt::format("\"loss\":{}", loss)) +
                 done_line(2));
}

}  // namespace rondo::test
