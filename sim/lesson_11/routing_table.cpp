#include "sim/lesson_11/routing_table.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The sentence with which `route` refuses, behind `what`.
std::string refusal(const std::string& what, const std::vector<Parameter>& parameters,
                    const std::vector<ParameterGroup>& groups) {
  std::string sentence = "nothing is refused";
  try {
    route(parameters, groups);
  } catch (const UsageError& error) {
    sentence = error.what();
  }
  std::string text;
  for (const std::string& line : paragraph(what + ": " + sentence, 0, 2)) text += line + "\n";
  return text;
}

}  // namespace

std::string knobs_text(const MuonSettings& settings) {
  return fmt::format("{:g}, {:g}, {:g}", settings.lr, settings.weight_decay, settings.momentum);
}

std::string knobs_text(const AdamWSettings& settings) {
  return fmt::format("{:g}, {:g}, {:g} and {:g}", settings.lr, settings.weight_decay, settings.beta1, settings.beta2);
}

std::string routing_text(const std::vector<Parameter>& parameters, const std::vector<ParameterGroup>& groups,
                         const std::vector<std::string>& knobs) {
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "shape", "group", "optimizer", "lr, decay, momentum or betas"}};
  for (const Parameter& each : route(parameters, groups)) {
    const std::size_t group = static_cast<std::size_t>(each.group);
    const std::string shape =
        each.dims == 1 ? number_text(each.shape.size()) : shape_text(each.shape.rows, each.shape.cols);
    rows.push_back({visible_name(each.name), shape, groups[group].name, groups[group].make()->name(), knobs.at(group)});
  }
  std::vector<ParameterGroup> fewer = groups, twice = groups;
  fewer.pop_back();
  twice.front().claim.except.clear();
  return text_table(rows) + refusal("without the last group", parameters, fewer) +
         refusal("without the exceptions of the first", parameters, twice);
}

}  // namespace muonwalk::sim
