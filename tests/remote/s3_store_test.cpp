#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "remote/remote_error.h"
#include "remote/remote_store.h"
#include "support/contains.h"
#include "support/object_server.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("remote/s3_store");

namespace rondo {
namespace {

using test::contains;
using test::ObjectServer;
using test::ServerFault;

std::string some_bytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

struct Setup {
  Setup() { std::ofstream(dir / "file", std::ios::binary) << bytes; }

  std::unique_ptr<RemoteStore> open() {
    settings.part_size = 1000;
    return open_remote_store("s3://bucket/runs/one", settings);
  }

  std::string downloaded(RemoteStore& store, const std::string& name) const {
    REQUIRE(store.download(name, dir / "back"));
    return real_file_system()->read(dir / "back");
  }

  test::TempDir dir;
  std::string bytes = some_bytes(3500);
  ObjectServer server;
  RemoteSettings settings = server.settings();
};

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const RemoteError& error) {
    return error.what();
  }
  return "";
}

/// Nothing secret is in a text.
void check_discreet(const std::string& text, const ObjectServer& server) {
  CHECK_FALSE(contains(text, server.environment().at("AWS_SECRET_ACCESS_KEY")));
  CHECK_FALSE(contains(text, server.environment().at("AWS_SESSION_TOKEN")));
}

}  // namespace

TEST_CASE("objects are put, read, listed and removed under the prefix") {
  Setup setup;
  const auto store = setup.open();
  store->check_access();
  store->put("a &+%ä.toml", "index");
  store->put("b", "");
  CHECK(setup.server.objects() ==
        std::map<std::string, std::string>{{"runs/one/a &+%ä.toml", "index"}, {"runs/one/b", ""}});
  setup.server.set_object("runs/other", "x");
  CHECK(store->list() == std::vector<std::string>{"a &+%ä.toml", "b"});
  CHECK(store->read("a &+%ä.toml") == "index");
  CHECK_FALSE(store->read("c"));
  store->remove("b");
  store->remove("b");
  CHECK(store->list() == std::vector<std::string>{"a &+%ä.toml"});
  CHECK(store->address_of("b") == "s3://bucket/runs/one/b");
}

TEST_CASE("an object has another version once it is replaced") {
  Setup setup;
  const auto store = setup.open();
  CHECK(store->version("a").empty());
  store->put("a", "one");
  const std::string first = store->version("a");
  CHECK_FALSE(first.empty());
  CHECK(store->version("a") == first);
  store->put("a", "two");
  CHECK(store->version("a") != first);
}

TEST_CASE("a long list comes in several answers") {
  Setup setup;
  setup.server.page_size = 2;
  for (int i = 0; i < 5; ++i) {
    setup.server.set_object("runs/one/" + std::to_string(i), "x");
  }
  CHECK(setup.open()->list() == std::vector<std::string>{"0", "1", "2", "3", "4"});
}

TEST_CASE("a large file goes in parts and comes back the same") {
  Setup setup;
  const auto store = setup.open();
  store->upload(setup.dir / "file", "file");
  CHECK(setup.server.objects().at("runs/one/file") == setup.bytes);
  CHECK(setup.server.open_uploads() == 0);
  CHECK(setup.downloaded(*store, "file") == setup.bytes);
  CHECK_FALSE(store->download("nothing", setup.dir / "nothing"));
}

TEST_CASE("uploads survive what goes wrong on the way") {
  for (const ServerFault::Kind kind : {ServerFault::DropBefore,
                                       ServerFault::DropAfter,
                                       ServerFault::Error500,
                                       ServerFault::SlowRead}) {
    for (const char* const method : {"PUT", "POST", "HEAD"}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(method);
      Setup setup;
      setup.server.add_fault({kind, method, 2});
      setup.open()->upload(setup.dir / "file", "file");
      CHECK(setup.server.objects().at("runs/one/file") == setup.bytes);
    }
  }
}

TEST_CASE("downloads go on where the connection broke") {
  Setup setup;
  const auto store = setup.open();
  store->upload(setup.dir / "file", "file");
  for (const ServerFault::Kind kind : {ServerFault::DropBefore,
                                       ServerFault::DropInAnswer,
                                       ServerFault::Error500,
                                       ServerFault::SlowRead,
                                       ServerFault::WrongChecksum}) {
    CAPTURE(static_cast<int>(kind));
    setup.server.add_fault({kind, "GET", 2});
    CHECK(setup.downloaded(*store, "file") == setup.bytes);
  }
}

TEST_CASE("a file is not there while its object cannot be read whole") {
  Setup setup;
  const auto store = setup.open();
  store->upload(setup.dir / "file", "file");
  setup.server.add_fault({ServerFault::WrongChecksum, "GET", 100});
  CHECK(contains(error_of([&] { store->download("file", setup.dir / "back"); }), "checksum"));
  CHECK_FALSE(std::filesystem::exists(setup.dir / "back"));
}

TEST_CASE("an upload that fails leaves no object and no parts") {
  Setup setup;
  const auto store = setup.open();
  setup.settings.retry.retries = 1;
  setup.server.add_fault({ServerFault::Error500, "PUT", 100});
  const std::string error = error_of([&] { setup.open()->upload(setup.dir / "file", "file"); });
  CHECK(contains(error, "runs/one/file"));
  CHECK(contains(error, "500"));
  CHECK(setup.server.objects().empty());
  CHECK(setup.server.open_uploads() == 0);
}

TEST_CASE("an upload that is given up leaves no parts either") {
  Setup setup;
  const auto gives_up = std::make_shared<std::atomic<bool>>(false);
  setup.settings.retry.gives_up = gives_up;
  setup.settings.retry.wait = [&](double) { *gives_up = true; };
  setup.server.add_fault({ServerFault::Error500, "PUT", 1});
  CHECK_THROWS_AS(setup.open()->upload(setup.dir / "file", "file"), RemoteError);
  CHECK(gives_up->load());
  CHECK(setup.server.objects().empty());
  CHECK(setup.server.open_uploads() == 0);
}

TEST_CASE("what is wrong with bucket and credentials is said at once, without secrets") {
  Setup setup;
  setup.settings.retry.wait = [](double) { FAIL("tries again"); };
  const auto check = [&](const std::string& address) {
    return error_of([&] { open_remote_store(address, setup.settings)->check_access(); });
  };
  CHECK(contains(check("s3://other/x"), "NoSuchBucket"));
  const auto with = [&](const std::string& name, const std::string& value) {
    auto values = setup.server.environment();
    values[name] = value;
    setup.settings.environment = [values](const char* asked) {
      const auto found = values.find(asked);
      return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
  };
  with("AWS_SECRET_ACCESS_KEY", "wrong-secret");
  const std::string of_secret = check("s3://bucket/x");
  CHECK(contains(of_secret, "AWS_SECRET_ACCESS_KEY"));
  CHECK_FALSE(contains(of_secret, "wrong-secret"));
  check_discreet(of_secret, setup.server);
  with("AWS_ACCESS_KEY_ID", "NOBODY");
  CHECK(contains(check("s3://bucket/x"), "InvalidAccessKeyId"));
  with("none", "");
  setup.server.add_fault({ServerFault::ExpiredToken, "GET", 1});
  const std::string of_token = check("s3://bucket/x");
  CHECK(contains(of_token, "renew"));
  check_discreet(of_token, setup.server);
}

TEST_CASE("credentials that are renewed in the file are taken from there") {
  Setup setup;
  const auto all = setup.server.environment();
  const std::filesystem::path file = setup.dir / "credentials";
  const auto write = [&](const std::string& secret) {
    std::ofstream(file) << "[default]\naws_access_key_id = " << all.at("AWS_ACCESS_KEY_ID")
                        << "\naws_secret_access_key = " << secret
                        << "\naws_session_token = " << all.at("AWS_SESSION_TOKEN") << "\n";
  };
  setup.settings.environment = [&](const char* name) -> std::optional<std::string> {
    const std::string asked = name;
    if (asked == "AWS_SHARED_CREDENTIALS_FILE") {
      return file.string();
    }
    return asked == "AWS_ENDPOINT_URL" || asked == "AWS_REGION" ? std::optional(all.at(asked))
                                                                : std::nullopt;
  };
  const auto store = setup.open();
  write("old");
  CHECK_THROWS_AS(store->put("a", "x"), RemoteError);
  write(all.at("AWS_SECRET_ACCESS_KEY"));
  CHECK_NOTHROW(store->put("a", "x"));
}

}  // namespace rondo

TEST_SUITE_END();
