// The program `rondo`. Answers what needs no LibTorch (loading it takes 0.4 s), sets what must be
// set before a process starts, and becomes `rondo-engine`.

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <variant>

#include "cli/command_line.h"
#include "cli/rank_launcher.h"
#include "cli/record_commands.h"
#include "cli/signal_handlers.h"
#include "core/openblas_core.h"

namespace fs = std::filesystem;

namespace {

constexpr int kKeepUsersChoice = 0;

/// Freed memory stays with the process. Each step frees and wants the same blocks; glibc's own
/// thresholds give large ones back to the system in between, and every page of them is a fault in
/// the next step.
void keep_freed_memory() {
  ::setenv("MALLOC_MMAP_THRESHOLD_", "67108864", kKeepUsersChoice);
  ::setenv("MALLOC_TRIM_THRESHOLD_", "268435456", kKeepUsersChoice);
}

/// Idle threads sleep: rondo's own threads and those of OpenMP share few cores.
void calm_openmp() {
  ::setenv("OMP_WAIT_POLICY", "passive", kKeepUsersChoice);
  ::setenv("GOMP_SPINCOUNT", "0", kKeepUsersChoice);
}

/// Puts the OpenMP build of OpenBLAS first. The pthread build, where both are installed the
/// system's choice, runs a second pool of threads beside LibTorch's.
void prefer_openmp_blas() {
  std::error_code ignored;
  if (!fs::is_directory(RONDO_OPENMP_BLAS_DIR, ignored)) {
    return;
  }
  const char* old = std::getenv("LD_LIBRARY_PATH");
  const bool has_old = old != nullptr && *old != '\0';
  const std::string path =
      has_old ? fmt::format("{}:{}", RONDO_OPENMP_BLAS_DIR, old) : RONDO_OPENMP_BLAS_DIR;
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}

/// "" when there is no OpenBLAS.
std::string core_that_openblas_chooses() {
  void* library = ::dlopen(RONDO_OPENMP_BLAS_DIR "/libopenblas.so.0", RTLD_LAZY);
  if (library == nullptr) {
    library = ::dlopen("libopenblas.so.0", RTLD_LAZY);
  }
  return rondo::openblas_core(library);
}

/// Corrects an OpenBLAS that does not know the processor: matrix products take some three times as
/// long then.
void name_processor_to_openblas() {
  cpu_set_t cores;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr ||
      ::sched_getaffinity(0, sizeof cores, &cores) != 0) {
    return;
  }
  const std::string core = rondo::better_openblas_core(core_that_openblas_chooses());
  // With OMP_PROC_BIND and the like OpenMP, which came along, bound this thread to one core, where
  // the engine would stay.
  ::sched_setaffinity(0, sizeof cores, &cores);
  if (!core.empty()) {
    ::setenv("OPENBLAS_CORETYPE", core.c_str(), kKeepUsersChoice);
  }
}

/// The engine beside this program, as it is built, or where it is installed; "" when in neither.
fs::path find_engine() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate :
       {here / "rondo-engine", here / RONDO_ENGINE_FROM_BIN / "rondo-engine"}) {
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  std::cerr << fmt::format(
      "rondo: the program rondo-engine is neither in {} nor in {}; build or install it again\n",
      here.string(),
      (here / RONDO_ENGINE_FROM_BIN).lexically_normal().string());
  return {};
}

int run(int argc, char** argv) {
  const auto parsed = rondo::parse_command_line(argc, argv);
  if (const auto* exit = std::get_if<rondo::Exit>(&parsed)) {
    (exit->to_stderr ? std::cerr : std::cout) << exit->text;
    return exit->code;
  }
  if (const auto code = rondo::run_record_command(std::get<rondo::CommandLine>(parsed))) {
    return *code;
  }
  const fs::path engine = find_engine();
  if (engine.empty()) {
    return 1;
  }
  const auto& line = std::get<rondo::CommandLine>(parsed);
  keep_freed_memory();
  calm_openmp();
  prefer_openmp_blas();
  name_processor_to_openblas();
  if (line.command == rondo::Command::Launch) {
    return rondo::launch_ranks(line, engine.string());
  }
  if (line.ui && !line.dry_run) {
    return rondo::fit_with_dashboard(line, engine.string(), argv);
  }
  ::execv(engine.c_str(), argv);
  std::cerr << fmt::format("rondo: cannot run {}: {}\n", engine.string(), std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  rondo::open_closed_streams();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo: %s\n", error.what());
    return 1;
  }
}
