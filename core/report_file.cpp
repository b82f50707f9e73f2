#include "core/report_file.h"

#include "core/error.h"
#include "core/file_system.h"

namespace rondo {

void write_report(const TextLog& log, const std::filesystem::path& path, std::string_view text) {
  FileSystem& files = *real_file_system();
  try {
    files.create_directories(path.parent_path());
    write_atomically(files, path, text);
  } catch (const IoError& error) {
    log.warning(std::string(error.what()) + "; the run continues without this file");
  }
}

}  // namespace rondo
