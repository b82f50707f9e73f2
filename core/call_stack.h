#pragma once

#include <string>
#include <vector>

namespace rondo {

/// Where code stood: return addresses, the innermost first.
using CallStack = std::vector<void*>;

/// The calls that led here, without this one. Some microseconds; resolves nothing.
CallStack call_stack();

/// The innermost place in a stack that is neither LibTorch's nor the standard library's, for people
/// to read: "Net::forward (net.cpp:41)", or "Net::forward" where the program has no line tables
/// (compile with -g1) or there is no addr2line. "" when no name is known. Slow: it starts a
/// program.
/// \param skip  beginnings of functions' names to pass over as well
std::string source_of(const CallStack& stack, const std::vector<std::string>& skip = {});

}  // namespace rondo
