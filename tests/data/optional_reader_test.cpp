#include "data/optional_reader.h"

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "core/registry.h"
#include "data/data_files.h"
#include "data/register.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::string text_about(const char* name) {
  Registry<DataSource> registry("data set");
  register_builtin_datasets(registry);
  return registry.find(name)->doc;
}

}  // namespace

TEST_SUITE_BEGIN("data/optional_reader");

TEST_CASE("a reader that was not built stays known: its text and its error name what it lacks") {
  for (const OptionalReader& reader : optional_readers()) {
    CAPTURE(reader.name);
    const std::string option = "RONDO_WITH_" + reader.name;
    const std::string note = not_built_note(reader.name);
    const std::string error = message_of([&] { require_reader(reader.name, "a.bin"); });
    CHECK(contains(without_reader(reader.name, "a.bin"), reader.package));
    CHECK(contains(note, option) == !reader.is_built);
    CHECK(contains(note, reader.package) == !reader.is_built);
    CHECK(contains(error, option) == !reader.is_built);
    CHECK(contains(error, "a.bin") == !reader.is_built);
  }
  CHECK(contains(text_about("AudioFolder"), not_built_note("SNDFILE")));
  CHECK(contains(text_about("ArrayFiles"), not_built_note("HDF5")));
}

TEST_CASE("the option of a reader that nobody knows is a mistake of the program") {
  CHECK_THROWS_AS(not_built_note("PARQUET"), UsageError);
}

TEST_SUITE_END();
