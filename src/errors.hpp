#pragma once

#include <stdexcept>
#include <string>

namespace muonwalk {

/// The reader asked for something that cannot work (a bad option, layout or file). The message is one sentence that
/// says what was asked, why it cannot be, and what would work. A program that ends with it exits with 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A run that was asked for correctly broke on the way (a rank died, a message had the wrong size, a timeout). A
/// program that ends with it exits with 3.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rank can't go on because another rank is gone. It is a consequence of what went wrong there and never the cause,
/// so a run that breaks names an error of another kind where there is one.
struct PeerLostError : RunError {
  using RunError::RunError;
};

/// Nothing has come from another rank for as long as this one was to wait.
struct TimeoutError : RunError {
  using RunError::RunError;
};

/// A process that is not a rank of the run has connected to one. No rank is to blame.
struct StrangerError : RunError {
  using RunError::RunError;
};

}  // namespace muonwalk
