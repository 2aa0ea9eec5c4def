#pragma once

#include <string>

#include "sim/pictures/palette.hpp"

namespace muonwalk {

/// The colours of a picture on light and on dark pages, as the rules of a style sheet.
class SvgColours {
 public:
  /// Rules hold inside of `scope` (".mw-map") alone, so that pictures on one page leave each other's colours alone.
  explicit SvgColours(std::string scope) : scope_(std::move(scope)) {}
  /// "fill" or "stroke" of what `selector` selects.
  void add(const std::string& selector, const char* property, Colour colour);
  /// The light rules, and the dark ones for readers who prefer them.
  std::string rules() const;

 private:
  std::string scope_;
  std::string light_;
  std::string dark_;
};

/// The letters of words and of code in all pictures: what every reader's system has.
constexpr char kSvgSans[] = "system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
/// The letters of code, all of one width.
constexpr char kSvgMono[] = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";

/// One element of a picture, in the picture's own units. `attributes` are written as they are; `text` may be any text.
/// @{
std::string svg_text(double x, double y, const std::string& classes, const std::string& text);
std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes,
                          const std::string& inside = "");
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes);
/// @}

/// The whole picture: `css_class` is the scope of its style, `title` and `description` are for those who can't see it.
std::string svg_page(const std::string& css_class, double width, double height, const std::string& title,
                     const std::string& description, const std::string& style_rules, const std::string& body);

}  // namespace muonwalk
