#include "sim/replay/svg_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The production Char of XML 1.0.
bool allowed_in_xml(std::uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  return code != 0xFFFE && code != 0xFFFF;
}

constexpr std::pair<char, const char*> kEntities[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};

// The letters of words: what every reader's system has; and those of code and of all that lines up.
constexpr char kSans[] = "system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
constexpr char kMono[] = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";

// Rules hold inside of a picture alone, so that pages keep their own.
std::string rule(const std::string& selector, const std::string& declarations) {
  return fmt::format(".mw-drawn {}{{{}}}\n", selector, declarations);
}

std::string style_sheet() {
  std::string sizes = rule("text", fmt::format("font:12px {}", kMono)), light, dark;
  for (const auto& [selector, declarations] : std::initializer_list<std::pair<const char*, std::string>>{
           {".mw-title", fmt::format("font:bold 17px {}", kSans)},
           {".mw-prose", fmt::format("font:13px {}", kSans)},
           {".mw-small", "font-size:10.5px"},
           {".mw-strong", "font-weight:bold"},
           {".mw-middle", "text-anchor:middle"},
           {".mw-wide", "stroke-width:2.5px"},
           {".mw-faint", "opacity:.55"},
           {".mw-dashed", "stroke-dasharray:6 4"},
           {".mw-none", "fill:none"}})
    sizes += rule(selector, declarations);
  const auto colour = [&](const std::string& selector, const char* property, Colour of) {
    light += rule(selector, fmt::format("{}:{}", property, of.light));
    dark += rule(selector, fmt::format("{}:{}", property, of.dark));
  };
  colour("text", "fill", kInk);
  for (const auto& [selector, of] :
       {std::pair(".mw-quiet", kQuiet), std::pair(".mw-paper", kPaper), std::pair(".mw-padding", kPadding),
        std::pair(".mw-grey", kHatch), std::pair(".mw-ink", kInk)})
    colour(selector, "fill", of);
  for (const auto& [selector, of] :
       {std::pair(".mw-line", kInk), std::pair(".mw-gap", kPaper), std::pair(".mw-rule", kHatch)})
    colour(selector, "stroke", of);
  for (int i = 0; i < kColours; ++i) {
    colour(fmt::format(".mw-p{}", i), "fill", parameter_colour(i));
    colour(fmt::format(".mw-r{}", i), "fill", rank_colour(i));
    colour(fmt::format(".mw-o{}", i), "stroke", rank_colour(i));
  }
  return sizes + light + "@media (prefers-color-scheme:dark){\n" + dark + "}\n";
}

std::string tip_of(const std::string& tip) { return tip.empty() ? "" : "<title>" + xml_text(tip) + "</title>"; }

}  // namespace

std::string xml_text(const std::string& text) {
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const Character character = first_character(rest);
    const auto entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                     [&](const auto& each) { return each.first == rest[0]; });
    if (!character.valid || !allowed_in_xml(character.code))
      out += kReplacement;
    else if (entity != std::end(kEntities))
      out += entity->second;
    else
      out += rest.substr(0, character.bytes);
    rest.remove_prefix(character.bytes);
  }
  return out;
}

SvgPicture::SvgPicture(double width, std::string title, const std::string& prose)
    : width_(width), title_(std::move(title)) {
  text(kMargin, 38, "mw-title", title_);
  text(kMargin, 60, "mw-prose mw-quiet", prose);
}

void SvgPicture::text(double x, double y, const std::string& classes, const std::string& text) {
  body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" class=\"{}\">{}</text>\n", x, y, classes, xml_text(text));
}

void SvgPicture::box(double x, double y, double width, double height, const std::string& classes,
                     const std::string& tip, const std::string& label) {
  // The line around a narrow box must not hide it.
  body_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" stroke-width=\"{:.2f}\" "
      "class=\"{}\">{}</rect>\n",
      x, y, width, height, std::min(1.0, width / 4), classes, tip_of(tip));
  const bool small = height < 20;
  if (!label.empty() && width >= text_width(label) * (small ? kSmallLetter : kLetter))
    text(x + width / 2, y + height / 2 + 4, small ? "mw-middle mw-small" : "mw-middle", label);
}

void SvgPicture::line(double x1, double y1, double x2, double y2, const std::string& classes) {
  body_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                       classes);
}

void SvgPicture::path(const std::vector<std::pair<double, double>>& points, const std::string& classes,
                      const std::string& tip) {
  std::string all;
  for (const auto& [x, y] : points) all += fmt::format("{:.1f},{:.1f} ", x, y);
  body_ += fmt::format("<polyline class=\"mw-none {}\" points=\"{}\">{}</polyline>\n", classes, all, tip_of(tip));
}

double SvgPicture::legend(double y, const std::vector<std::pair<std::string, std::string>>& entries) {
  constexpr double kSwatch = 14, kWordsAt = 20, kPitch = 22;
  const double room = width_ - 2 * kMargin;
  int longest = 0;
  for (const auto& entry : entries) longest = std::max(longest, text_width(entry.second));
  const double widest = std::min(room, kWordsAt + kLetter * (longest + 2));
  const auto columns = static_cast<std::size_t>(room / widest);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double x = kMargin + widest * static_cast<double>(i % columns);
    const double top = y + kPitch * static_cast<double>(i / columns);
    box(x, top, kSwatch, kSwatch, "mw-padding");
    box(x, top, kSwatch, kSwatch, entries[i].first);
    text(x + kWordsAt, top + 11, "", shorten(entries[i].second, static_cast<int>((widest - kWordsAt) / kLetter)));
  }
  return kPitch * static_cast<double>((entries.size() + columns - 1) / columns);
}

std::string SvgPicture::svg(double height) const {
  static const std::string style = style_sheet();
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mw-drawn\" role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<title>{2}</title>\n<desc>{3}</desc>\n<style>\n{4}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" rx=\"8\" class=\"mw-paper\"/>\n{5}</svg>\n",
      std::ceil(width_), std::ceil(height), xml_text(title_), xml_text(description_), style, body_);
}

}  // namespace muonwalk
