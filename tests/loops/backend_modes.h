#pragma once

namespace rondo::test {

inline constexpr const char* kModes[] = {"eager", "traced"};

}  // namespace rondo::test
