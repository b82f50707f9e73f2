#pragma once

#include <string>
#include <vector>

namespace rondo {

/// A line of a chart.
struct ChartLine {
  std::string name;
  std::vector<double> x;  ///< rising
  std::vector<double> y;  ///< as many; those that are not finite are left out
};

struct ChartSize {
  int columns = 72;  ///< of characters, with the scale
  int rows = 12;     ///< of the plot
};

/// Lines over each other in Braille patterns, with scales, and their names below: text lines, each
/// with its line break. A cell that several lines pass has the color of the last.
/// \param has_color  colors by escape sequences; without them only the names tell lines apart
std::string braille_chart(const std::string& title,
                          const std::vector<ChartLine>& lines,
                          const ChartSize& size,
                          bool has_color);

/// A chart with its title; for `svg_charts`.
struct Chart {
  std::string title;
  std::vector<ChartLine> lines;
};

/// Counts by label, in rows, and guess, in columns; for `svg_charts`.
struct Matrix {
  std::string title;
  std::vector<std::string> names;         ///< of the classes
  std::vector<std::vector<double>> rows;  ///< square
};

/// Charts below each other, then matrices, as one SVG document.
std::string svg_charts(const std::vector<Chart>& charts, const std::vector<Matrix>& matrices = {});

}  // namespace rondo
