#include <doctest/doctest.h>
#include <torch/types.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/archives.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/temporary_files.h"
#include "support/faulty_fs.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/checkpoint_fault");

namespace {

/// What became of a call into which a fault was put.
enum class Outcome { Done, Refused, Died };

template <class Call>
Outcome outcome_of(const Call& call) {
  try {
    call();
    return Outcome::Done;
  } catch (const Error&) {
    return Outcome::Refused;
  } catch (const Killed&) {
    return Outcome::Died;
  }
}

struct Injection {
  FaultKind fault;
  int error;
};

constexpr Injection kInjections[] = {{FaultKind::Error, ENOSPC},
                                     {FaultKind::Error, EIO},
                                     {FaultKind::ShortWrite, ENOSPC},
                                     {FaultKind::Kill, 0},
                                     {FaultKind::TornKill, 0},
                                     {FaultKind::PowerCut, 0}};

const StateDict kOld{{"t", torch::zeros({100})}};
const StateDict kNew{{"t", torch::ones({200})}, {"u", torch::ones({3})}};

/// The operations of one save, counted.
size_t operations_of_a_save(const char* name) {
  const TempDir dir;
  FaultyFs files;
  write_checkpoint(files, dir / name, kNew);
  return files.operations().size();
}

/// Lets each operation of a save fail in every way.
void try_every_operation(const char* name) {
  const size_t operations = operations_of_a_save(name);
  REQUIRE(operations > 5);
  for (const Injection& injection : kInjections) {
    for (size_t n = 0; n < operations; ++n) {
      CAPTURE(int(injection.fault));
      CAPTURE(n);
      const TempDir dir;
      write_checkpoint(*real_file_system(), dir / name, kOld);
      FaultyFs files;
      files.fail_at(n, injection.fault, injection.error);
      const Outcome outcome = outcome_of([&] { write_checkpoint(files, dir / name, kNew); });
      CHECK(outcome != Outcome::Done);
      const StateDict found = read_checkpoint(dir / name);
      CHECK((first_difference(found, kOld).empty() || first_difference(found, kNew).empty()));
      if (outcome == Outcome::Died) {
        remove_stale_temporaries(*real_file_system(), dir.path());
      }
      CHECK(real_file_system()->list(dir.path()) == std::vector<std::string>{name});
    }
  }
}

}  // namespace

TEST_CASE("a save syncs the file before it renames it, and the directory at last") {
  const TempDir dir;
  FaultyFs files;
  write_checkpoint(files, dir / "x.pt", kNew);
  const auto& done = files.operations();
  const auto rename = std::find(done.begin(), done.end(), "rename");
  CHECK(std::find(done.begin(), rename, "sync") != rename);
  CHECK(std::find(std::find(done.begin(), done.end(), "sync"), done.end(), "append") == done.end());
  CHECK(done.back() == "sync_directory");
}

TEST_CASE(
    "T104: whichever operation of a save fails, the old or the new checkpoint is there whole") {
  try_every_operation("x.pt");
}

TEST_CASE("C53: the same with a compressed one") {
  try_every_operation("x.pt.zst");
}

TEST_CASE("a failed save names the path and the cause") {
  const TempDir dir;
  FaultyFs files;
  files.fail_at(2, FaultKind::ShortWrite, ENOSPC);
  try {
    write_checkpoint(files, dir / "x.pt", kNew);
    FAIL("did not throw");
  } catch (const CheckpointError& error) {
    CHECK(contains(error.what(), (dir / "x.pt").string()));
    const std::exception_ptr cause = root_cause(std::current_exception());
    CHECK_THROWS_AS(std::rethrow_exception(cause), IoError);
  }
}

TEST_CASE("T105: whichever operation of an index update fails, no entry is lost") {
  for (const Injection& injection : kInjections) {
    Outcome outcome = Outcome::Died;
    for (size_t n = 0; outcome != Outcome::Done; ++n) {
      CAPTURE(int(injection.fault));
      CAPTURE(n);
      REQUIRE(n < 100);
      const TempDir dir;
      const CheckpointIndex index(real_file_system(), dir.path(), CheckpointName());
      CheckpointIndex(index).append(dir / "checkpoint_1.pt");
      const auto files = std::make_shared<FaultyFs>();
      files->fail_at(n, injection.fault, injection.error);
      outcome = outcome_of([&] {
        CheckpointIndex(files, dir.path(), CheckpointName()).append(dir / "checkpoint_2.pt");
      });
      const auto listed = index.listed();
      CHECK((listed.size() == 1 || listed.size() == 2));
      CHECK(listed.front() == dir / "checkpoint_1.pt");
      if (outcome == Outcome::Done) {
        CHECK(listed.size() == 2);
      }
    }
  }
}

TEST_SUITE_END();
