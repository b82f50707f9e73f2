#include "loggers/event_file.h"

#include <fmt/format.h>
#include <tensorboard_event.pb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "core/error.h"
#include "core/file_system.h"
#include "loggers/media_bytes.h"

namespace rondo {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // CRC-32C, reflected
constexpr uint32_t kMaskDelta = 0xa282ead8;  // TFRecord's mask, so that a CRC of a CRC stays useful

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
    table[i] = crc;
  }
  return table;
}

uint32_t masked_crc(const void* bytes, size_t size) {
  const uint32_t crc = crc32c(bytes, size);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// One of now, which holds nothing yet.
tensorboard::Event event_at(int64_t step) {
  tensorboard::Event event;
  event.set_wall_time(wall_time());
  event.set_step(step);
  return event;
}

constexpr const char* kPrefix = "events.out.tfevents.";

/// The second in the name of an event file; 0 for another file.
int64_t second_of(const std::string& name) {
  const std::string_view digits = std::string_view(name).substr(std::strlen(kPrefix));
  int64_t second = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), second);
  return second;
}

/// Later than all that are there: readers take the files in the order of their names.
std::filesystem::path new_path(const std::filesystem::path& directory) {
  auto second = static_cast<int64_t>(wall_time());
  for (const std::filesystem::path& file : event_files(directory)) {
    second = std::max(second, second_of(file.filename().string()) + 1);
  }
  return directory / fmt::format("{}{}.rondo.{}", kPrefix, second, ::getpid());
}

template <class Integer>
void append_little_endian(std::string& bytes, Integer value) {
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
}

/// Calls `visit` for each event of a file, up to one that a crash cut short.
void for_each_event(const std::filesystem::path& path,
                    const std::function<void(const tensorboard::Event&)>& visit) {
  constexpr size_t kHead = 12;  // length and its checksum
  constexpr size_t kTail = 4;
  const std::string bytes = real_file_system()->read(path);
  for (size_t at = 0; at + kHead <= bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    tensorboard::Event event;
    if (length > bytes.size() - at - kHead ||
        !event.ParseFromArray(bytes.data() + at + kHead, static_cast<int>(length))) {
      return;
    }
    visit(event);
    at += kHead + length + kTail;
  }
}

void set(tensorboard::HistogramProto& to, const Histogram& histogram) {
  to.set_min(histogram.least);
  to.set_max(histogram.most);
  to.set_num(static_cast<double>(histogram.count));
  to.set_sum(histogram.sum);
  to.set_sum_squares(histogram.sum_of_squares);
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    to.add_bucket_limit(histogram.edges[i + 1]);
    to.add_bucket(static_cast<double>(histogram.counts[i]));
  }
}

void set(tensorboard::Summary::Image& to, const Picture& picture) {
  to.set_height(static_cast<int32_t>(picture.height));
  to.set_width(static_cast<int32_t>(picture.width));
  to.set_colorspace(static_cast<int32_t>(picture.channels));
  to.set_encoded_image_string(png_of(picture));
}

/// As the text plugin takes it.
void set_text(tensorboard::Summary::Value& value, const std::string& text) {
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_tensor()->set_dtype(tensorboard::DT_STRING);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
  value.mutable_tensor()->add_string_val(text);
}

void set(tensorboard::HParamsPluginData::Value& to, const std::string& text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    to.set_number_value(number);
  } else if (text == "true" || text == "false") {
    to.set_bool_value(text == "true");
  } else {
    to.set_string_value(text);
  }
}

/// As the plugin "hparams" takes it: what it holds stands in the metadata.
tensorboard::Event event_of_plugin(int64_t step,
                                   const char* tag,
                                   tensorboard::HParamsPluginData& data) {
  tensorboard::Event event = event_at(step);
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  tensorboard::SummaryMetadata::PluginData& plugin =
      *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name("hparams");
  plugin.set_content(data.SerializeAsString());
  value.mutable_tensor()->set_dtype(tensorboard::DT_FLOAT);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(0);
  return event;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (std::string cell : cells) {
    for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) {
      cell.insert(at, "\\");
    }
    row += " " + cell + " |";
  }
  return row + "\n";
}

std::string markdown_of(const TextTable& table) {
  std::string text = markdown_row(table.columns) + "|";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    text += "---|";
  }
  text += "\n";
  for (const std::vector<std::string>& row : table.rows) {
    text += markdown_row(row);
  }
  return text;
}

}  // namespace

std::vector<std::filesystem::path> event_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : real_file_system()->list(directory)) {
    if (name.rfind(kPrefix, 0) == 0) {
      files.push_back(directory / name);
    }
  }
  return files;
}

uint32_t crc32c(const void* bytes, size_t size) {
  static const std::array<uint32_t, 256> kTable = crc_table();
  const auto* next = static_cast<const unsigned char*>(bytes);
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < size; ++i) {
    crc = kTable[(crc ^ next[i]) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

void require_event_files() {}

EventFile::EventFile(const std::filesystem::path& directory) {
  real_file_system()->create_directories(directory);
  path_ = new_path(directory);
  begin();
  if (!out_) {
    throw IoError(fmt::format("cannot create {}", path_.string()), errno);
  }
}

void EventFile::begin() {
  out_.open(path_, std::ios::binary);
  tensorboard::Event version;
  version.set_wall_time(wall_time());
  version.set_file_version("brain.Event:2");
  write_record(version.SerializeAsString());
  unflushed_ = 0;
}

void EventFile::add_scalars(int64_t step,
                            const std::vector<std::pair<std::string, float>>& scalars) {
  tensorboard::Event event = event_at(step);
  for (const auto& scalar : scalars) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.first);
    value->set_simple_value(scalar.second);
  }
  write_record(event.SerializeAsString());
}

void EventFile::add_media(int64_t step, const Media& media) {
  tensorboard::Event event = event_at(step);
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(media.name);
  if (const auto* histogram = std::get_if<Histogram>(&media.value)) {
    set(*value.mutable_histo(), *histogram);
  } else if (const auto* picture = std::get_if<Picture>(&media.value)) {
    set(*value.mutable_image(), *picture);
  } else if (const auto* table = std::get_if<TextTable>(&media.value)) {
    set_text(value, markdown_of(*table));
  } else {
    set_text(value, std::get<std::string>(media.value));
  }
  write_record(event.SerializeAsString());
}

void EventFile::add_tensor(int64_t step, const std::string& tag, const at::Tensor& tensor) {
  tensorboard::Event event = event_at(step);
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  tensorboard::TensorProto& to = *value.mutable_tensor();
  to.set_dtype(tensorboard::DT_FLOAT);
  for (const int64_t size : tensor.sizes()) {
    to.mutable_tensor_shape()->add_dim()->set_size(size);
  }
  const at::Tensor numbers = tensor.detach().to(at::kCPU).to(at::kFloat).contiguous();
  const float* const first = numbers.data_ptr<float>();
  to.mutable_float_val()->Add(first, first + numbers.numel());
  write_record(event.SerializeAsString());
}

void EventFile::add_hyperparameters(int64_t step,
                                    const std::string& run,
                                    const std::map<std::string, std::string>& values) {
  tensorboard::HParamsPluginData data;
  tensorboard::HParamsPluginData::SessionStartInfo& start = *data.mutable_session_start_info();
  start.set_group_name(run);
  start.set_start_time_secs(wall_time());
  for (const auto& [name, text] : values) {
    set((*start.mutable_hparams())[name], text);
  }
  write_record(event_of_plugin(step, "_hparams_/session_start_info", data).SerializeAsString());
}

void EventFile::add_end(int64_t step) {
  tensorboard::HParamsPluginData data;
  data.mutable_session_end_info()->set_status(tensorboard::HParamsPluginData::STATUS_SUCCESS);
  data.mutable_session_end_info()->set_end_time_secs(wall_time());
  write_record(event_of_plugin(step, "_hparams_/session_end_info", data).SerializeAsString());
}

void EventFile::add_graph(int64_t step, const std::vector<GraphNode>& nodes) {
  tensorboard::GraphDef graph;
  for (const GraphNode& node : nodes) {
    tensorboard::GraphDef::NodeDef& to = *graph.add_node();
    to.set_name(node.name);
    to.set_op(node.op);
    for (const std::string& input : node.inputs) {
      to.add_input(input);
    }
  }
  tensorboard::Event event = event_at(step);
  event.set_graph_def(graph.SerializeAsString());
  write_record(event.SerializeAsString());
}

void EventFile::start_session(
    int64_t step, const std::function<bool(const std::string& tag, bool is_own)>& is_kept) {
  out_.flush();
  std::map<std::string, tensorboard::Event> newest;  // by tag: earlier sessions have copies
  for (const std::filesystem::path& file : event_files(path_.parent_path())) {
    for_each_event(file, [&](const tensorboard::Event& event) {
      for (const tensorboard::Summary::Value& value : event.summary().value()) {
        if (event.step() == step && is_kept(value.tag(), file == path_)) {
          tensorboard::Event copy = event;
          copy.mutable_summary()->clear_value();
          *copy.mutable_summary()->add_value() = value;
          newest[value.tag()] = copy;
        }
      }
    });
  }
  tensorboard::Event start = event_at(step);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  write_record(start.SerializeAsString());
  for (const auto& tag_and_event : newest) {
    write_record(tag_and_event.second.SerializeAsString());
  }
}

void EventFile::write_record(const std::string& payload) {
  ++unflushed_;
  std::string record;
  append_little_endian(record, static_cast<uint64_t>(payload.size()));
  append_little_endian(record, masked_crc(record.data(), sizeof(uint64_t)));
  record += payload;
  append_little_endian(record, masked_crc(payload.data(), payload.size()));
  out_.write(record.data(), static_cast<std::streamsize>(record.size()));
}

void EventFile::flush() {
  if (out_.flush()) {
    is_failing_ = false;
    unflushed_ = 0;
    return;
  }
  lost_ += unflushed_;
  const IoError error(fmt::format("cannot write {}", path_.string()), errno);
  // A record may be cut short, behind which nothing could be read.
  out_.close();
  out_.clear();
  const bool was_failing = std::exchange(is_failing_, true);
  if (!was_failing) {  // else there is nothing of worth in it
    path_ = new_path(path_.parent_path());
  }
  begin();
  if (!was_failing) {
    throw error;
  }
}

}  // namespace rondo
