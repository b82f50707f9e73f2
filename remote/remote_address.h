#pragma once

#include <string>
#include <string_view>

namespace rondo {

/// The parts of an address such as "s3://bucket/runs/one".
struct RemoteAddress {
  std::string scheme;     ///< in lower case
  std::string authority;  ///< the bucket, or host and port; "" for files
  std::string path;       ///< without the "/" at its beginning, which files get back
  std::string query;      ///< of http(s), without the "?"
};

/// True for text that begins with a scheme and "://".
bool is_remote(std::string_view text);

/// \throws UsageError  for text that is no address, for a scheme that rondo does not read, with
/// what
///                     to use instead, and for an address with a password or a signature in it,
///                     which would stand in logs and saved configurations
RemoteAddress parse_remote_address(std::string_view text);

/// Splits an address behind its last "/": "s3://bucket/runs/" and "one.pt".
struct AddressAndName {
  std::string folder;
  std::string name;
};

AddressAndName split_address(std::string_view text);

}  // namespace rondo
