#include "sim/replay/page_parts.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/replay/svg_parts.hpp"
#include "src/errors.hpp"

namespace muonwalk {

using nlohmann::json;

const std::vector<std::pair<const char*, Colour>>& page_shades() {
  static const std::vector<std::pair<const char*, Colour>> shades = {
      {"paper", kPaper}, {"ink", kInk}, {"quiet", kQuiet}, {"ground", kPadding}, {"edge", kHatch}};
  return shades;
}

namespace {

// Colours as the properties of a style sheet, "--paper: #ffffff; ".
std::string colour_properties(const std::vector<std::pair<std::string, Colour>>& colours, bool dark) {
  std::string css;
  for (const auto& [name, colour] : colours) css += fmt::format("--{}: {}; ", name, dark ? colour.dark : colour.light);
  return css;
}

}  // namespace

std::string coloured_style(std::vector<std::pair<std::string, Colour>> colours, const std::string& css) {
  colours.insert(colours.begin(), {"accent", rank_colour(7)});
  colours.insert(colours.begin(), page_shades().begin(), page_shades().end());
  return ":root { " + colour_properties(colours, false) + "}\n@media (prefers-color-scheme: dark) {\n  :root { " +
         colour_properties(colours, true) + "}\n}\n" + css;
}

json colour_json(Colour colour) { return {{"light", colour.light}, {"dark", colour.dark}}; }

std::string script_json(const json& data) {
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

std::string html_row(const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    html += i == 0 ? "<th scope=\"row\">" + xml_text(cells[i]) + "</th>" : "<td>" + xml_text(cells[i]) + "</td>";
  return html + "</tr>\n";
}

std::string html_table(const char* id, const std::string& caption, const std::vector<std::string>& headings,
                       const std::string& rows) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{1}\"><table id=\"{0}\">\n"
      "<caption>{1}</caption>\n<thead><tr>",
      id, xml_text(caption));
  for (const std::string& heading : headings) html += "<th scope=\"col\">" + xml_text(heading) + "</th>";
  return html + "</tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string html_list(const char* id, const std::vector<std::string>& sentences) {
  std::string html = fmt::format("<ul id=\"{}\">\n", id);
  for (const std::string& sentence : sentences) html += "<li>" + xml_text(sentence) + "</li>\n";
  return html + "</ul>\n";
}

std::string filled_page(const std::string& page, const std::map<std::string, std::string>& texts) {
  std::string html;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = page.find("{{", at);
    if (open == std::string::npos) return html + page.substr(at);
    const std::size_t close = page.find("}}", open);
    const auto text = texts.find(page.substr(open + 2, close - open - 2));
    if (text == texts.end())
      throw RunError("a page has a place that nothing fills: " + page.substr(open, close - open + 2));
    html += page.substr(at, open - at) + text->second;
    at = close + 2;
  }
}

}  // namespace muonwalk
