// What goes wrong inside of a run: a rank that dies, leaves, throws, stops, hangs or never comes.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/ranks/fault_cases.hpp"

using namespace muonwalk::testing;

namespace {

std::string text(int number) { return std::to_string(number); }

std::vector<std::string> joined(std::vector<std::string> options, const std::vector<std::string>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

TEST_CASE("faults at the rendezvous or as a step begins: the first or the last rank, whatever it does: named, exit 3") {
  std::vector<FaultCase> cases;
  for (const int rank : {0, 7})
    for (const int step : {0, 2}) {
      const std::string at = ":" + text(rank) + ":" + text(step), who = "rank " + text(rank);
      const std::string where = step == 0 ? "in step 'rendezvous'" : "in step 'trouble'";
      cases.push_back({{"--fault", "kill" + at}, 3, {who + " was killed by signal 9 (SIGKILL)", where}});
      cases.push_back({{"--fault", "exit" + at}, 3, {who + " exited early with code 0", where}});
      cases.push_back({{"--fault", "throw" + at}, 3, {who + " failed", where, "asked for it"}});
      cases.push_back({{"--fault", "stop" + at}, 3, {who + " was stopped by signal 19 (SIGSTOP)", where}});
      cases.push_back({{"--fault", "hang" + at}, 3, {who + (step == 0 ? " never connected" : " did nothing"), where}});
      if (step == 0)
        cases.push_back({{"--fault", "never-connect:" + text(rank)}, 3, {who + " never connected", where}});
    }
  // Step 3 comes after a check: hand-overs between the steps have no number.
  cases.push_back({{"--fault", "kill:3:3"}, 3, {"rank 3 was killed", "in step 'part'"}});
  cases.push_back({{"--fault", "kill:3:4"}, 2, {"--fault names step 4", "0 (the rendezvous) to 3"}});
  run_cases(cases);
}

TEST_CASE("faults within a collective, between groups of several ranks: the culprit is named, not its victims") {
  std::vector<FaultCase> cases;
  for (int rank : {0, 5, 7}) {
    const std::string who = "rank " + text(rank), where = "in step 'trouble'";
    const auto with = [&](const char* mode) {
      return std::vector<std::string>{"--mode", mode, "--culprit", text(rank)};
    };
    cases.push_back({with("kill"), 3, {who + " was killed by signal 9 (SIGKILL)", where}});
    cases.push_back({with("killed_during"), 3, {who + " was killed by signal 9 (SIGKILL)", where}});
    cases.push_back({with("abort"), 3, {who + " was killed by signal 6 (SIGABRT)", where}});
    cases.push_back({with("segv"), 3, {who + " was killed by signal 11 (SIGSEGV)", where}});
    cases.push_back({with("exit"), 3, {who + " exited early with code 7", where}});
    cases.push_back({with("throw"), 3, {who + " failed", where, "the culprit threw"}});
    cases.push_back({with("throw_int"), 3, {who + " failed", where}});
    cases.push_back({with("usage"), 2, {"--culprit refuses its input"}});
    cases.push_back({with("stop"), 3, {who + " was stopped by signal 19 (SIGSTOP)", where}});
    cases.push_back({with("hang"), 3, {who + " did nothing", where}});
    cases.push_back(
        {with("stray_receive"), 3, {"nothing moved", where, who + " waits for messages that nobody sends"}});
    cases.push_back({with("mismatch"), 3, {"rank ", where, "do not make the same calls", "12 bytes", "8 bytes"}});
    cases.push_back({with("wrong_call"), 3, {"rank ", where, "do not make the same calls", "recv", "all_reduce"}});
  }
  cases.push_back({{"--mode", "deadlock"}, 3, {"nothing moved in step 'trouble'", "every rank waits for messages"}});
  cases.push_back(
      {{"--mode", "drop_transfer", "--culprit", "3"},
       3,
       {"rank 3 failed in step 'trouble'", "dropped a posted transfer", "send of float32, 1 in", "wait()"}});
  cases.push_back({{"--mode", "nap"}, 3, {"every rank did nothing in step 'trouble'"}});
  cases.push_back({{"--mode", "goes_astray"}, 3, {"went on to 'astray'", "as the outcome of a check"}});
  cases.push_back({{"--mode", "asks_as_a_rank"}, 3, {"was killed by signal 6 (SIGABRT)"}});
  cases.push_back({{"--mode", "reference_throws"}, 3, {"the reference can't be computed"}});
  for (int rank : {0, 7})  // behind its last step, when all checks have been made
    cases.push_back(
        {{"--mode", "dies_at_the_end", "--culprit", text(rank)}, 3, {"rank " + text(rank) + " was killed"}});
  for (int rank : {0, 7})
    cases.push_back(
        {{"--mode", "consequence_first", "--culprit", text(rank)}, 3, {"failed in step 'trouble': this is the cause"}});
  cases.push_back({{"--mode", "reference_throws_int"}, 3, {"something was thrown that is not a std::exception"}});
  run_cases(cases);
}

TEST_CASE("two layouts: the program fails when the check of either does, whichever comes last, in both worlds") {
  for (const std::string world : {"processes", "fibers"})
    for (const int culprit : {-1, 0, 1}) {
      CAPTURE(world);
      CAPTURE(culprit);
      const Outcome outcome = run_program(
          {fault_program(), "--mode", "two_layouts", "--culprit", text(culprit), "--world", world}, kFaultLimitSeconds);
      CHECK(outcome.exit_code == (culprit < 0 ? 0 : 1));
      CHECK(outcome.err == "");
      CHECK((outcome.out.find("fault_program: OK") != std::string::npos) == (culprit < 0));
      CHECK((outcome.out.find("fault_program: FAILED") != std::string::npos) == (culprit >= 0));
    }
}

TEST_CASE(
    "ranks that all send first: stuck at every size, in both worlds, in a sentence that goes around all of them") {
  struct Ring {
    const char* dp;
    const char* sentence;
  };
  const Ring rings[] = {
      {"2", "rank 0 waits in send for rank 1, which waits in send for rank 0; "},
      {"3", "rank 0 waits in send for rank 1, which waits in send for rank 2, which waits in send for rank 0; "},
      {"4", "for rank 3, which waits in send for rank 0; a send returns when its receiver has taken the message"}};
  std::vector<FaultCase> cases;
  for (const Ring& ring : rings)
    for (const char* elements : {"1", "1025", "100000"}) {
      const std::vector<std::string> options = {"--mode", "send_first", "--tp",       "1",
                                                "--dp",   ring.dp,      "--elements", elements};
      const std::vector<std::string> words = {"in step 'trouble'", ring.sentence, "isend"};
      cases.push_back({joined(options, {"--timeout", "60"}), 3, words});  // it does not take the timeout to know
      cases.push_back({joined(options, {"--world", "fibers"}), 3, words});
    }
  run_cases(cases);
}

TEST_CASE("a rank that computes for longer than the timeout is left in peace") {
  run_cases({{{"--mode", "compute", "--culprit", "2", "--seconds", "4"}, 0, {}},
             {{"--mode", "compute", "--culprit", "0", "--seconds", "4", "--dp", "1", "--tp", "2"}, 0, {}}});
  // Longer than the limit of processor time too, but it says in which phase it is.
  run_cases({{{"--mode", "compute_in_phases", "--culprit", "2", "--seconds", "4", "--timeout", "0.2"}, 0, {}}});
}

TEST_CASE("a rank that computes forever is named, in the rendezvous, at the start of a step and within one; exit 3") {
  const std::vector<std::string> sentence = {"did nothing but compute", "for 2 s of processor time",
                                             "longer --timeout"};
  const auto named = [&](const char* who, const char* where) { return joined(sentence, {who, where}); };
  run_cases(
      {{{"--fault", "spin:0:0", "--timeout", "0.2", "--threads", "1"}, 3, named("rank 0", "in step 'rendezvous'")},
       {{"--fault", "spin:7:2", "--timeout", "0.2", "--threads", "1"}, 3, named("rank 7", "in step 'trouble'")}});
  run_cases(  // no more than these at a time, because each of them takes a processor
      {{{"--mode", "compute", "--culprit", "3", "--seconds", "1000", "--timeout", "0.2", "--threads", "1"},
        3,
        named("rank 3", "in step 'trouble'")},
       {{"--dp", "1", "--tp", "1", "--mode", "compute", "--seconds", "1000", "--timeout", "0.2", "--threads", "1"},
        3,
        named("rank 0", "in step 'trouble'")}});
}

TEST_CASE("64 ranks that wait for each other do not pass for ranks that work") {
  const std::vector<std::string> many = {"--dp", "64", "--tp", "1", "--timeout", "6", "--mode"};
  run_cases(
      {{joined(many, {"deadlock"}), 3, {"nothing moved in step 'trouble' for 6 s: every rank waits"}},
       {joined(many, {"wrong_call"}), 3, {"in step 'trouble'", "do not make the same calls", "recv", "all_reduce"}}});
}

TEST_CASE(
    "ranks as fibers: what a rank throws is named in any order of turns, and nobody who has left is asked again") {
  std::vector<FaultCase> cases;
  for (int seed = 1; seed <= 40; ++seed)
    cases.push_back(
        {{"--world", "fibers", "--verbose", "0", "--turns", text(seed), "--mode", "throw", "--culprit", text(seed % 8)},
         3,
         {"rank " + text(seed % 8) + " failed in step 'trouble'", "the culprit threw"}});
  run_cases(cases);
}

TEST_CASE("ranks as fibers: what a rank throws is named, a rank that hangs or computes forever as well") {
  const std::vector<std::string> world = {"--world", "fibers"};
  run_cases({
    {joined(world, {"--fault", "throw:0:0"}), 3, {"rank 0 failed in step 'rendezvous'", "asked for it"}},
        {joined(world, {"--fault", "throw:7:2"}), 3, {"rank 7 failed in step 'trouble'", "asked for it"}},
        {joined(world, {"--mode", "throw", "--culprit", "5"}),
         3,
         {"rank 5 failed in step 'trouble'", "the culprit threw"}},
        {joined(world, {"--mode", "throw_int", "--culprit", "5"}), 3, {"rank 5 failed in step 'trouble'"}},
        {joined(world, {"--mode", "usage", "--culprit", "5"}), 2, {"--culprit refuses its input"}},
        {joined(world, {"--mode", "deadlock"}), 3, {"nothing can move in step 'trouble'", "waits in recv for rank"}},
#if !defined(__SANITIZE_ADDRESS__)  // which has a sentence of its own
        {joined(world, {"--mode", "recursion", "--culprit", "5"}),
         3,
         {"fault_program: rank 5 has used up its stack of 512 KiB in step 'trouble'", "function that calls itself"}},
#endif
        {joined(world, {"--fault", "hang:7:2"}),
         3,
         {"in step 'trouble'", "rank 7 waits for a message that nobody sends"}},
        {joined(world, {"--fault", "hang:0:0"}), 3, {"in step 'rendezvous'", "rank 1 has left the step"}},
        {joined(world, {"--fault", "spin:7:2", "--timeout", "0.1"}),
         3,
         {"rank 7 did nothing but compute", "for 1 s of"}},
        {joined(world, {"--mode", "wrong_call", "--culprit", "5"}),
         3,
         {"in step 'trouble'", "do not make the same calls"}},
    {
      joined(world, {"--mode", "mismatch", "--culprit", "5"}), 3, { "in step 'trouble'", "12 bytes", "8 bytes" }
    }
  });
}
