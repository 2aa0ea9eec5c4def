// A lesson that stops when asked, and goes through quiet steps until then. The tests of stopping run it.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "sim/classroom/lesson.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

bool deaf = false;  // does not ask to be asked
int steps = 1000000;
int at = 1;  // the step in which something happens, or before which
std::string mode = "none";

struct Local {
  int taken = 0;  // steps
};

void take_step(Rank& rank, Local& local) {
  if (mode == "decide_late" && rank.rank() == 0) {  // others end the step first, which is what the rank waits for
    float nothing = 0;
    rank.dp().recv(&nothing, 1, 1);
  }
  rank.decide_whether_to_stop();
  if (mode == "decide_late") return;
  if (mode == "hang" && local.taken + 1 == at && rank.rank() == 1)
    while (true) pause();
  rank.group("world").all_reduce(Flat(64, 1.0f));
  ++local.taken;
  usleep(static_cast<useconds_t>((local.taken * 7 + rank.rank() * 13) % 5) * 100);  // ranks part, and meet again
}

void tell(Rank& rank, Local& local) { rank.say(fmt::format("took {} steps", local.taken)); }

}  // namespace

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "stopping_program";
  info.title = "Stopping";
  info.question = "after which step?";
  info.groups = {{"world", {}}};
  info.options = {{"--deaf", "a signal ends the run", &deaf},
                  {"--steps", "the most steps", &steps},
                  {"--at", "a step", &at},
                  {"--mode", "what happens", &mode}};
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  if (!deaf) lesson.stop_when_asked();
  std::puts("ready");  // for signals, and no rank is there yet
  std::fflush(stdout);
  if (mode == "ask_before_start") raise(SIGINT);
  int taken = 0;
  while (taken < steps && !lesson.stops()) {
    if (mode == "ask_between" && taken + 1 == at) lesson.in_parent([] { raise(SIGINT); });
    ++taken;
    lesson.quiet_step(fmt::format("quiet step {}", taken), take_step);
    if (taken == at) lesson.step("that was it", tell);
  }
  if (mode == "ask_afterwards") lesson.in_parent([] { raise(SIGINT); });
  lesson.step("tell", tell);
  lesson.say(fmt::format("the program took {} steps", taken));
  if (lesson.stops()) return lesson.interrupted(fmt::format("interrupted after step {}; --resume goes on", taken));
  return lesson.answer("none.");
}
