#include "record/svg_text.h"

#include <fmt/format.h>

namespace rondo {

namespace {

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return safe;
}

}  // namespace

std::string svg_text(
    double x, double y, const char* anchor, const std::string& text, const std::string& color) {
  return fmt::format("<text x=\"{:.6g}\" y=\"{:.6g}\" text-anchor=\"{}\"{}>{}</text>\n",
                     x,
                     y,
                     anchor,
                     color.empty() ? "" : fmt::format(" fill=\"{}\"", color),
                     escaped(text));
}

}  // namespace rondo
