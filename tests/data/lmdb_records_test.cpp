#include "data/records/lmdb_records.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Forty samples that liblmdb 0.9.24 wrote; the fourth has a value on pages of its own.
LmdbRecords::Options written() {
  LmdbRecords::Options options;
  options.file = RONDO_SOURCE_DIR "/tests/fuzz/corpus/lmdb/records.mdb";
  options.tensors = {{"features", "npy"}, {"label", "cls"}};
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("data/lmdb_records");

TEST_CASE("the keys of a database are files of samples") {
  const LmdbRecords data(written());
  CHECK(data.size() == 40);
  CHECK(data.sample_name(7) == "0007");
  CHECK(equal_bytes(data.get(7)["features"], torch::tensor({70.0F, 71.0F, 72.0F, 73.0F})));
  CHECK(data.get(38)["label"].item<int64_t>() == 2);
  const at::Tensor large = data.get(3)["features"];
  CHECK(large.size(0) == 1500);
  CHECK(large[1499].item<float>() == 1529.0F);
  CHECK_THROWS_AS(data.get(40), UsageError);
}

TEST_CASE("a folder stands for its data.mdb") {
  const TempDir dir;
  std::filesystem::copy_file(written().file, dir / "data.mdb");
  LmdbRecords::Options options = written();
  options.file = dir.path().string();
  CHECK(LmdbRecords(options).size() == 40);
}

TEST_CASE("another file, and an ending that no key has, are told with what is there") {
  const TempDir dir;
  write_file(dir / "a.mdb", std::string(8192, 'x'));
  LmdbRecords::Options options = written();
  options.file = (dir / "a.mdb").string();
  CHECK(contains(message_of([&] { LmdbRecords data(options); }), "a.mdb"));
  options = written();
  options.tensors = {{"image", "jpg"}};
  const LmdbRecords data(options);
  CHECK(contains(message_of([&] { data.get(0); }), "it has [cls, npy]"));
}

TEST_SUITE_END();
