#pragma once

#include <string>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/optim/muon_settings.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk {

/// What the ranks of one program hold of one step, by rank: "before/w", "grad/w" and "after/w" of the shape of a TP
/// slice, "momentum_before/w" and "momentum_after/w" as the elements that the rank owns.
struct DumpOfRanks {
  Layout layout;
  MuonSettings told;  ///< What the program was told, and perhaps not what it does.
  int step = 1;       ///< Counted from 1.
  std::vector<std::vector<NamedMatrix>> tensors;
};

/// What muonwalk-check says of it: it is written as docs/dump-format.md says, a file for each rank, into a folder of
/// its own, which is gone when it has been read.
check::DumpVerdict judged(const DumpOfRanks& dump);

}  // namespace muonwalk
