#pragma once

#include <string>

#include "sim/replay/palette.hpp"

namespace muonwalk {

/// The letters of words in all pictures: what every reader's system has.
constexpr char kSvgSans[] = "system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
/// The letters of code and of all that lines up, all of one width.
constexpr char kSvgMono[] = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";

/// The style sheet of a picture: sizes, and colours on light and on dark pages.
class SvgStyle {
 public:
  /// Rules hold inside of `scope` (".mw-map") alone, so that pictures on one page leave each other's colours alone.
  /// Text is kSvgMono of `text` units; "mw-title", bold, and "mw-prose" are kSvgSans; "mw-strong" is bold, "mw-middle"
  /// stands around its place, and "mw-halo" has a border. Paper, ink and quiet text have their colours already.
  SvgStyle(std::string scope, int text, int title, int prose);
  /// What holds for all that `selector` selects: "font-weight:bold".
  void rule(const std::string& selector, const std::string& declarations);
  /// "fill" or "stroke" of what `selector` selects.
  void colour(const std::string& selector, const char* property, Colour colour);
  /// Sets "fill" or "stroke" of kColours selectors, ".mw-p0", ".mw-p1", …, in the colours of parameters or ranks.
  void colours(const std::string& selector, const char* property, Colour (*colour_of)(int));
  /// The light rules, and the dark ones for readers who prefer them.
  std::string rules() const;

 private:
  std::string scope_, sizes_, light_, dark_;
};

/// Text as it may stand in XML between tags or in a quoted attribute: & < > " and ' become entities; bytes that are not
/// UTF-8 and characters that XML forbids (most control characters) become U+FFFD.
std::string xml_text(const std::string& text);

/// One element of a picture, in the picture's own units. `attributes` are written as they are; `text` may be any text.
/// @{
std::string svg_text(double x, double y, const std::string& classes, const std::string& text);
std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes,
                          const std::string& inside = "");
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes);
/// @}

/// The whole picture: `css_class` is the scope of its style, without the dot; `title` and `description` are for those
/// who can't see it.
std::string svg_page(const std::string& css_class, double width, double height, const std::string& title,
                     const std::string& description, const SvgStyle& style, const std::string& body);

}  // namespace muonwalk
