#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/replay/page_parts.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"
#include "tools/check/output.hpp"

namespace muonwalk::sim::page_texts {

// The files that the page is made from: page/check.html, .css and .js, and the style sheet of all tools' pages.
extern const char* const check_html;
extern const char* const check_css;
extern const char* const check_js;
extern const char* const check_page_css;

}  // namespace muonwalk::sim::page_texts

namespace muonwalk::check {
namespace {

using nlohmann::json;

// The most rectangles that a part is drawn as; what they leave out would be narrower than can be seen.
constexpr std::size_t kMostRectangles = 64;

// The part as rectangles [row, column, rows, columns] of the matrix that has these columns: equal stretches of rows
// below each other are one.
json rectangles(const Part& part, std::int64_t columns) {
  std::vector<std::array<std::int64_t, 4>> boxes;
  const auto add = [&](std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t width) {
    if (!boxes.empty()) {
      auto& [above, at, high, wide] = boxes.back();
      if (at == column && wide == width && above + high == row) {
        high += rows;
        return;
      }
    }
    boxes.push_back({row, column, rows, width});
  };
  for (auto [begin, end] : part.ranges) {
    while (begin < end) {
      const std::int64_t row = begin / columns, column = begin % columns;
      const std::int64_t rows = column == 0 ? std::max<std::int64_t>(1, (end - begin) / columns) : 1;
      const std::int64_t width = rows > 1 ? columns : std::min(columns - column, end - begin);
      add(row, column, rows, width);
      begin += rows > 1 ? rows * columns : width;
    }
    if (boxes.size() > kMostRectangles) break;
  }
  return boxes;
}

// [{"name", "verdict", "reason", "rows", "columns", "parts": [{"ranks", "boxes", "distance"}]}]: ranks that hold the
// same elements are one part, of the largest of their distances; null where it isn't known.
json page_data(const DumpVerdict& verdict, const DumpedStep& step) {
  json data = json::array();
  for (const ParameterVerdict& of : verdict.parameters) {
    const DumpedParameter* parameter = step.find(of.name);
    if (parameter == nullptr || parameter->elements == 0) continue;
    const std::int64_t columns = parameter->shape.empty() ? 1 : parameter->shape.back();
    json parts = json::array();
    std::vector<std::pair<const Part*, std::size_t>> drawn;
    const Holdings holdings = step.holdings(*parameter, Role::weights);
    for (const Part& part : holdings.parts) {
      if (part.ranges.empty()) continue;
      auto same =
          std::find_if(drawn.begin(), drawn.end(), [&](const auto& one) { return one.first->ranges == part.ranges; });
      if (same == drawn.end()) {
        same = drawn.insert(drawn.end(), {&part, parts.size()});
        parts.push_back({{"ranks", json::array()},
                         {"boxes", rectangles(part, columns)},
                         {"distance", of.distance ? json(*of.distance) : json()}});
      }
      json& shown = parts[same->second];
      shown["ranks"].push_back(part.rank);
      for (const auto& [rank, distance] : of.rank_distance)
        if (rank == part.rank)
          shown["distance"] =
              shown["ranks"].size() == 1 ? distance : std::max(distance, shown["distance"].get<double>());
    }
    data.push_back({{"name", visible_name(of.name)},
                    {"verdict", verdict_name(of.verdict)},
                    {"reason", of.reason},
                    {"shape", fmt::format("{}", fmt::join(parameter->shape, " × "))},
                    {"rows", parameter->elements / columns},
                    {"columns", columns},
                    {"parts", parts}});
  }
  return data;
}

}  // namespace

std::string verdict_page(const DumpVerdict& verdict, const DumpedStep& step) {
  std::vector<std::pair<std::string, Colour>> colours(std::begin(kPageColours), std::end(kPageColours));
  colours.emplace_back("accent", rank_colour(7));
  colours.emplace_back("clean", parameter_colour(2));
  colours.emplace_back("unknown", parameter_colour(4));
  colours.emplace_back("differs", parameter_colour(1));
  colours.emplace_back("unjudgeable", kPadding);
  return filled_page(
      sim::page_texts::check_html,
      {{"title", fmt::format("Check of step {}: {}", step.step, verdict_name(verdict.verdict))},
       {"style", colour_properties(colours) + sim::page_texts::check_page_css + sim::page_texts::check_css},
       {"printed", xml_text(fmt::format("{}", fmt::join(verdict_text(verdict), "\n")))},
       {"data", script_text(page_data(verdict, step).dump(-1, ' ', false, json::error_handler_t::replace))},
       {"script", sim::page_texts::check_js}});
}

}  // namespace muonwalk::check
