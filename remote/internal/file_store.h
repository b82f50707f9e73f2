#pragma once

#include <memory>

#include "remote/remote_address.h"
#include "remote/remote_store.h"

namespace rondo::detail {

/// A folder, such as one of a network file system.
std::unique_ptr<RemoteStore> make_file_store(const RemoteAddress& address, RemoteSettings settings);

}  // namespace rondo::detail
