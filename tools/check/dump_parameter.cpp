#include <fmt/format.h>

#include <algorithm>

#include "src/text/names.hpp"
#include "tools/check/dump.hpp"
#include "tools/check/dump_findings.hpp"

namespace muonwalk::check {

ReadParameter DumpedStep::read(const DumpedParameter& parameter) const {
  ReadParameter read;
  ParameterCase& whole = read.parameter;
  whole.name = parameter.name;
  whole.shape = parameter.shape;
  whole.meant = parameter.meant;
  whole.blocks = parameter.blocks;
  whole.hyper = parameter.hyper;
  whole.step = step;
  whole.mesh = mesh;

  const Holdings weights = holdings(parameter, Role::weights), moments = holdings(parameter, Role::moments);
  const auto any = [&](const std::string& tensor) {
    for (int rank = 0; rank < world(); ++rank)
      if (header(tensor + "/" + parameter.name, rank) != nullptr) return true;
    return false;
  };
  whole.of_masters = any("master_before");
  if (whole.of_masters != any("master_after"))
    refuse(in_quotes(parameter.name) + " has masters before or after the step, but not both");
  // Masters are cut as moments are, or as weights: their shapes say which.
  bool as_moments = true;
  for (int rank = 0; rank < world(); ++rank)
    if (const StoredTensor* master = header("master_before/" + parameter.name, rank))
      as_moments = as_moments && !moments.parts[rank].ranges.empty() && master->shape == moments.shapes[rank];
  const Holdings& masters = as_moments ? moments : weights;

  const Holdings gradient = holdings(parameter, Role::grad);
  for (const CaseTensor& tensor : kCaseTensors) {
    const bool stepped = tensor.role == Role::weights, of_master = stepped && whole.of_masters;
    const std::string name = (of_master ? "master_" : "") + std::string(tensor.name);
    if (stepped && !any(tensor.name)) refuse("no rank has " + in_quotes(tensor.name + ("/" + parameter.name)));
    whole.*tensor.of = assembled(parameter, name,
                                 of_master                      ? masters
                                 : stepped                      ? weights
                                 : tensor.role == Role::moments ? moments
                                                                : gradient);
    const std::optional<Finding> bad = not_finite(*this, parameter, name, whole.*tensor.of);
    if (bad && tensor.given) throw NotFiniteError("can't judge what follows: " + bad->sentence);
    if (bad) read.findings.push_back(*bad);
  }
  if (step == 1)
    for (Assembled* moment : {&whole.momentum_before, &whole.second_before})
      for (const Assembled::Version& version : moment->versions)
        if (std::any_of(version.values.begin(), version.values.end(), [](float value) { return value != 0; }))
          refuse(fmt::format("the moments of {} before step 1 are not zero", in_quotes(parameter.name)));

  whole.cuts = cuts(parameter);
  find_raw(*this, parameter, weights, masters, read);
  whole.parts = weights.parts;
  for (std::size_t rank = 0; rank < weights.parts.size(); ++rank)
    if (weights.parts[rank].ranges != moments.parts[rank].ranges) whole.moment_parts = moments.parts;
  return read;
}

}  // namespace muonwalk::check
