#pragma once

#include <string>

#include "remote/credentials.h"
#include "remote/remote_address.h"

namespace rondo::detail {

/// Where requests for a bucket go.
struct S3Endpoint {
  std::string origin;  ///< "https://host:port"
  std::string host;    ///< as in the header "host"
  std::string base;    ///< "/bucket/" or "/", and what the address of the server itself adds
  std::string region;
  std::string bucket;
};

/// \throws UsageError  for an AWS_ENDPOINT_URL that is none, and for an oci address without a
/// namespace
S3Endpoint find_s3_endpoint(const RemoteAddress& address, const Environment& environment);

/// Those of `find_credentials`; for gs also GCS_KEY and GCS_SECRET, which come first.
Credentials find_s3_credentials(const RemoteAddress& address, const Environment& environment);

}  // namespace rondo::detail
