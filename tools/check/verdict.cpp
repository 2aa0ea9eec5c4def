#include "tools/check/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/replay/palette.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"
#include "tools/check/dump.hpp"
#include "tools/check/muonwalk_check_texts.hpp"

namespace muonwalk::check {
namespace {

using Json = nlohmann::ordered_json;

// What the catalogue of bugs knows of a kind; empty where it isn't in it.
Json catalogue_entry(const std::string& kind) {
  static const Json catalogue = Json::parse(sim::page_texts::catalogue_json);
  return catalogue.value(kind, Json::object());
}

std::string short_number(double number) { return fmt::format("{:.3g}", number); }

// "lr · decay = 0.0008"
std::string law_words(const std::string& law, const std::optional<double>& value) {
  if (!value) return law;
  return (law.empty() ? "" : law + " = ") + short_number(*value);
}

Json verdict_object(const DumpVerdict& verdict) {
  const auto text = [](const std::string& of) { return of.empty() ? Json() : Json(of); };
  const auto maybe = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json json = {{"format", "muonwalk-check 1"},   {"verdict", verdict_name(verdict.verdict)},
               {"reason", text(verdict.reason)}, {"recipes", Json::array()},
               {"findings", Json::array()},      {"parameters", Json::object()}};
  for (const RecipeFound& found : verdict.recipes)
    json["recipes"].push_back({{"recipe", text(found.recipe)},
                               {"coefficients", text(found.coefficients)},
                               {"steps", maybe(found.steps)},
                               {"nesterov", maybe(found.nesterov)},
                               {"parameters", found.parameters}});
  for (const Finding& found : verdict.findings)
    json["findings"].push_back({{"kind", text(found.kind)},
                                {"axis", text(found.axis)},
                                {"parameters", found.parameters},
                                {"sentence", found.sentence}});
  for (const ParameterVerdict& of : verdict.parameters)
    json["parameters"][of.name] = {
        {"verdict", verdict_name(of.verdict)}, {"reason", text(of.reason)},      {"optimizer", text(of.optimizer)},
        {"recipe", text(of.recipe)},           {"distance", maybe(of.distance)}, {"alpha", maybe(of.alpha)},
        {"alpha_law", text(of.alpha_law)},     {"beta", maybe(of.beta)},         {"beta_law", text(of.beta_law)}};
  return json;
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  constexpr const char* kNames[] = {"clean", "unknown", "differs", "unjudgeable"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string bug_text(const std::string& kind) {
  std::string text = catalogue_entry(kind).value("bug", "");
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::vector<std::string> verdict_text(const DumpVerdict& verdict) {
  std::vector<std::string> lines;
  const auto say = [&](const std::string& text, int indent = 0, int hanging = 2) {
    append(lines, paragraph(text, indent, hanging));
  };
  say(fmt::format("{}{}{}", verdict_name(verdict.verdict), verdict.reason.empty() ? "" : ": ", verdict.reason));
  Table table({{"parameter"}, {"verdict"}, {"stepped by"}, {"recipe"}, {"distance", Side::right}, {"α"}, {"β"}});
  for (const ParameterVerdict& parameter : verdict.parameters)
    table.row({visible_name(parameter.name, 40), verdict_name(parameter.verdict), parameter.optimizer, parameter.recipe,
               parameter.distance ? short_number(*parameter.distance) : "",
               law_words(parameter.alpha_law, parameter.alpha), law_words(parameter.beta_law, parameter.beta)});
  if (!verdict.parameters.empty()) lines.emplace_back(), append(lines, table.lines());
  for (const RecipeFound& recipe : verdict.recipes) {
    lines.emplace_back();
    say(fmt::format("{}{}{}{}: {}", recipe.recipe, recipe.coefficients.empty() ? "" : ", " + recipe.coefficients,
                    recipe.steps ? ", " + count_text(*recipe.steps, "step") : "",
                    !recipe.nesterov   ? ""
                    : *recipe.nesterov ? ", Nesterov"
                                       : ", without Nesterov",
                    visible_names(recipe.parameters)));
  }
  for (const Finding& finding : verdict.findings) {
    lines.emplace_back();
    say(fmt::format("{}{}: {}", finding.kind.empty() ? "not in the catalogue" : finding.kind,
                    finding.axis.empty() ? "" : " (" + finding.axis + ")", visible_names(finding.parameters)));
    say(finding.sentence, 2);
    // What to look for, if it isn't said yet; the test that would have caught it, and who has reported the like.
    const Json entry = catalogue_entry(finding.kind);
    if (const std::string advice = entry.value("look_for", ""); finding.sentence.find(advice) == std::string::npos)
      say(advice, 2, 4);
    if (entry.contains("test")) say("A test for it: " + entry["test"].get<std::string>(), 2, 4);
    for (const Json& report : entry.value("reports", Json::array()))
      say(fmt::format("Reported: {} ({})", report.value("what", ""), report.value("source", "")), 2, 4);
  }
  // Why a parameter isn't clean, where no finding says so.
  for (const ParameterVerdict& parameter : verdict.parameters)
    if (!parameter.reason.empty() &&
        std::none_of(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& finding) {
          return std::count(finding.parameters.begin(), finding.parameters.end(), parameter.name) > 0;
        }))
      say(visible_name(parameter.name) + ": " + parameter.reason);
  return lines;
}

std::string verdict_json(const DumpVerdict& verdict) { return dumped(verdict_object(verdict), 1) + "\n"; }

std::string verdict_page(const DumpVerdict& verdict, const DumpedStep& step) {
  Json data = verdict_object(verdict);
  data["step"] = step.step;
  data["printed"] = verdict_text(verdict);
  for (const auto& [name, colour] : {std::pair{"paper", kPaper},
                                     {"ink", kInk},
                                     {"clean", parameter_colour(2)},
                                     {"unknown", parameter_colour(4)},
                                     {"differs", parameter_colour(1)},
                                     {"unjudgeable", kPadding}})
    data["colours"][name] = fmt::format("light-dark({}, {})", colour.light, colour.dark);
  for (const ParameterVerdict& of : verdict.parameters) {
    const DumpedParameter* parameter = step.find(of.name);
    if (parameter == nullptr || parameter->elements == 0) continue;
    Json& map =
        data["maps"].emplace_back(Json{{"name", visible_name(of.name)}, {"of", of.name}, {"shape", parameter->shape}});
    const Holdings holdings = step.holdings(*parameter, "before");
    for (const Part& part : holdings.parts) {
      const Region& region = parameter->regions[part.rank][weights];
      if (!part.ranges.empty())
        map["parts"].push_back(
            {{"rank", part.rank}, {"box", region.box}, {"flat", region.flat ? Json(*region.flat) : Json()}});
    }
  }
  std::string json = dumped(data, -1), page = sim::page_texts::check_html;
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;) json.replace(at, 1, "\\u003c");
  const std::string place = "{{data}}";
  return page.replace(page.find(place), place.size(), json);
}

}  // namespace muonwalk::check
