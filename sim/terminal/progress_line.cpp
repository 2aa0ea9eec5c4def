#include "sim/terminal/progress_line.hpp"

#include <fmt/format.h>

#include <utility>

namespace muonwalk::sim {

std::string progress_text(const std::string& what, int done, int all, int timed, double seconds) {
  const std::string text = fmt::format("{}: step {} of {}", what, done, all);
  if (timed <= 0 || seconds <= 0) return text;
  const double rate = timed / seconds;
  return text + fmt::format(" · {:.1f} steps/s · {:.0f} s left", rate, (all - done) / rate);
}

ProgressLine::ProgressLine(std::string what, int all, int file)
    : what_(std::move(what)), all_(all), file_(file), on_terminal_(isatty(file) != 0) {}

ProgressLine::~ProgressLine() {
  if (shown_) write("\r\x1b[K");
}

void ProgressLine::at(int done) {
  if (!on_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (first_ < 0) first_ = done, began_ = now;
  if (done >= all_) {
    if (shown_) write("\r\x1b[K");
    shown_ = false;
    return;
  }
  if (shown_ && now - last_ < std::chrono::milliseconds(100)) return;
  const std::chrono::duration<double> took = now - began_;
  write("\r" + progress_text(what_, done, all_, done - first_, took.count()) + "\x1b[K");
  shown_ = true;
  last_ = now;
}

void ProgressLine::write(const std::string& text) const {
  if (::write(file_, text.data(), text.size()) < 0) return;  // nobody would hear of it
}

}  // namespace muonwalk::sim
