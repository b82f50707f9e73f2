#include "remote/remote_address.h"

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "support/contains.h"

TEST_SUITE_BEGIN("remote/remote_address");

namespace rondo {
namespace {

using test::contains;

/// What refuses an address; "" when nothing does.
std::string refusal_of(const std::string& text) {
  try {
    parse_remote_address(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an address is taken apart") {
  const RemoteAddress s3 = parse_remote_address("S3://bucket/runs/one two");
  CHECK(s3.scheme == "s3");
  CHECK(s3.authority == "bucket");
  CHECK(s3.path == "runs/one two");
  const RemoteAddress file = parse_remote_address("file:///mnt/store");
  CHECK(file.authority.empty());
  CHECK(file.path == "mnt/store");
  const RemoteAddress web = parse_remote_address("https://host:8080/a/b.pt?version=3");
  CHECK(web.authority == "host:8080");
  CHECK(web.path == "a/b.pt");
  CHECK(web.query == "version=3");
  CHECK(parse_remote_address("s3://bucket").path.empty());
}

TEST_CASE("paths of this machine are no addresses") {
  CHECK(is_remote("gs://b/x"));
  CHECK_FALSE(is_remote("runs/one/checkpoint_3.pt"));
  CHECK_FALSE(is_remote("/tmp/a"));
  CHECK_FALSE(is_remote("://a"));
  CHECK(contains(refusal_of("runs/one"), "runs/one"));
}

TEST_CASE("what cannot be read is refused by name, with what to do") {
  CHECK(contains(refusal_of("azure://container/x"), "azcopy"));
  CHECK(contains(refusal_of("dbfs://x"), "dbfs"));
  CHECK(contains(refusal_of("minio://bucket/x"), "AWS_ENDPOINT_URL"));
  CHECK(contains(refusal_of("file://tmp/x"), "three slashes"));
  CHECK(contains(refusal_of("s3:///x"), "bucket"));
}

TEST_CASE("an address with a secret in it is refused without showing it") {
  const std::string of_user = refusal_of("https://me:hunter2@host/x");
  CHECK(contains(of_user, "environment"));
  CHECK_FALSE(contains(of_user, "hunter2"));
  const std::string of_signed = refusal_of("https://host/x?a=b&X-Amz-Signature=abcdef");
  CHECK(contains(of_signed, "signed"));
  CHECK_FALSE(contains(of_signed, "abcdef"));
  // That of a file to load is split first, and its name would be in every message.
  CHECK_THROWS_AS(split_address("https://host/x.pt?X-Amz-Signature=abcdef"), UsageError);
}

TEST_CASE("an address is split behind its last slash") {
  CHECK(split_address("s3://b/runs/a.pt").folder == "s3://b/runs/");
  CHECK(split_address("s3://b/runs/a.pt").name == "a.pt");
  CHECK(split_address("https://h/a/b.pt?v=a/b").name == "b.pt?v=a/b");
  CHECK_THROWS_AS(split_address("s3://b"), UsageError);
}

}  // namespace rondo

TEST_SUITE_END();
