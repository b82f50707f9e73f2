#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "support/temp_dir.h"

namespace rondo::test {

/// A Python that can import the module, or "".
inline const std::string& python_with(const std::string& module) {
  static std::map<std::string, std::string> known;
  const auto [found, is_new] = known.try_emplace(module);
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    if (is_new && found->second.empty() &&
        std::system((python + " -c 'import " + module + "' > /dev/null 2>&1").c_str()) == 0) {
      found->second = python;
    }
  }
  return found->second;
}

/// True, with a line that says so, when there is no Python with the module; a failure when
/// RONDO_NEEDS_PYTHON, a list of modules, names it.
inline bool skips_without(const std::string& module) {
  if (python_with(module).empty()) {
    const char* const needed = std::getenv("RONDO_NEEDS_PYTHON");
    CHECK((" " + std::string(needed != nullptr ? needed : "") + " ").find(" " + module + " ") ==
          std::string::npos);
    MESSAGE("skipped: no python3 with the module " << module);
    return true;
  }
  return false;
}

/// Runs a script with the directory as its argument. \return true when it ended well
inline bool runs_in_python(const std::string& module,
                           const TempDir& dir,
                           const std::string& script) {
  std::ofstream(dir / "script.py") << script;
  const std::string path = dir.path().string();
  const std::string arguments = " '" + path + "/script.py' '" + path + "'";
  return std::system((python_with(module) + arguments).c_str()) == 0;
}

}  // namespace rondo::test
