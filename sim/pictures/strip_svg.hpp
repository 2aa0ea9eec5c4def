#pragma once

#include <string>

#include "sim/recording/recording.hpp"

namespace muonwalk::sim {

/// A step of a recording (from 0 on) as a picture: ranks as lanes; on the left what each held before, on the right what
/// it holds after, each as its part of the whole; arrows for what moved, with their bytes. SVG with a title and a
/// description in words, in light and dark by prefers-color-scheme.
std::string strip_svg(const Recording& recording, int step);

/// All steps below each other in one picture.
std::string strips_svg(const Recording& recording);

}  // namespace muonwalk::sim
