// A lesson in which things go wrong on purpose, in ways that --fault does not know. The tests of faults run it; the
// steps are `meet`, `trouble` and `part`.

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

std::string mode = "none";
int culprit = 0;
float seconds = 2;
int elements = 1;
std::string file;

struct Local {
  Flat sums;  // 6 elements, the same on all ranks of a DP group
};

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The group of this rank that has most members, so that there is somebody to talk to in every layout.
Communicator& largest_group(Rank& rank) {
  Communicator& smaller = rank.dp().size() >= rank.tp().size() ? rank.dp() : rank.tp();
  return smaller.size() >= rank.pp().size() ? smaller : rank.pp();
}

void talk_everywhere(Rank& rank, Index count) {
  for (const char* name : {"dp", "tp", "pp"}) rank.group(name).all_reduce(Flat(static_cast<std::size_t>(count), 1.0f));
}

// Waits for one number of the next rank of the group.
void receive_from_next(Rank& rank) {
  float number = 0;
  Communicator& group = largest_group(rank);
  group.recv(&number, 1, (group.rank() + 1) % group.size());
}

// Deeper than any stack.
int call_itself(int depth) {
  volatile char frame[1000];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? frame[0] : call_itself(depth - 1) + frame[0];
}

// So many seconds of processor time.
void compute_for(double much) {
  const double until = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + much;
  while (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) < until) {
  }
}

// Everybody sends to the next rank of the group before receiving from the one before.
void send_first(Rank& rank) {
  Communicator& group = largest_group(rank);
  const Flat out(static_cast<std::size_t>(elements), 1.0f);
  Flat in = out;
  group.send(out.data(), elements, (group.rank() + 1) % group.size());
  group.recv(in.data(), elements, (group.rank() + group.size() - 1) % group.size());
}

// The culprit posts a message and never waits for it.
void drop_transfer(Rank& rank) {
  Communicator& group = largest_group(rank);
  const float number = 1;
  group.isend(&number, 1, (group.rank() + 1) % group.size());
}

void misbehave() {
  if (mode == "kill") kill(getpid(), SIGKILL);
  if (mode == "exit") _exit(7);
  if (mode == "throw") throw std::runtime_error("the culprit threw");
  if (mode == "throw_int") throw 42;
  if (mode == "memory") Flat(std::size_t{1} << 60);
  if (mode == "usage") throw UsageError("--culprit refuses its input");
  if (mode == "stop") kill(getpid(), SIGSTOP);
  if (mode == "hang")
    while (true) pause();
  if (mode == "abort") {
    signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  if (mode == "segv") {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (mode == "compute") compute_for(seconds);
  if (mode == "recursion") elements += call_itself(1 << 24);
}

void die_of_alarm(int) { kill(getpid(), SIGKILL); }

void meet(Rank& rank, Local&) { talk_everywhere(rank, 8); }

void trouble(Rank& rank, Local& local) {
  const bool guilty = rank.rank() == culprit;
  if (mode == "nap")
    while (true) pause();
  if (mode == "saving" && guilty) {
    FileBeside half(file);
    half.write("half", 4);
    while (true) pause();
  }
  if (mode == "deadlock") {
    receive_from_next(rank);
  } else if (mode == "send_first") {
    send_first(rank);
  } else if (mode == "drop_transfer") {
    if (guilty) drop_transfer(rank);
    return;
  } else if (mode == "stray_receive") {  // the others go on and never talk again
    if (guilty) receive_from_next(rank);
    local.sums = Flat(6, static_cast<float>(rank.grid.dp()));
    return;
  } else if (mode == "wrong_call") {
    if (guilty)
      receive_from_next(rank);
    else
      largest_group(rank).all_reduce(Flat(1));
  } else if (mode == "consequence_first") {  // who lost a peer says so before anybody says why
    if (guilty) throw PeerLostError("a peer has left");
    try {
      for (int round = 0; round < 1000; ++round) talk_everywhere(rank, 8);
    } catch (const RunError&) {
      throw std::runtime_error("this is the cause");
    }
  } else if (mode == "mismatch") {
    largest_group(rank).all_gather(Flat(guilty ? 3 : 2));
  } else if (mode == "loop" || mode == "killed_during") {
    if (mode == "killed_during" && guilty) {  // at a moment that nobody chose, most likely within a long all-gather
      signal(SIGALRM, die_of_alarm);
      itimerval soon{{0, 0}, {0, 40000}};
      setitimer(ITIMER_REAL, &soon, nullptr);
    }
    // Rank 0 alone looks at the clock: all have to stop in the same round.
    const double until = clock_seconds(CLOCK_MONOTONIC) + seconds;
    for (float go_on = 1; go_on > 0;) {
      talk_everywhere(rank, mode == "loop" ? 16 : Index{1} << 18);
      go_on = rank.rank() != 0 || clock_seconds(CLOCK_MONOTONIC) < until ? 1.0f : 0.0f;
      for (const char* name : {"tp", "dp", "pp"}) rank.group(name).broadcast(&go_on, 1, 0);
      if (mode == "loop") usleep(1000);
    }
  } else {
    rank.tp().all_gather(Flat(8));
    if (guilty) misbehave();
    for (int phase = 0; guilty && mode == "compute_in_phases" && phase < seconds; ++phase) {
      rank.phase("phase " + std::to_string(phase));
      compute_for(1);
    }
    talk_everywhere(rank, Index{1} << 16);
  }
  local.sums = rank.dp().all_reduce(Flat(6, 1.0f));
}

bool dies_at_the_end = false;  // only the culprit's process knows

void part(Rank& rank, Local&) {
  dies_at_the_end = mode == "dies_at_the_end" && rank.rank() == culprit;
  if (mode != "stray_receive") talk_everywhere(rank, 8);
  if (mode == "slow_reference")  // far more than any pipe or socket holds
    for (int line = 0; line < 40000; ++line) rank.say(std::to_string(rank.place.rank) + std::string(100, 'x'));
}

Flat reference(const RankInfo& rank) {
  if (mode == "reference_throws_int") throw 42;
  if (mode == "slow_reference" && rank.place.rank == 0) sleep(static_cast<unsigned>(seconds));
  if (mode == "reference_throws") throw std::runtime_error("the reference can't be computed");
  return Flat(6, static_cast<float>(rank.grid.dp()));
}

}  // namespace

// Two layouts, as lesson 09 has them; `culprit` is the one whose check fails: 0, 1, or another number for none.
int check_two_layouts(const LessonInfo& info, int argc, char** argv) {
  for (const int layout : {0, 1}) {
    Lesson<Local> lesson(info, Grid().dp(2).tp(layout + 1), argc, argv);
    lesson.step("meet", [](Rank& rank, Local& local) { local.sums = rank.dp().all_reduce(Flat(6, 1.0f)); });
    lesson.check("sums", &Local::sums, [&](const RankInfo&) { return Flat(6, layout == culprit ? 3.0f : 2.0f); });
    if (const int code = lesson.answer(layout == 1 ? "everybody does." : ""); layout == 1) return code;
  }
  return 3;
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "fault_program";
  info.title = "What goes wrong";
  info.question = "who notices?";
  info.options = {{"--mode", "what goes wrong", &mode},
                  {"--culprit", "the rank that does it", &culprit},
                  {"--elements", "of a message", &elements},
                  {"--file", "what the culprit saves", &file},
                  {"--seconds", "for how long", &seconds}};
  for (int word = 1; word < argc; ++word)
    if (argv[word] == std::string("two_layouts")) return check_two_layouts(info, argc, argv);
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.step("meet", meet);
  lesson.step("trouble", trouble);
  lesson.check("sums", &Local::sums, reference);
  lesson.step("part", part);
  // What only one side knows must not decide what the other one does.
  if (mode == "goes_astray" && !lesson.is_parent()) lesson.step("astray", [](Rank&, Local&) {});
  if (dies_at_the_end) kill(getpid(), SIGKILL);
  if (mode == "asks_as_a_rank" && !lesson.all_equal()) return 1;
  return lesson.answer("everybody does.");
}
