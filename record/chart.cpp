#include "record/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/terminal.h"
#include "record/svg_text.h"

namespace rondo {

namespace {

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }

  bool is_empty() const { return least > most; }

  /// In [0, 1]; of a single value the middle.
  double share(double value) const { return most > least ? (value - least) / (most - least) : 0.5; }
};

struct Ranges {
  Range x;
  Range y;
};

Ranges ranges_of(const std::vector<ChartLine>& lines) {
  Ranges ranges;
  for (const ChartLine& line : lines) {
    for (size_t i = 0; i < line.y.size(); ++i) {
      if (std::isfinite(line.y[i])) {
        ranges.x.take(line.x[i]);
        ranges.y.take(line.y[i]);
      }
    }
  }
  return ranges;
}

constexpr int kDotsAcross = 2;  // of a Braille pattern
constexpr int kDotsDown = 4;

/// Cells of Braille patterns, and which line passed each last.
class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        dots_(static_cast<size_t>(columns * rows), 0),
        last_(static_cast<size_t>(columns * rows), -1) {}

  /// A straight line between two places in [0, 1] x [0, 1], of which y rises.
  void draw(double x0, double y0, double x1, double y1, int line) {
    const int across = columns_ * kDotsAcross - 1;
    const int down = rows_ * kDotsDown - 1;
    const double dx = (x1 - x0) * across;
    const double dy = (y1 - y0) * down;
    const int steps =
        std::max(1, static_cast<int>(std::ceil(std::max(std::abs(dx), std::abs(dy)))));
    for (int i = 0; i <= steps; ++i) {
      const double share = static_cast<double>(i) / steps;
      set(static_cast<int>(std::lround(x0 * across + dx * share)),
          down - static_cast<int>(std::lround(y0 * down + dy * share)),
          line);
    }
  }

  /// Of a row; with colors by line, or without.
  std::string row(int row, bool has_color) const {
    std::string text;
    int color = -1;
    for (int column = 0; column < columns_; ++column) {
      const size_t cell = cell_at(column, row);
      if (has_color && dots_[cell] != 0 && last_[cell] != color) {
        color = last_[cell];
        text += color_of(color);
      }
      text += dots_[cell] == 0 ? " " : utf8(0x2800 + dots_[cell]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + (color >= 0 ? "\x1b[0m" : "");
  }

  static std::string color_of(int line) {
    constexpr int kColors[] = {36, 33, 35, 32, 34, 31};
    return fmt::format("\x1b[{}m", kColors[line % 6]);
  }

 private:
  size_t cell_at(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }

  void set(int x, int y, int line) {
    constexpr int kBits[kDotsDown][kDotsAcross] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const size_t cell = cell_at(x / kDotsAcross, y / kDotsDown);
    dots_[cell] |= kBits[y % kDotsDown][x % kDotsAcross];
    last_[cell] = line;
  }

  static std::string utf8(int code) {
    return {static_cast<char>(0xE0 | (code >> 12)),
            static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }

  int columns_;
  int rows_;
  std::vector<int> dots_;
  std::vector<int> last_;
};

/// Calls `draw(x0, y0, x1, y1)` from point to point, as shares of the ranges; a point that stands
/// alone is drawn to itself.
template <class Draw>
void for_each_segment(const ChartLine& line, const Ranges& ranges, const Draw& draw) {
  double before_x = 0.0;
  double before_y = 0.0;
  bool has_before = false;
  for (size_t i = 0; i < line.y.size(); ++i) {
    if (!std::isfinite(line.y[i])) {
      has_before = false;
      continue;
    }
    const double x = ranges.x.share(line.x[i]);
    const double y = ranges.y.share(line.y[i]);
    draw(has_before ? before_x : x, has_before ? before_y : y, x, y);
    before_x = x;
    before_y = y;
    has_before = true;
  }
}

std::string number(double value) {
  return fmt::format("{:.4g}", value);
}

std::string legend(const std::vector<ChartLine>& lines, bool has_color) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const double last = lines[i].y.empty() ? 0.0 : lines[i].y.back();
    const std::string mark =
        has_color ? Canvas::color_of(static_cast<int>(i)) + "\u2501\u2501\x1b[0m" : "-";
    text += fmt::format("{:>12}{} {} {}\n",
                        "",
                        mark,
                        printable(lines[i].name),
                        lines[i].y.empty() ? "no value" : number(last));
  }
  return text;
}

constexpr int kLabel = 10;  // columns of the scale

constexpr double kWidth = 720;  // of a picture, in SVG's units
constexpr double kHeight = 260;
constexpr double kMargin = 40;
constexpr double kLeft = 80;
constexpr const char* kSvgColors[] = {
    "#1f77b4", "#d95f02", "#7b3294", "#1b9e77", "#a6761d", "#c2185b"};

std::string svg_line(const ChartLine& line,
                     const Ranges& ranges,
                     double bottom,
                     const char* color) {
  const double width = kWidth - kLeft - kMargin;
  const double height = kHeight - 2 * kMargin;
  std::string path;
  for_each_segment(line, ranges, [&](double x0, double y0, double x, double y) {
    const bool begins = x0 == x && y0 == y;
    path += fmt::format("{}{:.6g} {:.6g}{}",
                        begins ? "M" : "L",
                        kLeft + width * x,
                        bottom - height * y,
                        begins ? "h0" : "");
  });
  return fmt::format("<path d=\"{}\" stroke=\"{}\"/>\n", path, color);
}

/// One picture, `top` below the beginning of the document; its names stand in the margin below.
std::string svg_picture(const Chart& chart, double top) {
  Ranges ranges = ranges_of(chart.lines);
  const double bottom = top + kHeight - kMargin;
  std::string text = fmt::format("<path d=\"M{0} {1}V{2}H{3}\" stroke=\"#808080\"/>\n",
                                 kLeft,
                                 top + kMargin,
                                 bottom,
                                 kWidth - kMargin) +
                     svg_text(kLeft, top + kMargin / 2, "start", chart.title);
  if (ranges.y.is_empty()) {
    return text;
  }
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const char* const color = kSvgColors[i % 6];
    text += svg_line(chart.lines[i], ranges, bottom, color);
    text += svg_text(kWidth - kMargin,
                     top + kMargin + 14.0 * static_cast<double>(i),
                     "end",
                     chart.lines[i].name,
                     color);
  }
  return text + svg_text(kLeft - 6, top + kMargin + 4, "end", number(ranges.y.most)) +
         svg_text(kLeft - 6, bottom + 4, "end", number(ranges.y.least)) +
         svg_text(kLeft, bottom + 18, "middle", number(ranges.x.least)) +
         svg_text(kWidth - kMargin, bottom + 18, "end", number(ranges.x.most));
}

/// Each row is shaded by its shares; where there is room, the counts stand in the cells.
std::string svg_matrix(const Matrix& matrix, double top) {
  constexpr size_t kMostWithText = 15;
  const size_t classes = matrix.names.size();
  const double width = (kWidth - kLeft - kMargin) / static_cast<double>(classes);
  const double height = (kHeight - 2 * kMargin) / static_cast<double>(classes);
  const auto right = [&](size_t column) { return kLeft + width * static_cast<double>(column); };
  const auto below = [&](size_t row) { return top + kMargin + height * static_cast<double>(row); };
  const bool has_text = classes <= kMostWithText;
  std::string text = svg_text(
      kLeft, top + kMargin / 2, "start", matrix.title + ": rows are labels, columns guesses");
  for (size_t row = 0; row < classes; ++row) {
    const std::vector<double>& counts = matrix.rows[row];
    const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
    for (size_t column = 0; column < classes; ++column) {
      const double share = sum > 0.0 ? counts[column] / sum : 0.0;
      text += fmt::format(
          "<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" fill=\"{}\" "
          "fill-opacity=\"{:.3g}\"/>\n",
          right(column),
          below(row),
          width,
          height,
          kSvgColors[0],
          share);
      if (has_text) {
        text += svg_text(right(column) + width / 2,
                         below(row) + height / 2 + 4,
                         "middle",
                         number(counts[column]));
      }
    }
    if (has_text) {
      text += svg_text(kLeft - 6, below(row) + height / 2 + 4, "end", matrix.names[row]);
      text += svg_text(right(row) + width / 2, below(classes) + 18, "middle", matrix.names[row]);
    }
  }
  return text;
}

}  // namespace

std::string braille_chart(const std::string& title,
                          const std::vector<ChartLine>& lines,
                          const ChartSize& size,
                          bool has_color) {
  const Ranges ranges = ranges_of(lines);
  if (ranges.y.is_empty()) {
    return printable(title) + ": no values\n";
  }
  const int columns = std::max(8, size.columns - kLabel - 2);
  Canvas canvas(columns, size.rows);
  for (size_t i = 0; i < lines.size(); ++i) {
    for_each_segment(lines[i], ranges, [&](double x0, double y0, double x1, double y1) {
      canvas.draw(x0, y0, x1, y1, static_cast<int>(i));
    });
  }
  std::string text = printable(title) + "\n";
  for (int row = 0; row < size.rows; ++row) {
    const std::string label = row == 0               ? number(ranges.y.most)
                              : row == size.rows - 1 ? number(ranges.y.least)
                                                     : "";
    text += fmt::format("{:>{}} \u2502{}\n", label, kLabel, canvas.row(row, has_color));
  }
  std::string rule;
  for (int column = 0; column < columns; ++column) {
    rule += "\u2500";
  }
  text += fmt::format("{:>{}} \u2514{}\n", "", kLabel, rule);
  const std::string least = number(ranges.x.least);
  text += fmt::format("{:>{}}{}{:>{}}\n",
                      "",
                      kLabel + 2,
                      least,
                      number(ranges.x.most),
                      columns - static_cast<int>(least.size()));
  return text + legend(lines, has_color);
}

std::string svg_charts(const std::vector<Chart>& charts, const std::vector<Matrix>& matrices) {
  const double height = kHeight * static_cast<double>(charts.size() + matrices.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<style>text {{ font: 12px sans-serif; }} path {{ fill: none; "
      "stroke-width: 1.5; stroke-linecap: round; }}</style>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n",
      kWidth,
      height);
  for (size_t i = 0; i < charts.size(); ++i) {
    text += svg_picture(charts[i], kHeight * static_cast<double>(i));
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    text += svg_matrix(matrices[i], kHeight * static_cast<double>(charts.size() + i));
  }
  return text + "</svg>\n";
}

}  // namespace rondo
