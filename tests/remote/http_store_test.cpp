#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/file_system.h"
#include "remote/remote_error.h"
#include "remote/remote_store.h"
#include "support/object_server.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("remote/http_store");

namespace rondo {
namespace {

using test::ServerFault;

/// A server whose objects anybody reads.
struct Setup {
  Setup() { server.is_public = true; }

  std::unique_ptr<RemoteStore> open() {
    return open_remote_store(server.url() + "/bucket/models", server.settings());
  }

  test::TempDir dir;
  test::ObjectServer server;
};

}  // namespace

TEST_CASE("files of a web server are read, also when the connection breaks") {
  Setup setup;
  const std::string bytes(10000, 'w');
  setup.server.set_object("models/a.pt", bytes);
  const auto store = setup.open();
  CHECK(store->read("a.pt") == bytes);
  CHECK_FALSE(store->read("b.pt"));
  setup.server.add_fault({ServerFault::DropInAnswer, "GET", 3});
  REQUIRE(store->download("a.pt", setup.dir / "a.pt"));
  CHECK(real_file_system()->read(setup.dir / "a.pt") == bytes);
  CHECK_FALSE(store->download("b.pt", setup.dir / "b.pt"));
  CHECK_FALSE(std::filesystem::exists(setup.dir / "b.pt"));
}

TEST_CASE("a web server is for reading only") {
  Setup setup;
  const auto store = setup.open();
  CHECK_THROWS_AS(store->put("a", "x"), UsageError);
  CHECK_THROWS_AS(store->list(), UsageError);
  CHECK_THROWS_AS(store->check_access(), UsageError);
}

TEST_CASE("a server that nobody answers for is an error with its name") {
  RemoteSettings settings;
  settings.retry.retries = 1;
  settings.retry.wait = [](double) {};
  std::string url;
  { url = test::ObjectServer().url(); }
  try {
    open_remote_store(url + "/x", settings)->read("a");
    FAIL("was read");
  } catch (const RemoteError& error) {
    CHECK(std::string(error.what()).find(url) != std::string::npos);
    CHECK(error.can_retry);
  }
}

}  // namespace rondo

TEST_SUITE_END();
