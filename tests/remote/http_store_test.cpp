#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "remote/remote_error.h"
#include "remote/remote_store.h"
#include "remote/transport.h"
#include "support/object_server.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("remote/http_store");

namespace rondo {
namespace {

using test::ServerFault;

/// A server whose objects anybody reads.
struct PublicSetup {
  PublicSetup() { server.is_public = true; }

  std::unique_ptr<RemoteStore> open() {
    return open_remote_store(server.url() + "/bucket/models", server.settings());
  }

  test::TempDir dir;
  test::ObjectServer server;
};

}  // namespace

TEST_CASE("files of a web server are read, also when the connection breaks") {
  PublicSetup setup;
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

TEST_CASE("a download tells how much of it has come, also when the connection breaks") {
  PublicSetup setup;
  const std::string bytes(10000, 'w');
  setup.server.set_object("models/a.pt", bytes);
  setup.server.add_fault({ServerFault::DropInAnswer, "GET", 1});
  RemoteSettings settings = setup.server.settings();
  std::vector<int64_t> told;
  settings.on_download = [&](const std::string& address, int64_t done, std::optional<int64_t> of) {
    CHECK(address == setup.server.url() + "/bucket/models/a.pt");
    CHECK(of.value_or(0) == 10000);
    told.push_back(done);
  };
  REQUIRE(open_remote_store(setup.server.url() + "/bucket/models", settings)
              ->download("a.pt", setup.dir / "a.pt"));
  REQUIRE_FALSE(told.empty());
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.back() == 10000);
}

TEST_CASE("the version of a web server's file is its ETag") {
  PublicSetup setup;
  const auto store = setup.open();
  CHECK(store->version("a.pt").empty());
  setup.server.set_object("models/a.pt", "one");
  const std::string first = store->version("a.pt");
  CHECK_FALSE(first.empty());
  setup.server.set_object("models/a.pt", "two");
  CHECK(store->version("a.pt") != first);
}

TEST_CASE("without an ETag, size and time of the last change are the version") {
  HttpResponse head;
  head.headers = {{"content-length", "3"}};
  CHECK(head.version().empty());
  head.headers["last-modified"] = "Sat, 28 Nov 2026 18:00:00 GMT";
  CHECK(head.version() == "3 bytes of Sat, 28 Nov 2026 18:00:00 GMT");
  head.headers["etag"] = "\"a\"";
  CHECK(head.version() == "\"a\"");
}

TEST_CASE("a web server is for reading only") {
  PublicSetup setup;
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
