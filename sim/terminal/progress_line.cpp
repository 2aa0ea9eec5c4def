#include "sim/terminal/progress_line.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

namespace muonwalk::sim {
namespace {

constexpr int kNowhere = -1;
std::atomic<int> line_on{kNowhere};  // the file of the terminal that has a line of progress now
bool wanted = true;

void write_to(int file, const std::string& text) {
  if (::write(file, text.data(), text.size()) < 0) return;  // nobody would hear of it
}

// Without memory from the heap, of which a handler must not ask.
void clear_line_on(int file) {
  constexpr char kClear[] = "\r\x1b[K";
  if (::write(file, kClear, sizeof kClear - 1) < 0) return;
}

}  // namespace

void show_progress(bool shown) { wanted = shown; }

void clear_progress_line() {
  const int file = line_on.exchange(kNowhere);
  if (file != kNowhere) clear_line_on(file);
}

std::string progress_text(const std::string& what, int done, int all, int timed, double seconds) {
  const std::string text = fmt::format("{}: step {} of {}", what, done, all);
  if (timed <= 0 || seconds <= 0) return text;
  const double rate = timed / seconds;
  return text + fmt::format(" · {:.1f} steps/s · {:.0f} s left", rate, (all - done) / rate);
}

ProgressLine::ProgressLine(std::string what, int all, int file)
    : what_(std::move(what)), all_(all), file_(file), on_terminal_(isatty(file) != 0) {}

ProgressLine::~ProgressLine() {
  if (shown_) end();
}

// It is cleared even where a sentence has its place by now: that one is on a line of its own.
void ProgressLine::end() {
  line_on = kNowhere;
  clear_line_on(file_);
  shown_ = false;
}

void ProgressLine::at(int done) {
  if (!on_terminal_ || !wanted) return;
  const auto now = std::chrono::steady_clock::now();
  if (first_ < 0) first_ = done, began_ = now;
  if (done >= all_) {
    if (shown_) end();
    return;
  }
  if (shown_ && now - last_ < std::chrono::milliseconds(100)) return;
  const std::chrono::duration<double> took = now - began_;
  line_on = file_;  // before it is there: a signal may come in between
  shown_ = true;
  last_ = now;
  write_to(file_, "\r" + progress_text(what_, done, all_, done - first_, took.count()) + "\x1b[K");
}

}  // namespace muonwalk::sim
