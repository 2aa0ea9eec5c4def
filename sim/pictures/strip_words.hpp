#pragma once

#include <string>

#include "sim/recording/recording.hpp"

namespace muonwalk::sim {

/// A step of a recording (from 0 on) in words, a line for its title and one for each rank: what it held before, what it
/// sent and what it holds after. For those who can't see the strip, and where no picture can be shown.
std::string strip_words(const Recording& recording, int step);

}  // namespace muonwalk::sim
