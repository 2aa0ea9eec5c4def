#pragma once

#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"
#include "src/optim/rms_monitor.hpp"

namespace muonwalk::sim {

/// What RmsMonitor says of matrices as one row of numbers: of each, the weights and the update.
Matrix row_of(const std::vector<ParameterRms>& all);

/// What it should say of `matrices` after a step of one process, in plain loops over whole matrices: `before` and
/// `after` are the weights of all parameters, these first, and `keep` is the factor by which they decay. The update is
/// what is missing after the decay.
Matrix expected_row(const std::vector<Parameter>& matrices, const std::vector<NamedMatrix>& before,
                    const std::vector<NamedMatrix>& after, double keep);

/// Rows with the elements of `wanted` where they are within `tolerance` (relative), and of `held` elsewhere: what is
/// near enough then counts as equal. As many rows as are held; one that is not wanted, or of another shape, stays as it
/// is.
std::vector<Matrix> near_as_equal(const std::vector<Matrix>& held, const std::vector<Matrix>& wanted, double tolerance);

/// Rows with names, for a check. Throws std::invalid_argument where there are not as many of both.
std::vector<NamedMatrix> named_rows(const std::vector<std::string>& names, const std::vector<Matrix>& rows);

/// A table of what the monitor of the first rank has said: a line for each of its rows, and of each matrix the root
/// mean squares of its update and of its weights. Empty where no rank told anything.
std::string monitor_table(const std::vector<std::vector<NamedMatrix>>& rows_of_ranks,
                          const std::vector<Parameter>& matrices);

}  // namespace muonwalk::sim
