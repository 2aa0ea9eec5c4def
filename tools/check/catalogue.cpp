#include <nlohmann/json.hpp>

#include "tools/check/evidence.hpp"

namespace muonwalk::sim::page_texts {
extern const char* const catalogue_json;
}

namespace muonwalk::check {

std::string advice_on(const std::string& kind) {
  static const nlohmann::json catalogue = nlohmann::json::parse(sim::page_texts::catalogue_json);
  return catalogue.contains(kind) ? catalogue.at(kind).value("look_for", "") : "";
}

}  // namespace muonwalk::check
