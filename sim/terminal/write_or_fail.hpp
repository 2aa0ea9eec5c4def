#pragma once

#include <functional>

namespace muonwalk::sim {

/// Calls `write`, which writes files while a run goes on or at its end. Ctrl-C waits until they are whole
/// (InterruptHold). What can't be written then, because a disk is full by now, has broken on the way: throws RunError
/// with the sentence of the UsageError. So a program ends with exit code 3, and with 2 where it refuses a path before
/// the run.
void write_or_fail(const std::function<void()>& write);

}  // namespace muonwalk::sim
