#include "sim/replay/svg_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace muonwalk {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The length in bytes of the UTF-8 character at `at`, and its code point; length 0 where there is none. Overlong forms
// and surrogates are not characters.
std::size_t decode(const std::string& text, std::size_t at, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  code = first & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

// The production Char of XML 1.0.
bool allowed_in_xml(std::uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  return code != 0xFFFE && code != 0xFFFF;
}

constexpr std::pair<char, const char*> kEntities[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};

}  // namespace

SvgStyle::SvgStyle(std::string scope, int text, int title, int prose) : scope_(std::move(scope)) {
  rule("text", fmt::format("font:{}px {}", text, kSvgMono));
  rule(".mw-title", fmt::format("font:bold {}px {}", title, kSvgSans));
  rule(".mw-prose", fmt::format("font:{}px {}", prose, kSvgSans));
  rule(".mw-strong", "font-weight:bold");
  rule(".mw-halo", "stroke-width:4px;paint-order:stroke;stroke-linejoin:round");
  rule(".mw-middle", "text-anchor:middle");
  colour(".mw-paper", "fill", kPaper);
  colour("text", "fill", kInk);
  colour(".mw-quiet", "fill", kQuiet);
}

void SvgStyle::rule(const std::string& selector, const std::string& declarations) {
  sizes_ += fmt::format("{} {}{{{}}}\n", scope_, selector, declarations);
}

void SvgStyle::colour(const std::string& selector, const char* property, Colour colour) {
  light_ += fmt::format("{} {}{{{}:{}}}\n", scope_, selector, property, colour.light);
  dark_ += fmt::format("{} {}{{{}:{}}}\n", scope_, selector, property, colour.dark);
}

void SvgStyle::colours(const std::string& selector, const char* property, Colour (*colour_of)(int)) {
  for (int i = 0; i < kColours; ++i) colour(fmt::format("{}{}", selector, i), property, colour_of(i));
}

std::string SvgStyle::rules() const {
  return sizes_ + light_ + "@media (prefers-color-scheme:dark){\n" + dark_ + "}\n";
}

std::string xml_text(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t code = 0;
    const std::size_t length = decode(text, at, code);
    const auto entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                     [&](const auto& each) { return static_cast<unsigned char>(each.first) == code; });
    if (length == 0 || !allowed_in_xml(code))
      out += kReplacement;
    else if (entity != std::end(kEntities))
      out += entity->second;
    else
      out.append(text, at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

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
                     const std::string& description, const SvgStyle& style, const std::string& body) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{0}\" role=\"img\" viewBox=\"0 0 {1} {2}\" "
             "width=\"{1}\" height=\"{2}\">\n<title>{3}</title>\n<desc>{4}</desc>\n<style>\n{5}</style>\n",
             css_class, width, height, xml_text(title), xml_text(description), style.rules()) +
         svg_rectangle(0, 0, width, height, "rx=\"8\" class=\"mw-paper\"") + body + "</svg>\n";
}

}  // namespace muonwalk
