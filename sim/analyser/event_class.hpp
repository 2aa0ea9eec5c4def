#pragma once

#include <string>

#include "sim/analyser/event.hpp"

namespace muonwalk::sim {

/// What an event is, by its category and its name, as trace_dialects.hpp lists them.
EventClass classify(TraceDialect dialect, const std::string& category, const std::string& name);

/// Why events of a category count in no figure, for EventClass::other.
std::string why_left_out(TraceDialect dialect, const std::string& category);

/// A range around the optimizer's step: "Optimizer.step#Muon.step" of PyTorch, "optimizer: …" of lessons.
bool names_optimizer(TraceDialect dialect, const std::string& name);

}  // namespace muonwalk::sim
