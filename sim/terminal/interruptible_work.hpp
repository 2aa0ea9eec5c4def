#pragma once

namespace muonwalk::sim {

/// In a notebook Jupyter's button *Interrupt* sends SIGINT to the kernel, which dies of it where nobody is prepared.
/// Once this was called, an idle kernel takes no notice, whatever handler it had, which comes back when the library
/// goes; and work in an InterruptibleWork ends with a sentence. To be called when the notebook's library is loaded; a
/// notebook looks it up by its name, in the cell that loads the library.
extern "C" void muonwalk_let_work_be_interrupted();

/// While one lives, SIGINT asks the work in its scope to end, and does nothing else; afterwards signals are as they
/// were before. One within another belongs to the same work. Without muonwalk_let_work_be_interrupted it does nothing.
/// For the thread that runs a cell.
class InterruptibleWork {
 public:
  /// The work begins here; nobody has asked yet.
  InterruptibleWork();
  /// The work has ended, in whatever way.
  ~InterruptibleWork();
  InterruptibleWork(const InterruptibleWork&) = delete;
  InterruptibleWork& operator=(const InterruptibleWork&) = delete;

  /// Somebody has asked the work to end. Any thread may look.
  static bool asked_to_end();

  /// Throws RunError with a sentence when somebody has asked.
  static void end_if_asked();
};

}  // namespace muonwalk::sim
