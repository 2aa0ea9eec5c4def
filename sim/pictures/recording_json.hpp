#pragma once

#include <string>

#include "sim/recording/recording.hpp"

namespace muonwalk::sim {

/// The recording as JSON, the format "muonwalk-recording" version 1, with a newline at its end. Floats have as many
/// digits as it takes to read the same bits back; infinities and NaN, which JSON has no numbers for, are the strings
/// "inf", "-inf" and "nan". Equal recordings give equal bytes.
std::string recording_json(const Recording& recording);

}  // namespace muonwalk::sim
