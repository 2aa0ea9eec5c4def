#include "sim/pictures/svg_parts.hpp"

#include <fmt/format.h>

#include "sim/pictures/xml_text.hpp"

namespace muonwalk {

void SvgColours::add(const std::string& selector, const char* property, Colour colour) {
  light_ += fmt::format("{} {}{{{}:{}}}\n", scope_, selector, property, colour.light);
  dark_ += fmt::format("{} {}{{{}:{}}}\n", scope_, selector, property, colour.dark);
}

std::string SvgColours::rules() const { return light_ + "@media (prefers-color-scheme:dark){\n" + dark_ + "}\n"; }

std::string svg_text(double x, double y, const std::string& classes, const std::string& text) {
  return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" class=\"{}\">{}</text>\n", x, y, classes, xml_text(text));
}

std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes,
                          const std::string& inside) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}>{}</rect>\n", x, y, width,
                     height, attributes, inside);
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n", x1, y1, x2, y2,
                     attributes);
}

std::string svg_page(const std::string& css_class, double width, double height, const std::string& title,
                     const std::string& description, const std::string& style_rules, const std::string& body) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{0}\" role=\"img\" viewBox=\"0 0 {1} {2}\" "
             "width=\"{1}\" height=\"{2}\">\n<title>{3}</title>\n<desc>{4}</desc>\n<style>\n{5}</style>\n",
             css_class, width, height, xml_text(title), xml_text(description), style_rules) +
         svg_rectangle(0, 0, width, height, "rx=\"8\" class=\"mw-paper\"") + body + "</svg>\n";
}

}  // namespace muonwalk
