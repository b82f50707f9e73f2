// The examples that AWS publishes, in "Signature Calculations for the Authorization Header" of the
// API reference of S3, in its test suite for Signature Version 4 (get-vanilla), and in "Deriving
// the signing key". Their keys are examples, too.

#include "remote/signature_v4.h"

#include <doctest/doctest.h>

#include <string>

#include "remote/digests.h"

TEST_SUITE_BEGIN("remote/signature_v4");

namespace rondo {
namespace {

const std::string kOfS3 = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const std::string kOfSuite = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const SignatureScope kMay{"20130524T000000Z", "us-east-1"};
const std::string kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

SignedRequest request_of_may(const std::string& method, const std::string& path) {
  return {method,
          path,
          {},
          {{"host", "examplebucket.s3.amazonaws.com"},
           {"x-amz-content-sha256", kEmpty},
           {"x-amz-date", kMay.time}},
          kEmpty};
}

}  // namespace

TEST_CASE("the hash of nothing is the published one") {
  CHECK(sha256_hex("") == kEmpty);
}

TEST_CASE("AWS: get a part of an object") {
  SignedRequest request = request_of_may("GET", "/test.txt");
  request.headers["range"] = "bytes=0-9";
  CHECK(authorization_v4(request, kMay, {"AKIAIOSFODNN7EXAMPLE", kOfS3, ""}) ==
        "AWS4-HMAC-SHA256 "
        "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_CASE("AWS: put an object") {
  const std::string path = uri_encoded("/test$file.text", true);
  CHECK(path == "/test%24file.text");
  SignedRequest request = request_of_may("PUT", path);
  request.payload_hash = sha256_hex("Welcome to Amazon S3.");
  request.headers["x-amz-content-sha256"] = request.payload_hash;
  request.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  request.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  CHECK(signature_v4(request, kMay, kOfS3) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_CASE("AWS: a query with an empty value") {
  SignedRequest request = request_of_may("GET", "/");
  request.query = {{"lifecycle", ""}};
  CHECK(signature_v4(request, kMay, kOfS3) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST_CASE("AWS: list objects") {
  SignedRequest request = request_of_may("GET", "/");
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  CHECK(signature_v4(request, kMay, kOfS3) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("AWS: the test suite's get-vanilla") {
  const SignedRequest request{
      "GET",
      "/",
      {},
      {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
      kEmpty};
  CHECK(signature_v4(request, {"20150830T123600Z", "us-east-1", "service"}, kOfSuite) ==
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST_CASE("AWS: the key of a day") {
  CHECK(to_hex(signing_key_v4({"20120215T000000Z", "us-east-1", "iam"}, kOfSuite)) ==
        "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d");
}

TEST_CASE("names and values are encoded before they are put in order") {
  CHECK(query_text({{"b", "x y"}, {"a", "1/2"}, {"a-", "~"}}) == "a=1%2F2&a-=~&b=x%20y");
}

}  // namespace rondo

TEST_SUITE_END();
