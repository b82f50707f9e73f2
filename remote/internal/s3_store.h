#pragma once

#include <memory>

#include "remote/remote_address.h"
#include "remote/remote_store.h"

namespace rondo::detail {

/// A bucket of Amazon's S3, of a server that speaks its protocol (AWS_ENDPOINT_URL), or of Google's
/// (gs) or Oracle's (oci) interface for it.
std::unique_ptr<RemoteStore> make_s3_store(const RemoteAddress& address, RemoteSettings settings);

}  // namespace rondo::detail
