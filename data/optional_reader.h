#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// A library that rondo reads files with, where it was built with it: cmake/RondoOptional.cmake.
struct OptionalReader {
  std::string name;     ///< "HDF5"; the CMake option is RONDO_WITH_HDF5
  std::string package;  ///< of Debian
  bool is_built = false;
};

const std::vector<OptionalReader>& optional_readers();

/// What `rondo describe` adds to the text about a reader: which package and option it lacks; ""
/// where it was built.
std::string not_built_note(std::string_view name);

/// For `check` functions, so that a config that uses the reader is refused before anything starts.
/// \param user  for the message: "AudioFolder", or the path of a file
/// \throws UsageError  naming package and CMake option, when rondo was built without the library
void require_reader(std::string_view name, const std::string& user);

/// The same as text.
std::string without_reader(std::string_view name, const std::string& user);

}  // namespace rondo
