#include "sim/replay/page_parts.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"

namespace muonwalk {

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

std::string script_text(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6) json.replace(at, 1, "\\u003c");
  return json;
}

std::string colour_properties(const std::vector<std::pair<std::string, Colour>>& colours) {
  std::string light, dark;
  for (const auto& [name, colour] : colours) {
    light += fmt::format("--{}: {}; ", name, colour.light);
    dark += fmt::format("--{}: {}; ", name, colour.dark);
  }
  return ":root { " + light + "}\n@media (prefers-color-scheme: dark) {\n  :root { " + dark + "}\n}\n";
}

}  // namespace muonwalk
