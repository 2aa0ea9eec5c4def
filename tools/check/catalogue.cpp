#include <cctype>
#include <nlohmann/json.hpp>

#include "tools/check/evidence.hpp"

namespace muonwalk::sim::page_texts {
extern const char* const catalogue_json;
}

namespace muonwalk::check {

std::string bug_text(const std::string& kind) {
  static const nlohmann::json catalogue = nlohmann::json::parse(sim::page_texts::catalogue_json);
  if (!catalogue.contains(kind)) return "";
  std::string text = catalogue.at(kind).at("bug");
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

}  // namespace muonwalk::check
