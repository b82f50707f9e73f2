#include "cli/schedule_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "record/svg_text.h"

namespace rondo {

namespace {

/// The numbers between which a curve is drawn.
struct Range {
  double least;
  double most;

  /// In [0, 1]; a level curve is drawn in the middle.
  double share(double value) const { return most > least ? (value - least) / (most - least) : 0.5; }
};

Range range_of(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, *most};
}

/// "100ba": how far the curve goes.
std::string end_of(const ScheduleCurve& curve) {
  return Time::in(curve.unit, static_cast<int64_t>(curve.length)).to_string();
}

/// "lr: CosineDecayLR, from 0.1 to 0.001 over 100ba"
std::string title_of(const ScheduleCurve& curve) {
  return fmt::format("{}: {}, from {:.4g} to {:.4g} over {}{}",
                     curve.number,
                     curve.scheduler,
                     curve.values.front(),
                     curve.values.back(),
                     end_of(curve),
                     curve.followed.empty() ? "" : ", until " + curve.followed + " moves it");
}

constexpr size_t kColumns = 64;
constexpr size_t kRows = 12;

/// Marks in one column every row that the curve passes there, and between there and here.
void mark(std::vector<std::string>& rows, size_t column, Range passed, Range range) {
  const auto row_of = [&](double value) {
    const double share = range.share(value);
    return kRows - 1 - static_cast<size_t>(std::lround(share * static_cast<double>(kRows - 1)));
  };
  for (size_t row = row_of(passed.most); row <= row_of(passed.least); ++row) {
    rows[row][column] = '*';
  }
}

constexpr int kWidth = 640;  // of a picture, in SVG's units
constexpr int kHeight = 240;
constexpr int kMargin = 40;
constexpr int kLeft = 80;

/// One picture, `top` below the beginning of the document.
std::string svg_picture(const ScheduleCurve& curve, int top) {
  const Range range = range_of(curve.values);
  const double width = kWidth - kLeft - kMargin;
  const double height = kHeight - 2 * kMargin;
  const double bottom = top + kHeight - kMargin;
  std::string points;
  for (size_t i = 0; i < curve.values.size(); ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(curve.values.size() - 1);
    points += fmt::format("{}{:.6g},{:.6g}",
                          i == 0 ? "" : " ",
                          kLeft + width * x,
                          bottom - height * range.share(curve.values[i]));
  }
  return fmt::format("<path class=\"axes\" d=\"M{0} {1}V{2}H{3}\"/>\n",
                     kLeft,
                     bottom - height,
                     bottom,
                     kLeft + width) +
         fmt::format("<polyline points=\"{}\"/>\n", points) +
         svg_text(kLeft, top + kMargin / 2.0, "start", title_of(curve)) +
         svg_text(kLeft - 6, bottom - height + 4, "end", fmt::format("{:.4g}", range.most)) +
         svg_text(kLeft - 6, bottom + 4, "end", fmt::format("{:.4g}", range.least)) +
         svg_text(kLeft, bottom + 18, "middle", "0") +
         svg_text(kLeft + width, bottom + 18, "end", end_of(curve));
}

}  // namespace

std::string text_chart(const ScheduleCurve& curve) {
  const std::vector<double>& values = curve.values;
  const Range range = range_of(values);
  std::vector<std::string> rows(kRows, std::string(kColumns, ' '));
  const auto index_of = [&](size_t column) {
    return column * (values.size() - 1) / (kColumns - 1);
  };
  for (size_t column = 0; column < kColumns; ++column) {
    const auto first = static_cast<std::ptrdiff_t>(index_of(column == 0 ? 0 : column - 1));
    const auto last = static_cast<std::ptrdiff_t>(index_of(column));
    // Without the value of the column before, which is drawn there.
    const auto begin = values.begin() + (first < last ? first + 1 : last);
    mark(rows, column, range_of({begin, values.begin() + last + 1}), range);
  }
  std::string text = title_of(curve) + "\n";
  for (size_t row = 0; row < kRows; ++row) {
    const bool is_labelled = row == 0 || row == kRows - 1;
    const std::string label =
        is_labelled ? fmt::format("{:.4g}", row == 0 ? range.most : range.least) : "";
    const size_t end = rows[row].find_last_not_of(' ');
    text += fmt::format("{:>10} |{}\n", label, rows[row].substr(0, end + 1));
  }
  return text + fmt::format("{:>10} +{}\n{:>12}{:>{}}\n",
                            "",
                            std::string(kColumns, '-'),
                            "0",
                            end_of(curve),
                            kColumns);
}

std::string svg_chart(const std::vector<ScheduleCurve>& curves) {
  const int height = kHeight * static_cast<int>(curves.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<style>text {{ font: 12px sans-serif; }} polyline, path {{ fill: none; "
      "stroke: #1f5fa8; stroke-width: 2; }} .axes {{ stroke: #808080; stroke-width: 1; }}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth,
      height);
  for (size_t i = 0; i < curves.size(); ++i) {
    text += svg_picture(curves[i], kHeight * static_cast<int>(i));
  }
  return text + "</svg>\n";
}

}  // namespace rondo
