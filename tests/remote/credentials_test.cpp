#include "remote/credentials.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

#include "core/error.h"
#include "remote/internal/s3_endpoint.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("remote/credentials");

namespace rondo {
namespace {

Environment of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

detail::S3Endpoint endpoint_of(const std::string& address,
                               std::map<std::string, std::string> values) {
  return detail::find_s3_endpoint(parse_remote_address(address), of(std::move(values)));
}

}  // namespace

TEST_CASE("credentials come from the environment, else from the profile in the shared file") {
  const test::TempDir dir;
  const std::string file = dir / "credentials";
  std::ofstream(file) << "# comment\n[default]\naws_access_key_id=A\naws_secret_access_key = B\n"
                         "[ other ]\naws_access_key_id = C\naws_secret_access_key = D=E\n"
                         "aws_session_token = F\n";
  std::map<std::string, std::string> values{{"AWS_SHARED_CREDENTIALS_FILE", file}};
  CHECK(find_credentials(of(values)).access_key == "A");
  CHECK(find_credentials(of(values)).session_token.empty());
  values["AWS_PROFILE"] = "other";
  CHECK(find_credentials(of(values)).secret_key == "D=E");
  CHECK(find_credentials(of(values)).session_token == "F");
  values["AWS_ACCESS_KEY_ID"] = "G";
  values["AWS_SECRET_ACCESS_KEY"] = "H";
  CHECK(find_credentials(of(values)).access_key == "G");
}

TEST_CASE("without credentials the error names where they were looked for") {
  const std::map<std::string, std::string> values{{"AWS_SHARED_CREDENTIALS_FILE", "/nowhere/file"},
                                                  {"AWS_PROFILE", "mine"}};
  try {
    find_credentials(of(values));
    FAIL("found some");
  } catch (const UsageError& error) {
    const std::string text = error.what();
    CHECK(text.find("/nowhere/file") != std::string::npos);
    CHECK(text.find("[mine]") != std::string::npos);
    CHECK(text.find("AWS_ACCESS_KEY_ID") != std::string::npos);
  }
}

TEST_CASE("the region comes from the environment, else from the profile in the config file") {
  const test::TempDir dir;
  const std::string file = dir / "config";
  std::ofstream(file) << "[default]\nregion = eu-west-1\n[profile mine]\nregion = eu-north-1\n";
  std::map<std::string, std::string> values{{"AWS_CONFIG_FILE", file}};
  CHECK(find_region(of(values)) == "eu-west-1");
  values["AWS_PROFILE"] = "mine";
  CHECK(find_region(of(values)) == "eu-north-1");
  values["AWS_REGION"] = "us-west-2";
  CHECK(find_region(of(values)) == "us-west-2");
  CHECK_FALSE(find_region(of({{"AWS_CONFIG_FILE", "/nowhere/file"}})));
}

TEST_CASE("a bucket is found at its provider, or at a server of one's own") {
  const detail::S3Endpoint amazon = endpoint_of("s3://bucket/x", {{"AWS_REGION", "eu-west-1"}});
  CHECK(amazon.origin == "https://bucket.s3.eu-west-1.amazonaws.com");
  CHECK(amazon.base == "/");
  const detail::S3Endpoint dotted = endpoint_of("s3://my.bucket/x", {{"AWS_REGION", "eu-west-1"}});
  CHECK(dotted.origin == "https://s3.eu-west-1.amazonaws.com");
  CHECK(dotted.base == "/my.bucket/");
  const detail::S3Endpoint own =
      endpoint_of("s3://bucket/x", {{"AWS_ENDPOINT_URL", "http://minio:9000/store/"}});
  CHECK(own.origin == "http://minio:9000");
  CHECK(own.host == "minio:9000");
  CHECK(own.base == "/store/bucket/");
  CHECK(endpoint_of("gs://bucket/x", {}).origin == "https://storage.googleapis.com");
  const detail::S3Endpoint oracle =
      endpoint_of("oci://bucket@space/x", {{"OCI_REGION", "eu-frankfurt-1"}});
  CHECK(oracle.host == "space.compat.objectstorage.eu-frankfurt-1.oraclecloud.com");
  CHECK(oracle.base == "/bucket/");
  CHECK_THROWS_AS(endpoint_of("oci://bucket/x", {}), UsageError);
  CHECK_THROWS_AS(endpoint_of("s3://b/x", {{"AWS_ENDPOINT_URL", "minio:9000"}}), UsageError);
}

TEST_CASE("Google's keys have names of their own") {
  const Environment values = of({{"GCS_KEY", "A"},
                                 {"GCS_SECRET", "B"},
                                 {"AWS_ACCESS_KEY_ID", "C"},
                                 {"AWS_SECRET_ACCESS_KEY", "D"}});
  CHECK(detail::find_s3_credentials(parse_remote_address("gs://b"), values).access_key == "A");
  CHECK(detail::find_s3_credentials(parse_remote_address("s3://b"), values).access_key == "C");
}

}  // namespace rondo

TEST_SUITE_END();
