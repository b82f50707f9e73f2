#pragma once

#include <string>

namespace rondo {

/// A text element of an SVG document, escaped.
/// \param anchor  which end of the text stands at x: "start", "middle" or "end"
/// \param color   "": that of the document
std::string svg_text(
    double x, double y, const char* anchor, const std::string& text, const std::string& color = "");

}  // namespace rondo
