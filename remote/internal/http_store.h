#pragma once

#include <memory>

#include "remote/remote_address.h"
#include "remote/remote_store.h"

namespace rondo::detail {

/// Files of a web server, to read only: there is no list, and nothing is put or removed.
std::unique_ptr<RemoteStore> make_http_store(const RemoteAddress& address, RemoteSettings settings);

}  // namespace rondo::detail
