#pragma once

#include <memory>
#include <vector>

#include "lessons/lesson_20_pretrain/serial_run.hpp"
#include "sim/classroom/lesson.hpp"

namespace muonwalk::sim {

/// What came of a pretraining, from its references, one for each way: the tables of losses and of leads, a spectrum and
/// a line of text for each, the curves as the picture "losses" and, where they were asked for, as CSV. Only in the
/// parent, which has the references.
void print_results_of(LessonCore& lesson, const PretrainingRequest& request,
                      const std::vector<std::unique_ptr<SerialRun>>& references);

}  // namespace muonwalk::sim
