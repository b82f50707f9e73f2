#pragma once

#include <string>

namespace rondo {

/// What processes have in common that can open each other's files: the same boot of the same
/// machine, and the same numbers of processes. Containers of one machine differ.
std::string host_of_process();

/// What processes have in common whose loopback interface is one: the same boot, and the same
/// network. Processes of one host can have several.
std::string network_of_process();

/// The address of this host's network interface from which `host` is reached; loopback when that is
/// this host, or is not known.
std::string address_towards(const std::string& host, int port);

}  // namespace rondo
