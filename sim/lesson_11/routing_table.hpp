#pragma once

#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"
#include "src/optim/parameter_groups.hpp"

namespace muonwalk::sim {

/// The settings of an optimizer, as they stand in a routing_table: learning rate, weight decay, momentum or both betas.
/// @{
std::string knobs_text(const MuonSettings& settings);
std::string knobs_text(const AdamWSettings& settings);
/// @}

/// Who steps what: a table with a line for each of `parameters`, with its shape, its group and the group's optimizer,
/// and what `knobs` says of the group's settings, one text per group. Below it stand the sentences with which `route`
/// refuses the same parameters without the last group, and without the exceptions of the first group's claim.
std::string routing_text(const std::vector<Parameter>& parameters, const std::vector<ParameterGroup>& groups,
                         const std::vector<std::string>& knobs);

}  // namespace muonwalk::sim
