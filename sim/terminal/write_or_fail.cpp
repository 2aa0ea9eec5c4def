#include "sim/terminal/write_or_fail.hpp"

#include "sim/terminal/end_on_signals.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

void write_or_fail(const std::function<void()>& write) {
  try {
    const InterruptHold hold;
    write();
  } catch (const UsageError& error) {
    throw RunError(error.what());
  }
}

}  // namespace muonwalk::sim
