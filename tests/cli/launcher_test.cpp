#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/version.h"
#include "support/file_content.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

using rondo::test::content;
using rondo::test::TempDir;

namespace {

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs a shell command.
Result run(const std::string& command) {
  const TempDir dir;
  const std::string redirected =
      command + " >'" + (dir / "out").string() + "' 2>'" + (dir / "err").string() + "'";
  const int status = std::system(redirected.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(dir / "out"), content(dir / "err")};
}

Result rondo_with(const std::string& arguments) {
  return run(std::string("'") + RONDO_LAUNCHER + "' " + arguments);
}

/// A launcher in a place of its own, with an engine that tells how it was started.
class Sandbox {
 public:
  explicit Sandbox(const char* engine_directory) {
    fs::create_directories(dir_ / "bin");
    fs::create_directories(dir_ / engine_directory);
    fs::copy_file(RONDO_LAUNCHER, dir_ / "bin/rondo");
    const fs::path engine = dir_ / engine_directory / "rondo-engine";
    std::ofstream(engine) << "#!/bin/sh\n"
                             "printf '[%s]' \"$@\"\n"
                             "echo \" $MALLOC_MMAP_THRESHOLD_ $MALLOC_TRIM_THRESHOLD_\"\n"
                             "echo \" $OMP_WAIT_POLICY $GOMP_SPINCOUNT $LD_LIBRARY_PATH\"\n"
                             "echo \"core: $OPENBLAS_CORETYPE\"\n"
                             "echo \"cores: $(grep Cpus_allowed_list /proc/self/status)\"\n"
                             "exit 7\n";
    fs::permissions(engine, fs::perms::owner_all);
  }

  Result run(const std::string& environment, const std::string& arguments) const {
    return ::run(
        "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT -u LD_LIBRARY_PATH -u MALLOC_MMAP_THRESHOLD_ "
        "-u MALLOC_TRIM_THRESHOLD_ -u OPENBLAS_CORETYPE " +
        environment + " '" + (dir_ / "bin/rondo").string() + "' " + arguments);
  }

 private:
  TempDir dir_;
};

/// What the engine says when it loads BLAS from `directory`.
Result engine_with_blas(const fs::path& directory, const std::string& arguments) {
  const std::string engine = fs::path(RONDO_LAUNCHER).replace_filename("rondo-engine").string();
  return run("LD_LIBRARY_PATH='" + directory.string() + "':\"$LD_LIBRARY_PATH\" '" + engine + "' " +
             arguments);
}

bool has_openmp_blas() {
  return fs::is_directory(RONDO_OPENMP_BLAS_DIR);
}

}  // namespace

TEST_SUITE_BEGIN("cli/launcher");

TEST_CASE("help and version are answered on standard output with code 0") {
  for (const char* arguments : {"--help",
                                "fit --help",
                                "validate --help",
                                "validate_all --help",
                                "describe --help",
                                "inspect --help",
                                "version --help"}) {
    INFO(arguments);
    const Result result = rondo_with(arguments);
    CHECK(result.code == 0);
    CHECK(result.out.find("Usage") != std::string::npos);
    CHECK(result.err.empty());
  }
  const Result version = rondo_with("--version");
  CHECK(version.code == 0);
  CHECK(version.out.find(rondo::kVersion) != std::string::npos);
}

TEST_CASE("wrong use is answered on standard error with code 2") {
  for (const char* arguments : {"", "train a.toml", "fit", "fit a.toml b", "fit a.toml --jsno"}) {
    INFO(arguments);
    const Result result = rondo_with(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_FALSE(result.err.empty());
  }
}

TEST_CASE("the launcher does not load LibTorch") {
  const Result result = run(std::string("ldd '") + RONDO_LAUNCHER + "'");
  REQUIRE(result.code == 0);
  CHECK(result.out.find("libc.so") != std::string::npos);
  CHECK(result.out.find("torch") == std::string::npos);
}

TEST_CASE("the engine beside the launcher, or in libexec, gets every argument") {
  for (const char* directory : {"bin", "libexec/rondo"}) {
    INFO(directory);
    const Result result =
        Sandbox(directory).run("", "fit 'a b.toml' x.y='[1, 2]' --json --plugin p.so");
    CHECK(result.code == 7);
    CHECK(result.out.find("[fit][a b.toml][x.y=[1, 2]][--json][--plugin][p.so]") == 0);
  }
}

TEST_CASE("idle threads of the engine sleep, unless the user chose") {
  const Sandbox sandbox("bin");
  CHECK(sandbox.run("", "version").out.find(" passive 0 ") != std::string::npos);
  CHECK(sandbox.run("OMP_WAIT_POLICY=active GOMP_SPINCOUNT=9", "version").out.find(" active 9 ") !=
        std::string::npos);
}

TEST_CASE("freed memory stays with the engine, unless the user chose") {
  const Sandbox sandbox("bin");
  CHECK(sandbox.run("", "version").out.find(" 67108864 268435456\n") != std::string::npos);
  CHECK(sandbox.run("MALLOC_TRIM_THRESHOLD_=5", "version").out.find(" 67108864 5\n") !=
        std::string::npos);
}

TEST_CASE("the OpenMP build of OpenBLAS stands before the user's library path") {
  const std::string out = Sandbox("bin").run("LD_LIBRARY_PATH=/opt/mine", "version").out;
  const std::string blas = has_openmp_blas() ? std::string(RONDO_OPENMP_BLAS_DIR) + ":" : "";
  CHECK(out.find(" " + blas + "/opt/mine\n") != std::string::npos);
}

TEST_CASE("an OpenBLAS that is older than the processor is told what it is, unless the user did") {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    const Result result =
        run(std::string("env -u OPENBLAS_CORETYPE '") + RONDO_LAUNCHER + "' version");
    CHECK(result.out.find("BLAS") != std::string::npos);
    CHECK(result.out.find("Prescott") == std::string::npos);
  }
#endif
  const Result chosen = Sandbox("bin").run("OPENBLAS_CORETYPE=Prescott", "version");
  CHECK(chosen.out.find("core: Prescott\n") != std::string::npos);
}

TEST_CASE(
    "the engine may use the cores that the launcher might, however OpenMP is to bind threads") {
  const Sandbox sandbox("bin");
  const auto cores_with = [&](const std::string& environment) {
    const std::string out = sandbox.run(environment, "version").out;
    return out.substr(out.find("cores: "));
  };
  CHECK(cores_with("OMP_PROC_BIND=true") == cores_with(""));
  CHECK(cores_with("OMP_PLACES=cores") == cores_with(""));
}

TEST_CASE("without an engine the launcher says what it looked for") {
  const TempDir dir;
  fs::copy_file(RONDO_LAUNCHER, dir / "rondo");
  const Result result = run("'" + (dir / "rondo").string() + "' version");
  CHECK(result.code == 1);
  CHECK(result.err.find("rondo-engine") != std::string::npos);
  CHECK(result.err.find(dir.path().string()) != std::string::npos);
}

TEST_CASE("the engine tells its versions and runs on the OpenMP build of OpenBLAS") {
  const Result result = rondo_with("version");
  CHECK(result.code == 0);
  CHECK(result.out.find(rondo::kVersion) != std::string::npos);
  CHECK(result.out.find("LibTorch") != std::string::npos);
  if (has_openmp_blas()) {
    CHECK(result.out.find("openblas-openmp") != std::string::npos);
  } else {
    MESSAGE("skipped: " << RONDO_OPENMP_BLAS_DIR << " is not there");
  }
}

TEST_CASE("the BLAS that runs products is told and judged, whatever else is loaded") {
  // LibTorch also links liblapack, which on Debian loads OpenBLAS.
  const fs::path openmp = RONDO_OPENMP_BLAS_DIR;
  const fs::path reference = openmp.parent_path() / "blas";
  if (!has_openmp_blas() || !fs::exists(reference / "libblas.so.3")) {
    MESSAGE("skipped: " << openmp << " and " << reference << " are not both there");
    return;
  }
  const TempDir dir;
  const std::string update = std::string("fit '") + RONDO_SOURCE_DIR +
                             "/configs/recipes/quickstart.toml' trainer.init.loop.max_steps=1 -o '";
  for (const fs::path& blas : {reference, openmp}) {
    CAPTURE(blas);
    const bool is_slow = blas == reference;
    const std::string version = engine_with_blas(blas, "version").out;
    const size_t begin = version.find("BLAS " + blas.string() + "/");
    REQUIRE(begin != std::string::npos);
    const std::string line = version.substr(begin, version.find('\n', begin) - begin);
    const bool has_core = line.find('(') != std::string::npos;
    CHECK(has_core == !is_slow);
    const std::string run_dir = (dir.path() / blas.filename()).string();
    const Result fit = engine_with_blas(blas, update + run_dir + "'");
    CHECK(fit.code == 0);
    const bool is_told = (fit.out + fit.err).find("libopenblas0-openmp") != std::string::npos;
    CHECK(is_told == is_slow);
  }
}

TEST_CASE("a component that does not exist is a wrong use for the engine as well") {
  const Result result = rondo_with("describe NoSuchThing");
  CHECK(result.code == 2);
  CHECK(result.err.find("NoSuchThing") != std::string::npos);
}

TEST_SUITE_END();
