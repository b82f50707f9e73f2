#include "checkpoint/background_save.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cerrno>
#include <memory>

#include "checkpoint/archives.h"
#include "support/faulty_fs.h"
#include "support/temp_dir.h"

using namespace rondo;
using rondo::test::bytes_of;
using rondo::test::FaultKind;
using rondo::test::FaultyFs;
using rondo::test::TempDir;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("checkpoint/background_save");

namespace {

const auto kNoPublication = [](const fs::path&) {};

NewName always(const fs::path& path) {
  return {[path] { return path; }, {}};
}

}  // namespace

TEST_CASE("the file has the bytes of the moment of the call, and those of a plain save") {
  const TempDir dir;
  const at::Tensor shared = torch::arange(12, torch::kFloat);
  const StateDict state{{"all", shared},
                        {"tail", shared.slice(0, 6)},
                        {"t", torch::ones({3, 5}).t()},
                        {"repeated", torch::arange(3).expand({4, 3})},
                        {"scalar", torch::tensor(0.5)},
                        {"empty", torch::empty({0, 3})},
                        {"flags", torch::arange(7).gt(3)},
                        {"halves", torch::arange(1001).to(torch::kBFloat16)},
                        {"wide", torch::rand({9, 13}, torch::kComplexDouble)}};
  write_checkpoint(*real_file_system(), dir / "plain.pt", state);
  BackgroundSave save(real_file_system());
  save.begin(always(dir / "x.pt"), state, kNoPublication);
  shared.zero_();
  const auto done = save.wait();
  REQUIRE(done);
  CHECK_FALSE(done->error);
  CHECK(done->path == dir / "x.pt");
  CHECK(bytes_of(dir / "x.pt") == bytes_of(dir / "plain.pt"));
  CHECK_FALSE(save.wait());
}

TEST_CASE("a second save uses the memory of the first, also for other shapes") {
  const TempDir dir;
  BackgroundSave save(real_file_system());
  for (const int64_t size : {5, 5, 9, 2}) {
    const StateDict state{{"a", torch::full({size}, static_cast<float>(size))}, {"n", size}};
    save.begin(always(dir / "x.pt"), state, kNoPublication);
    CHECK_FALSE(save.wait()->error);
    CHECK(first_difference(read_checkpoint(dir / "x.pt"), state).empty());
    fs::remove(dir / "x.pt");
  }
}

TEST_CASE("publication comes after the file is whole, on the writing thread") {
  const TempDir dir;
  BackgroundSave save(real_file_system());
  bool was_whole = false;
  save.begin(always(dir / "x.pt"), StateDict{{"n", 1}}, [&](const fs::path& path) {
    was_whole = read_checkpoint(path).at("n").as_int() == 1;
  });
  save.wait();
  CHECK(was_whole);
}

TEST_CASE("an error is reported once, and nothing is published; the next save works") {
  const TempDir dir;
  const auto files = std::make_shared<FaultyFs>();
  files->fail_at(3, FaultKind::ShortWrite, ENOSPC);
  BackgroundSave save(files);
  bool is_published = false;
  save.begin(
      always(dir / "x.pt"), StateDict{{"n", 1}}, [&](const fs::path&) { is_published = true; });
  const auto done = save.wait();
  REQUIRE(done);
  CHECK_THROWS_AS(std::rethrow_exception(done->error), CheckpointError);
  CHECK_FALSE(is_published);
  save.begin(always(dir / "x.pt"), StateDict{{"n", 2}}, kNoPublication);
  CHECK_FALSE(save.wait()->error);
}

TEST_CASE("one save is in flight at a time, and leaving waits for it") {
  const TempDir dir;
  {
    BackgroundSave save(real_file_system());
    save.begin(always(dir / "x.pt"), StateDict{{"a", torch::ones({1 << 20})}}, kNoPublication);
    CHECK_THROWS_AS(save.begin(always(dir / "y.pt"), StateDict{{"n", 1}}, kNoPublication),
                    UsageError);
  }
  CHECK(read_checkpoint(dir / "x.pt").contains("a"));
  CHECK_FALSE(fs::exists(dir / "y.pt"));
}

TEST_CASE("a path that another process takes meanwhile stays that one's; the next is used") {
  const TempDir dir;
  BackgroundSave save(real_file_system());
  fs::path published;
  int asked = 0;
  const NewName name{[&] { return dir.path() / ("x" + std::to_string(asked++) + ".pt"); }, {}};
  rondo::test::write_bytes(dir / "x0.pt", "theirs");
  rondo::test::write_bytes(dir / "x1.pt", "theirs");
  save.begin(name, StateDict{{"n", 1}}, [&](const fs::path& path) { published = path; });
  CHECK(save.wait()->path == dir / "x2.pt");
  CHECK(published == dir / "x2.pt");
  CHECK(bytes_of(dir / "x0.pt") == "theirs");
  CHECK(bytes_of(dir / "x1.pt") == "theirs");
  CHECK(read_checkpoint(dir / "x2.pt").at("n").as_int() == 1);
  CHECK(real_file_system()->list(dir.path()).size() == 3);
}

TEST_CASE("a state that cannot be saved is refused before anything is written") {
  const TempDir dir;
  BackgroundSave save(real_file_system());
  CHECK_THROWS_AS(save.begin(always(dir / "x.pt"), StateDict{{"a", at::Tensor()}}, kNoPublication),
                  CheckpointError);
  CHECK_FALSE(save.wait());
  CHECK(real_file_system()->list(dir.path()).empty());
}

TEST_SUITE_END();
