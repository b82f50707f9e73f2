#include "core/error.h"
#include "loggers/event_file.h"

namespace rondo {

namespace {

[[noreturn]] void refuse() {
  throw NotSupportedError(
      "TensorBoardLogger: this rondo was built without Protobuf: install libprotobuf-dev and "
      "protobuf-compiler, and build it with -DRONDO_WITH_TENSORBOARD=ON");
}

}  // namespace

void require_event_files() {
  refuse();
}

EventFile::EventFile(const std::filesystem::path&) {
  refuse();
}

void EventFile::add_scalars(int64_t, const std::vector<std::pair<std::string, float>>&) {
  refuse();
}

void EventFile::add_media(int64_t, const Media&) {
  refuse();
}

void EventFile::add_tensor(int64_t, const std::string&, const at::Tensor&) {
  refuse();
}

void EventFile::add_hyperparameters(int64_t,
                                    const std::string&,
                                    const std::map<std::string, std::string>&) {
  refuse();
}

void EventFile::add_end(int64_t) {
  refuse();
}

void EventFile::add_graph(int64_t, const std::vector<GraphNode>&) {
  refuse();
}

void EventFile::start_session(int64_t, const std::function<bool(const std::string&, bool)>&) {
  refuse();
}

void EventFile::flush() {
  refuse();
}

std::vector<std::filesystem::path> event_files(const std::filesystem::path&) {
  refuse();
}

uint32_t crc32c(const void*, size_t) {
  refuse();
}

}  // namespace rondo
