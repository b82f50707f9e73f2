#pragma once

#include <filesystem>
#include <string>

namespace rondo::test {

/// Writes a text into a file, whose folders are made.
void write_text(const std::filesystem::path& file, const std::string& text);

/// Adds a text at the end of a file.
void append_text(const std::filesystem::path& file, const std::string& text);

/// \name Lines of a record
/// @{
std::string session_line(const std::string& run);
std::string config_line(const std::string& toml);

/// \param values  members of a JSON object
std::string numbers_line(int step, const std::string& values, const std::string& more = "");
std::string done_line(int step);
/// @}

/// Writes the record of a run of two updates with the loss 2 and then `loss`, that is done.
void write_run(const std::filesystem::path& directory, double lr, double loss);

}  // namespace rondo::test
