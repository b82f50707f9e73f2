#include "remote/internal/s3_endpoint.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo::detail {

namespace {

constexpr const char kOfAmazon[] = "us-east-1";

std::string without_end_slash(std::string text) {
  while (!text.empty() && text.back() == '/') {
    text.pop_back();
  }
  return text;
}

/// A server of the user's own, or one for all buckets: the bucket is the first part of the path.
S3Endpoint in_path(const std::string& url, std::string bucket, std::string region) {
  if (url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0) {
    throw UsageError("AWS_ENDPOINT_URL: expected an address such as \"https://minio.lab:9000\"");
  }
  const size_t host = url.find("://") + 3;
  const size_t path = url.find('/', host);
  if (url.find('@', host) < path) {
    throw UsageError("AWS_ENDPOINT_URL holds a user or password: give AWS_ACCESS_KEY_ID instead");
  }
  S3Endpoint endpoint;
  endpoint.origin = url.substr(0, path);
  endpoint.host = url.substr(host, path == std::string::npos ? path : path - host);
  const std::string before = path == std::string::npos ? "" : without_end_slash(url.substr(path));
  endpoint.base = fmt::format("{}/{}/", before, bucket);
  endpoint.region = std::move(region);
  endpoint.bucket = std::move(bucket);
  return endpoint;
}

S3Endpoint of_amazon(const std::string& bucket, const std::string& region) {
  const bool is_china = region.rfind("cn-", 0) == 0;
  const std::string host = fmt::format("s3.{}.amazonaws.com{}", region, is_china ? ".cn" : "");
  if (bucket.find('.') != std::string::npos) {  // no certificate is for such a host
    return in_path("https://" + host, bucket, region);
  }
  const std::string own = bucket + "." + host;
  return {"https://" + own, own, "/", region, bucket};
}

/// "bucket@namespace", or the namespace from OCI_NAMESPACE.
S3Endpoint of_oracle(const RemoteAddress& address, const Environment& environment) {
  const size_t at = address.authority.find('@');
  const std::string bucket = address.authority.substr(0, at);
  const std::string name_space = at == std::string::npos ? environment("OCI_NAMESPACE").value_or("")
                                                         : address.authority.substr(at + 1);
  const std::string region =
      environment("OCI_REGION").value_or(find_region(environment).value_or(""));
  if (name_space.empty() || region.empty()) {
    throw UsageError(
        "oci:// needs a namespace and a region: write oci://bucket@namespace/prefix or set "
        "OCI_NAMESPACE, and set OCI_REGION; or set AWS_ENDPOINT_URL");
  }
  return in_path(
      fmt::format("https://{}.compat.objectstorage.{}.oraclecloud.com", name_space, region),
      bucket,
      region);
}

}  // namespace

S3Endpoint find_s3_endpoint(const RemoteAddress& address, const Environment& environment) {
  const std::string bucket = address.authority.substr(0, address.authority.find('@'));
  const auto url = environment("AWS_ENDPOINT_URL_S3");
  if (const auto own = url ? url : environment("AWS_ENDPOINT_URL")) {
    return in_path(*own, bucket, find_region(environment).value_or(kOfAmazon));
  }
  if (address.scheme == "gs") {
    return in_path("https://storage.googleapis.com", bucket, "auto");
  }
  if (address.scheme == "oci") {
    return of_oracle(address, environment);
  }
  return of_amazon(bucket, find_region(environment).value_or(kOfAmazon));
}

Credentials find_s3_credentials(const RemoteAddress& address, const Environment& environment) {
  const auto key = environment("GCS_KEY");
  const auto secret = environment("GCS_SECRET");
  if (address.scheme == "gs" && key && secret) {
    return {*key, *secret, ""};
  }
  return find_credentials(environment);
}

}  // namespace rondo::detail
