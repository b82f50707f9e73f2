#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "remote/remote_error.h"
#include "remote/remote_store.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("remote/file_store");

namespace rondo {

TEST_CASE("a folder holds objects by name") {
  const test::TempDir dir;
  const auto files = real_file_system();
  const auto store = open_remote_store("file://" + (dir / "store").string());
  CHECK(store->list().empty());
  store->check_access();
  std::ofstream(dir / "a.pt") << "weights";
  store->upload(dir / "a.pt", "runs/a.pt");
  store->put("index", "one");
  store->put("index", "two");
  CHECK(store->list() == std::vector<std::string>{"index", "runs/a.pt"});
  CHECK(store->read("index") == "two");
  CHECK_FALSE(store->read("nothing"));
  CHECK(store->download("runs/a.pt", dir / "back" / "a.pt"));
  CHECK(files->read(dir / "back" / "a.pt") == "weights");
  CHECK_FALSE(store->download("nothing", dir / "nothing"));
  CHECK_FALSE(std::filesystem::exists(dir / "nothing"));
  store->remove("runs/a.pt");
  store->remove("runs/a.pt");
  CHECK(store->list() == std::vector<std::string>{"index"});
  CHECK(store->address_of("index") == "file://" + (dir / "store/index").string());
}

TEST_CASE("an object of a folder has another version once it is replaced") {
  const test::TempDir dir;
  const auto store = open_remote_store("file://" + dir.path().string());
  CHECK(store->version("a").empty());
  store->put("a", "one");
  const std::string first = store->version("a");
  CHECK_FALSE(first.empty());
  CHECK(store->version("a") == first);
  store->put("a", "three");
  CHECK(store->version("a") != first);
}

TEST_CASE("a folder that cannot be there is refused at once") {
  const test::TempDir dir;
  std::ofstream(dir / "file") << "x";
  RemoteSettings settings;
  settings.retry.wait = [](double) { FAIL("tries again"); };
  const auto store = open_remote_store("file://" + (dir / "file/store").string(), settings);
  CHECK_THROWS_AS(store->check_access(), RemoteError);
}

}  // namespace rondo

TEST_SUITE_END();
