#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/archives.h"
#include "checkpoint/checkpoint_name.h"
#include "checkpoint/checkpoint_tools.h"
#include "checkpoint/internal/compressed_file.h"
#include "checkpoint/packed.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;
using rondo::detail::Compression;

TEST_SUITE_BEGIN("checkpoint/compression");

namespace {

constexpr const char* kSuffixes[] = {".gz", ".zst"};

/// A checkpoint of `size` bytes or more that shrinks.
StateDict large_state(int64_t size) {
  return {{"zeros", torch::zeros({size / 4})}, {"numbers", torch::arange(100'000)}};
}

/// Reading must give a CheckpointError, or what was saved.
/// \return true when it was refused
bool is_refused_or_equal(const std::filesystem::path& path, const StateDict& saved) {
  try {
    const StateDict state = read_checkpoint(path);
    CHECK(first_difference(state, saved).empty());
    return false;
  } catch (const CheckpointError& error) {
    CHECK(contains(error.what(), path.filename().string()));
    return true;
  }
}

}  // namespace

TEST_CASE("C53: a name that ends with .gz or .zst is written compressed, and read again") {
  const TempDir dir;
  const StateDict state = large_state(10'000'000);
  write_checkpoint(*real_file_system(), dir / "x.pt", state);
  for (const std::string suffix : kSuffixes) {
    CAPTURE(suffix);
    write_checkpoint(*real_file_system(), dir.path() / ("x.pt" + suffix), state);
    CHECK(std::filesystem::file_size(dir.path() / ("x.pt" + suffix)) < 1'000'000);
    CHECK(first_difference(read_checkpoint(dir.path() / ("x.pt" + suffix)), state).empty());
    CHECK(read_manifest(dir.path() / ("x.pt" + suffix)) == read_manifest(dir / "x.pt"));
    write_checkpoint(*real_file_system(), dir.path() / ("y.pt" + suffix), state);
    CHECK(bytes_of(dir.path() / ("x.pt" + suffix)) == bytes_of(dir.path() / ("y.pt" + suffix)));
    CheckpointSnapshot snapshot;
    snapshot.take({[&] { return dir.path() / ("z.pt" + suffix); }, {}}, state);
    snapshot.write(*real_file_system());
    CHECK(bytes_of(dir.path() / ("x.pt" + suffix)) == bytes_of(dir.path() / ("z.pt" + suffix)));
  }
}

TEST_CASE("C53: unpacked by the tools that everybody has it is the plain file") {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "plain.pt", sample_state());
  write_checkpoint(*real_file_system(), dir / "x.pt.gz", sample_state());
  REQUIRE(std::system(("gunzip '" + (dir / "x.pt.gz").string() + "'").c_str()) == 0);
  CHECK(bytes_of(dir / "x.pt") == bytes_of(dir / "plain.pt"));
}

TEST_CASE("C53: compressions and archives that rondo does not write are refused with advice") {
  const TempDir dir;
  for (const char* name : {"x_{step}.tar",
                           "x_{step}.tar.gz",
                           "x_{step}.tgz",
                           "x_{step}.tar.bz2",
                           "x_{step}.tar.lzma",
                           "x_{step}.tar.foo",
                           "x_{step}.pt.bz2",
                           "x_{step}.pt.xz",
                           "x_{step}.pt.lz4",
                           "x_{step}.pt.zstd"}) {
    CAPTURE(name);
    try {
      write_checkpoint(*real_file_system(), dir / name, sample_state());
      FAIL("did not throw");
    } catch (const CheckpointError&) {
      CHECK(contains(describe(std::current_exception()), ".pt.zst"));
    }
    CHECK_THROWS_AS(CheckpointName{name}, UsageError);
  }
  CHECK_THROWS_AS(write_any(*real_file_system(), dir / "x.safetensors.gz", sample_state()),
                  CheckpointError);
  CHECK(real_file_system()->list(dir.path()).empty());
}

TEST_CASE("what is compressed is known by its bytes, under whatever name") {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "x.pt", sample_state());
  const std::string plain = bytes_of(dir / "x.pt");
  const StateDict saved = read_checkpoint(dir / "x.pt");
  for (const auto compression : {Compression::Gzip, Compression::Zstd}) {
    CAPTURE(int(compression));
    write_bytes(dir / "x", packed(compression, plain));
    CHECK(first_difference(read_checkpoint(dir / "x"), saved).empty());
    const std::string_view view = plain;
    write_bytes(dir / "x.pt",  // as pigz and pzstd write it
                packed(compression, view.substr(0, 1000)) + packed(compression, "") +
                    packed(compression, view.substr(1000)));
    CHECK(first_difference(read_checkpoint(dir / "x.pt"), saved).empty());
  }
}

TEST_CASE("a compressed file that was cut short is found, and a flipped bit changes no value") {
  const TempDir dir;
  const StateDict state{{"t", torch::arange(20)}};
  for (const std::string suffix : kSuffixes) {
    const std::filesystem::path path = dir.path() / ("x.pt" + suffix);
    write_checkpoint(*real_file_system(), path, state);
    const std::string bytes = bytes_of(path);
    for (size_t size = 0; size < bytes.size(); ++size) {
      write_bytes(path, bytes.substr(0, size));
      CHECK(is_refused_or_equal(path, state));
    }
    size_t accepted = 0;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      write_bytes(path, damaged);
      accepted += is_refused_or_equal(path, state) ? 0 : 1;
    }
    CHECK(accepted < 8 * 12);  // fields of the frame that say nothing about the bytes in it
    write_bytes(path, bytes + "x");
    CHECK(is_refused_or_equal(path, state));
  }
}

TEST_CASE("a small file that unpacks to a huge one is refused on the way") {
  const TempDir dir;
  const std::string zeros(size_t{80} << 20, '\0');
  const std::string bytes = packed(Compression::Zstd, zeros);
  REQUIRE(bytes.size() * 1000 < size_t{16} << 20);
  write_bytes(dir / "x.pt.zst", bytes);
  CHECK(contains(read_error(dir / "x.pt.zst"), "unpacks"));
  CHECK(real_file_system()->list(dir.path()) == std::vector<std::string>{"x.pt.zst"});
}

TEST_CASE("a copy keeps its compression, a conversion takes that of its name") {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "a.pt.zst", sample_state());
  copy_checkpoint(*real_file_system(), dir / "a.pt.zst", dir / "b.pt.zst");
  CHECK(bytes_of(dir / "a.pt.zst") == bytes_of(dir / "b.pt.zst"));
  CHECK_THROWS_AS(copy_checkpoint(*real_file_system(), dir / "a.pt.zst", dir / "c.pt"),
                  CheckpointError);
  write_any(*real_file_system(), dir / "c.pt", read_checkpoint(dir / "a.pt.zst"));
  write_checkpoint(*real_file_system(), dir / "d.pt", sample_state());
  CHECK(bytes_of(dir / "c.pt") == bytes_of(dir / "d.pt"));
}

TEST_SUITE_END();
