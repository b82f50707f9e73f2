#include "remote/remote_store.h"

#include <map>
#include <utility>

#include "core/error.h"
#include "remote/internal/file_store.h"
#include "remote/internal/http_store.h"
#include "remote/internal/s3_store.h"
#include "remote/remote_address.h"

namespace rondo {

std::unique_ptr<RemoteStore> open_remote_store(const std::string& address,
                                               RemoteSettings settings) {
  using Make = std::unique_ptr<RemoteStore> (*)(const RemoteAddress&, RemoteSettings);
  static const std::map<std::string, Make> kStores = {
      {"file", &detail::make_file_store},
      {"http", &detail::make_http_store},
      {"https", &detail::make_http_store},
      {"s3", &detail::make_s3_store},
      {"gs", &detail::make_s3_store},
      {"oci", &detail::make_s3_store},
  };
  const RemoteAddress parts = parse_remote_address(address);
  return kStores.at(parts.scheme)(parts, std::move(settings));
}

}  // namespace rondo
