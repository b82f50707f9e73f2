#pragma once

#include <map>
#include <string>

#include "trainer/registries.h"

namespace rondo {

/// The reference of what a config can hold, as Markdown: names of files and their text. The same
/// on every machine, whatever rondo was built with.
std::map<std::string, std::string> reference_pages(const Registries& registries);

}  // namespace rondo
