#include "docs/figures/data/figure.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "src/errors.hpp"

namespace muonwalk {
namespace {

using nlohmann::json;

json state_of(const BarFigure& figure, const std::vector<std::string>& chosen) {
  std::vector<Bar> bars;
  try {
    bars = figure.bars(chosen);
  } catch (const UsageError& refused) {
    return refused.what();
  }
  if (bars.size() != figure.rows.size())
    throw std::logic_error(fmt::format("{} has {} bars for {} rows", figure.title, bars.size(), figure.rows.size()));
  json state = json::array();
  for (const Bar& bar : bars) {
    if (bar.parts.size() > figure.series.size() || bar.cells.size() != figure.columns.size())
      throw std::logic_error(fmt::format("{} has a bar that doesn't fit its series and columns", figure.title));
    state.push_back({bar.parts, bar.cells});
  }
  return state;
}

void add_states(const BarFigure& figure, std::vector<std::string>& chosen, json& states) {
  if (chosen.size() == figure.choices.size()) {
    states.push_back(state_of(figure, chosen));
    return;
  }
  for (const std::string& value : figure.choices[chosen.size()].values) {
    chosen.push_back(value);
    add_states(figure, chosen, states);
    chosen.pop_back();
  }
}

}  // namespace

json BarFigure::json() const {
  nlohmann::json all = {{"kind", "bars"},   {"title", title},     {"words", words},
                        {"series", series}, {"columns", columns}, {"each_by_itself", each_by_itself}};
  for (const Choice& choice : choices)
    all["choices"].push_back(
        {{"name", choice.name}, {"words", choice.words}, {"values", choice.values}, {"start", choice.start}});
  for (const BarRow& row : rows) all["rows"].push_back({{"name", row.name}, {"scale", row.scale}});
  all["states"] = nlohmann::json::array();
  std::vector<std::string> chosen;
  add_states(*this, chosen, all["states"]);
  return all;
}

Grid chosen_grid(const std::vector<std::string>& chosen) {
  return Grid().dp(std::stoi(chosen.at(0))).tp(std::stoi(chosen.at(1)));
}

std::vector<std::string> doubled(int most) {
  std::vector<std::string> values;
  for (int value = 1; value <= most; value *= 2) values.push_back(std::to_string(value));
  return values;
}

}  // namespace muonwalk
