#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/replay/palette.hpp"

namespace muonwalk {

/// Text as it may stand in XML between tags or in a quoted attribute: & < > " and ' become entities; bytes that are not
/// UTF-8 and characters that XML forbids (most control characters) become U+FFFD.
std::string xml_text(const std::string& text);

/// A picture that is being drawn, in units of its own. Text may be any text. All pictures have one style sheet, with
/// colours for light and for dark pages, so a class means the same in each of them:
///   - text is 12 units high, with letters of one width; "mw-small" is 10.5; "mw-title" and "mw-prose" are the
///   headings;
///     "mw-strong" is bold, "mw-quiet" grey, "mw-middle" stands around its place
///   - filled with: "mw-p2" the colour of parameter 2, "mw-r2" of rank 2; "mw-padding", "mw-grey", "mw-ink"; "mw-none"
///     nothing
///   - drawn with lines: "mw-o2" the colour of rank 2, "mw-line" that of ink, "mw-gap" that of the page, "mw-rule" a
///     light one; "mw-wide" lines are 2.5 units wide, "mw-dashed" ones have gaps, "mw-faint" ones let others through.
class SvgPicture {
 public:
  static constexpr double kMargin = 24;
  /// A letter of text, and a small one.
  static constexpr double kLetter = 7.3, kSmallLetter = 6.4;

  /// Begins with its title and, below it, a line of prose; what else is drawn has y from 80 on.
  SvgPicture(double width, std::string title, const std::string& prose);

  void text(double x, double y, const std::string& classes, const std::string& text);
  /// A rectangle. A pointer on it shows `tip`; `label` stands in its middle, where it has room for it.
  void box(double x, double y, double width, double height, const std::string& classes, const std::string& tip = "",
           const std::string& label = "");
  void line(double x1, double y1, double x2, double y2, const std::string& classes);
  /// Lines from point to point.
  void path(const std::vector<std::pair<double, double>>& points, const std::string& classes, const std::string& tip);
  /// Boxes of these classes with words beside them, in columns that are all as wide as the widest entry. Returns how
  /// high that is.
  double legend(double y, const std::vector<std::pair<std::string, std::string>>& entries);

  /// Says something for those who can't see the picture.
  void say(const std::string& sentence) { description_ += (description_.empty() ? "" : " ") + sentence; }

  /// The picture, `height` units high.
  std::string svg(double height) const;

 private:
  double width_;
  std::string title_, description_, body_;
};

}  // namespace muonwalk
