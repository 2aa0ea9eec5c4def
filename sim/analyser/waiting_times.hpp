#pragma once

#include <vector>

#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

/// Sets the same call side by side on all ranks that were traced: the n-th call of a collective in a group. The
/// shortest one came last and waited for nobody, so it is the transfer; what others took longer, they waited. Needs no
/// common clock. Returns [file][rank of the file]. Calls that do not say their group, or in which only one rank was
/// traced, stay unmatched; a call that some ranks made and others of the group did not is said in `notes`.
std::vector<std::vector<WaitingTimes>> waiting_times(const std::vector<TraceFile>& files,
                                                     std::vector<std::string>& notes);

}  // namespace muonwalk::sim
