#pragma once

#include <fmt/format.h>

#include <string>

#include "src/optim/plan.hpp"

namespace muonwalk::test {

/// All that a plan says, an operation a line: of work its phase, parameter, shape and FLOPs, of a call its text, and of
/// memory how many elements of what are taken or given back.
inline std::string listing_of(const Plan& plan) {
  std::string text = fmt::format("{}, rank {}: dp {}, tp {}, pp {}\n", plan.grid.text(), plan.place.rank, plan.place.dp,
                                 plan.place.tp, plan.place.pp);
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation))
      text += fmt::format("{} of {}: {} x {}, {:.0f}\n", std::string(work->phase), work->parameter, work->shape.rows,
                          work->shape.cols, work->flops);
    if (const Call* call = std::get_if<Call>(&operation)) text += "  " + muonwalk::text(*call) + "\n";
    if (const Memory* memory = std::get_if<Memory>(&operation))
      text += fmt::format("  {:+} {}, {}\n", memory->elements, std::string(memory->what), element_name(memory->type));
  }
  return text + "\n";
}

}  // namespace muonwalk::test
