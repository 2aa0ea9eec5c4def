#include "tools/check/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim::page_texts {

extern const char* const catalogue_json;  // catalogue.json

}  // namespace muonwalk::sim::page_texts

namespace muonwalk::check {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const Value& value, bool there) {
  return there ? Json(value) : Json(nullptr);
}
Json or_null(const std::string& text) { return or_null(text, !text.empty()); }
template <class Value>
Json or_null(const std::optional<Value>& value) {
  return or_null(value.value_or(Value()), value.has_value());
}

std::string short_number(double number) { return fmt::format("{:.3g}", number); }

// "Moonlight, 3.4445 -4.7750 2.0315, 5 steps, Nesterov"
std::string recipe_words(const RecipeFound& found) {
  std::string words = found.recipe;
  if (!found.coefficients.empty()) words += ", " + found.coefficients;
  if (found.steps) words += ", " + count_text(*found.steps, "step");
  if (found.nesterov) words += *found.nesterov ? ", Nesterov" : ", without Nesterov";
  return words;
}

// "lr · decay = 0.0008"
std::string law_words(const std::string& law, const std::optional<double>& value) {
  if (!value) return law;
  return law.empty() ? short_number(*value) : fmt::format("{} = {}", law, short_number(*value));
}

// What to look for where this was found, if it isn't said yet; the test that would have caught it, and who has reported
// the like.
std::vector<std::string> catalogue_lines(const Finding& finding) {
  static const Json catalogue = Json::parse(sim::page_texts::catalogue_json);
  std::vector<std::string> lines;
  if (!catalogue.contains(finding.kind)) return lines;
  const Json& entry = catalogue[finding.kind];
  if (const auto text = entry.value("look_for", std::string()); finding.sentence.find(text) == std::string::npos)
    lines.push_back(text);
  if (entry.contains("test")) lines.push_back("A test for it: " + entry["test"].get<std::string>());
  if (entry.contains("reports"))
    for (const Json& report : entry["reports"])
      lines.push_back(
          fmt::format("Reported: {} ({})", report["what"].get<std::string>(), report["source"].get<std::string>()));
  return lines;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  constexpr const char* kNames[] = {"clean", "unknown", "differs", "unjudgeable"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::vector<std::string> verdict_text(const DumpVerdict& verdict) {
  std::vector<std::string> lines = paragraph(
      fmt::format("{}{}{}", verdict_name(verdict.verdict), verdict.reason.empty() ? "" : ": ", verdict.reason), 0, 2);
  Table table({{"parameter"}, {"verdict"}, {"stepped by"}, {"recipe"}, {"distance", Side::right}, {"α"}, {"β"}});
  for (const ParameterVerdict& parameter : verdict.parameters)
    table.row({visible_name(parameter.name, 40), verdict_name(parameter.verdict), parameter.optimizer, parameter.recipe,
               parameter.distance ? short_number(*parameter.distance) : "",
               law_words(parameter.alpha_law, parameter.alpha), law_words(parameter.beta_law, parameter.beta)});
  lines.emplace_back();
  append(lines, table.lines());
  for (const RecipeFound& recipe : verdict.recipes) {
    lines.emplace_back();
    append(lines, paragraph(fmt::format("{}: {}", recipe_words(recipe), visible_names(recipe.parameters)), 0, 2));
  }
  for (const Finding& finding : verdict.findings) {
    lines.emplace_back();
    append(lines, paragraph(fmt::format("{}{}: {}", finding.kind.empty() ? "not in the catalogue" : finding.kind,
                                        finding.axis.empty() ? "" : " (" + finding.axis + ")",
                                        visible_names(finding.parameters)),
                            0, 2));
    append(lines, paragraph(finding.sentence, 2, 2));
    for (const std::string& advice : catalogue_lines(finding)) append(lines, paragraph(advice, 2, 4));
  }
  // Why a parameter isn't clean, where no finding says so.
  for (const ParameterVerdict& parameter : verdict.parameters) {
    const bool told = std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& finding) {
      return std::count(finding.parameters.begin(), finding.parameters.end(), parameter.name) > 0;
    });
    if (!told && !parameter.reason.empty())
      append(lines, paragraph(visible_name(parameter.name) + ": " + parameter.reason, 0, 2));
  }
  return lines;
}

std::string verdict_json(const DumpVerdict& verdict) {
  Json json = {{"format", "muonwalk-check 1"},      {"verdict", verdict_name(verdict.verdict)},
               {"reason", or_null(verdict.reason)}, {"recipes", Json::array()},
               {"findings", Json::array()},         {"parameters", Json::object()}};
  for (const RecipeFound& found : verdict.recipes)
    json["recipes"].push_back({{"recipe", or_null(found.recipe)},
                               {"coefficients", or_null(found.coefficients)},
                               {"steps", or_null(found.steps)},
                               {"nesterov", or_null(found.nesterov)},
                               {"parameters", found.parameters}});
  for (const Finding& found : verdict.findings)
    json["findings"].push_back({{"kind", or_null(found.kind)},
                                {"axis", or_null(found.axis)},
                                {"parameters", found.parameters},
                                {"sentence", found.sentence}});
  for (const ParameterVerdict& of : verdict.parameters)
    json["parameters"][of.name] = {
        {"verdict", verdict_name(of.verdict)}, {"reason", or_null(of.reason)},     {"optimizer", or_null(of.optimizer)},
        {"recipe", or_null(of.recipe)},        {"distance", or_null(of.distance)}, {"alpha", or_null(of.alpha)},
        {"alpha_law", or_null(of.alpha_law)},  {"beta", or_null(of.beta)},         {"beta_law", or_null(of.beta_law)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muonwalk::check
