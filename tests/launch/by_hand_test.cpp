// Processes that are started by hand, each with its own --rank: the same screen, what is refused, and what happens when
// one of them comes to grief.

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/launch/rendezvous.hpp"
#include "sim/ranks/agent_frames.hpp"
#include "sim/ranks/hello.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/launch/launched.hpp"

using namespace muonwalk::testing;
namespace sim = muonwalk::sim;

namespace {

// Two ranks with a time-out that no busy machine reaches, and with one that a test can wait for.
const std::vector<std::string> kTwo = {"--dp", "2", "--tp", "1", "--timeout", "20"};
const std::vector<std::string> kImpatientTwo = {"--dp", "2", "--tp", "1", "--timeout", "4"};

std::vector<std::string> faulty(std::vector<std::string> words, const std::vector<std::string>& more = kTwo) {
  words.insert(words.begin(), fault_program());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string host_name() {
  char name[256] = {};
  REQUIRE(gethostname(name, sizeof name - 1) == 0);
  return name;
}

// A run of two that talks for a minute unless something ends it, in the second of its steps when it was made.
struct LoopingPair {
  ByHand run{2};
  pid_t rank_of_agent = 0;
  explicit LoopingPair(const std::vector<std::string>& two = kTwo) {
    run.start_all(faulty({"--mode", "loop", "--seconds", "60"}, two));
    REQUIRE(run[0].wait_for_output("step 1", kFaultLimitSeconds));
    const std::vector<pid_t> ranks = children_of(run[1].pid());
    REQUIRE(ranks.size() == 1);
    rank_of_agent = ranks[0];
  }
  // Both end with 3; the parent says one sentence with these words, and the agent one with its own words, if any.
  void expect_end(const std::vector<std::string>& parent, const std::vector<std::string>& agent) {
    const Outcome first = run[0].wait(kFaultLimitSeconds), second = run[1].wait(kFaultLimitSeconds);
    CHECK(first.exit_code == 3);
    CHECK(second.exit_code == 3);
    expect_one_sentence("fault_program", first.err, parent);
    CAPTURE(second.err);
    if (agent.empty())
      CHECK(second.err.empty());
    else
      expect_one_sentence("fault_program", second.err, agent);
    CHECK(second.out.empty());
    run.expect_nothing_left();
  }
};

// A process that knows the secret of a run but is none of ours: it says of itself what a test wants, as rank 1.
struct MadeUpAgent {
  int world_size;
  ByHand run{world_size};
  std::unique_ptr<sim::FramedConnection> parent;
  explicit MadeUpAgent(const std::vector<std::string>& command, int of = 2) : world_size(of) { run.start(0, command); }

  sim::Launch launch() const {
    sim::Launch launch;
    launch.rank = 1;
    launch.world_size = world_size;
    launch.address = launch.rendezvous_host = "127.0.0.1";
    launch.rendezvous_port = run.port();
    launch.secret = sim::secret_from_file(run.secret_file());
    return launch;
  }
  // As rank 1 of the same program would speak of itself.
  sim::Hello hello(std::vector<std::string> words) const {
    words.insert(words.end(), {"--world-size", std::to_string(world_size)});
    sim::Hello hello = sim::own_hello(launch(), "fault_program", words);
    return hello;
  }
  void say(const std::string& text) {
    sim::Joined joined = sim::join_rendezvous(launch(), std::chrono::seconds(10));
    parent = std::make_unique<sim::FramedConnection>(std::move(joined.socket));
    parent->send(static_cast<std::uint8_t>(sim::AgentFrame::hello), text);
  }
  // What the parent answers: the code that it says to end with, or −1.
  int told_to_end_with() {
    const std::optional<sim::Frame> frame = parent->receive_within(std::chrono::seconds(10));
    int code = -1;
    if (!frame || frame->type != static_cast<std::uint8_t>(sim::AgentFrame::world_over) ||
        !sim::read_value(*frame, code))
      return -1;
    return code;
  }
  void expect_refused(const std::vector<std::string>& words) {
    CHECK(told_to_end_with() == 2);
    const Outcome outcome = run[0].wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 2);
    expect_one_sentence("fault_program", outcome.err, words);
    run.expect_nothing_left();
  }
};

}  // namespace

TEST_CASE("by hand: the screen of a lesson is the expected one apart from the first line, and others print nothing") {
  ByHand run(2);
  run.start_all({program_beside("lesson_05_tp_gather")});
  const Outcome first = run[0].wait(kFaultLimitSeconds), second = run[1].wait(kFaultLimitSeconds);
  CHECK(first.exit_code == 0);
  CHECK(without_first_line(first.out) == without_first_line(expected_screen("lesson_05_tp_gather")));
  CHECK(lines_of(first.out)[0].find("2 processes over Gloo, started by hand · fp32") != std::string::npos);
  CHECK(first.err == "lesson_05_tp_gather: started by hand: rank 0 of 2 (--rank)\n");
  CHECK(second.exit_code == 0);
  CHECK(second.out.empty());
  CHECK(second.err.empty());
  run.expect_nothing_left();
}

TEST_CASE("by hand: a planted bug is caught with exit code 1, --help is printed once, and a refusal by each") {
  ByHand bug(2), help(2), odd(2), many(2);
  bug.start_all({program_beside("lesson_05_tp_gather"), "--bug", "stale_slice"});
  help.start_all({program_beside("lesson_05_tp_gather"), "--help"});
  odd.start_all(faulty({"--foo"}));
  many.start_all(faulty({}, {"--dp", "3"}));
  CHECK(bug[0].wait(kFaultLimitSeconds).exit_code == 1);
  CHECK(bug[1].wait(kFaultLimitSeconds).exit_code == 0);
  CHECK(help[0].wait(kFaultLimitSeconds).out.find("--rendezvous") != std::string::npos);
  CHECK(help[1].wait(kFaultLimitSeconds).out.empty());
  for (ByHand* refused : {&odd, &many}) {
    const Outcome first = (*refused)[0].wait(kFaultLimitSeconds), second = (*refused)[1].wait(kFaultLimitSeconds);
    CHECK(first.exit_code == 2);
    CHECK(second.exit_code == 2);
    CHECK(sentences_of("fault_program", first.err).size() == 1);
    CHECK(second.err == first.err);
  }
  CHECK(many[0].wait(0).err.find("but dp 3 × tp 2 is a layout of 6; start 6, or try --dp 1 --tp 2 --pp 1, or --dp 2") !=
        std::string::npos);
}

TEST_CASE("by hand: what a launched run can't have is refused") {
  for (const auto& [words, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--world", "fibers"}, "--world fibers keeps all ranks in one process"},
           {{"--network", "private"}, "--network private is for ranks that this program starts itself"}}) {
    ByHand run(2);
    const Outcome outcome = run.start(0, faulty(words)).wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 2);
    expect_one_sentence("fault_program", outcome.err, {said, "rank 0 of 2 (--rank)"});
  }
}

TEST_CASE("by hand: other options are refused, on both sides, before any rank starts") {
  ByHand run(2);
  run.start(0, faulty({}));
  run.start(1, faulty({"--seed", "7"}));
  const Outcome first = run[0].wait(kFaultLimitSeconds), second = run[1].wait(kFaultLimitSeconds);
  CHECK(first.exit_code == 2);
  CHECK(second.exit_code == 2);
  expect_one_sentence("fault_program", first.err,
                      {"rank 1 on " + host_name(), "--seed 7", "rank 0 on ", "same options"});
  CHECK(sentences_of("fault_program", second.err) == sentences_of("fault_program", first.err));
}

TEST_CASE(
    "by hand: a rank that refuses what it was asked says why, and rank 0 says it as well, and does not wait for it") {
  // How rank 1 was started beside a rank 0 that would wait for ten minutes, and what is said.
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--dp", "2", "--tp", "1", "--tpp", "2"}, "--tpp"},
           {{"--dp", "2", "--tp", "4"}, "is a layout of"},
           {{"--dp", "2", "--tp", "1", "--seed", "x"}, "--seed x is not a seed"},
           {{"--dp", "2", "--tp", "1", "--products", "chain"}, "MUONWALK_CHAIN=abacus"}}) {
    CAPTURE(why);
    ByHand run(2);
    run.start(0, faulty({}, {"--dp", "2", "--tp", "1", "--timeout", "600"}));
    setenv("MUONWALK_CHAIN", "abacus", 1);  // others have no product in chains
    run.start(1, faulty(words, {"--timeout", "600"}));
    unsetenv("MUONWALK_CHAIN");
    const Outcome first = run[0].wait(kFaultLimitSeconds), second = run[1].wait(kFaultLimitSeconds);
    CHECK(first.exit_code == 2);
    CHECK(second.exit_code == 2);
    expect_one_sentence("fault_program", first.err, {"rank 1 on " + host_name(), why});
    expect_one_sentence("fault_program", second.err, {why});
    run.expect_nothing_left();
  }
}

TEST_CASE(
    "by hand: a rank of another world size, of another lesson, or without its checkpoint is refused, on both sides") {
  const std::vector<std::string> two = {"--dp", "2", "--tp", "1", "--timeout", "600"};
  const std::vector<std::string> lesson = {program_beside("lesson_20_pretrain"), "--small", "--pp", "1"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ByHand size(2), other(2), resumed(2);
  size.start(0, faulty({}, two));
  size.start(1, faulty({}, two), 3);
  other.start(0, faulty({}, two));
  other.start(1, with({program_beside("lesson_05_tp_gather")}, two));
  resumed.start(0, with(lesson, two));
  resumed.start(1, with(lesson, with(two, {"--optimizer", "muon", "--resume", "none.safetensors"})));
  const auto expect = [](ByHand& run, const char* program, const char* second, const std::vector<std::string>& words) {
    const Outcome first = run[0].wait(kFaultLimitSeconds), last = run[1].wait(kFaultLimitSeconds);
    CHECK(first.exit_code == 2);
    CHECK(last.exit_code == 2);
    expect_one_sentence(program, first.err, words);
    expect_one_sentence(second, last.err, {words.back()});
    run.expect_nothing_left();
  };
  const std::string who = "rank 1 on " + host_name();
  expect(size, "fault_program", "fault_program", {who, "--world-size 3 means 3 processes", "is a layout of 2"});
  expect(other, "fault_program", "lesson_05_tp_gather", {who, "runs fault_program", "runs lesson_05_tp_gather"});
  expect(resumed, "lesson_20_pretrain", "lesson_20_pretrain", {who, "--resume", "none.safetensors"});
}

TEST_CASE("by hand: a rank 0 that refuses what it was asked says why, and so do those who look for it, at once") {
  for (const std::string why : {"--seed x is not a seed", "MUONWALK_CHAIN=abacus"}) {
    CAPTURE(why);
    const bool seed = why[0] == '-';
    const std::vector<std::string> two = {"--dp", "2", "--tp", "1", "--timeout", "600"};
    ByHand run(2);
    run.start(1, faulty({"--products", "chain"}, two));
    setenv("MUONWALK_CHAIN", "abacus", 1);
    run.start(0, faulty({"--products", seed ? "eigen" : "chain", "--seed", seed ? "x" : "1"}, two));
    unsetenv("MUONWALK_CHAIN");
    const Outcome other = run[0].wait(kFaultLimitSeconds), first = run[1].wait(kFaultLimitSeconds);
    CHECK(first.exit_code == 2);
    CHECK(other.exit_code == 2);
    expect_one_sentence("fault_program", first.err, {why});
    expect_one_sentence("fault_program", other.err, {"rank 0 on " + host_name() + " ends the run: ", why});
    run.expect_nothing_left();
  }
}

TEST_CASE("by hand: a rank that refuses is heard by a rank 0 that is started seconds later") {
  const std::vector<std::string> two = {"--dp", "2", "--tp", "1", "--timeout", "600"};
  ByHand run(2);
  run.start(1, faulty({"--seed", "x"}, two));
  REQUIRE(run[0].wait_for_error("--seed x is not a seed", kFaultLimitSeconds));
  sleep(2);
  run.start(0, faulty({}, two));
  const Outcome refused = run[0].wait(kFaultLimitSeconds), first = run[1].wait(kFaultLimitSeconds);
  CHECK(refused.exit_code == 2);
  CHECK(first.exit_code == 2);
  expect_one_sentence("fault_program", refused.err, {"--seed x is not a seed"});
  expect_one_sentence("fault_program", first.err, {"rank 1 on " + host_name(), "--seed x is not a seed"});
  run.expect_nothing_left();
}

TEST_CASE("a process with other bits or another protocol is refused; another build is said, and let in") {
  {
    MadeUpAgent other(faulty({}));
    sim::Hello hello = other.hello(faulty({}));
    hello.with_eigen.back() = hello.with_eigen.back() == '0' ? '1' : '0';
    hello.host = "babbage";
    other.say(hello.text());
    other.expect_refused({"rank 1 on babbage", "rank 0 on " + host_name(), "computes other bits", "--products chain"});
  }
  {
    MadeUpAgent other(faulty({}));
    other.say("muonwalk agent 0");
    other.expect_refused({"another version of its protocol"});
  }
  {
    MadeUpAgent other(faulty({}));
    sim::Hello hello = other.hello(faulty({}));
    REQUIRE(hello.build != "another");
    hello.build = "another";
    other.say(hello.text());
    const std::optional<sim::Frame> frame = other.parent->receive_within(std::chrono::seconds(10));
    REQUIRE(frame);
    CHECK(frame->type == static_cast<std::uint8_t>(sim::AgentFrame::begin));
    other.parent.reset();  // and leaves
    const Outcome outcome = other.run[0].wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    const std::vector<std::string> said = sentences_of("fault_program", outcome.err);
    REQUIRE(said.size() == 2);
    CHECK(said[0].find("another build of this program (another)") != std::string::npos);
    CHECK(said[1].find("rank 1 on " + host_name() + " was lost in step 'rendezvous'") != std::string::npos);
    other.run.expect_nothing_left();
  }
}

TEST_CASE("a rank that was started twice is refused") {
  ByHand run(3);
  const std::vector<std::string> three = {"--dp", "3", "--tp", "1", "--timeout", "20"};
  run.start(0, faulty({}, three));
  run.start(1, faulty({}, three));
  run.start(1, faulty({}, three));
  for (int process : {0, 1, 2}) CHECK(run[static_cast<std::size_t>(process)].wait(kFaultLimitSeconds).exit_code == 2);
  expect_one_sentence("fault_program", run[0].wait(0).err, {"rank 1 was started twice", "each rank once"});
  run.expect_nothing_left();
}

TEST_CASE("a rank that never comes, a rank 0 that never comes, and one that leaves before all are there") {
  ByHand one(2), other(2);
  one.start(0, faulty({}, kImpatientTwo));
  other.start(1, faulty({}, kImpatientTwo));
  const std::vector<std::string> three = faulty({}, {"--dp", "3", "--tp", "1", "--timeout", "20"});
  MadeUpAgent leaver(three, 3);
  sim::Hello hello = leaver.hello(three);
  hello.build = "another";
  leaver.say(hello.text());
  leaver.parent.reset();
  const Outcome left = leaver.run[0].wait(kFaultLimitSeconds);
  CHECK(left.exit_code == 3);
  const std::vector<std::string> said = sentences_of("fault_program", left.err);
  REQUIRE(said.size() == 2);  // the first one is about the build
  CHECK(said[1].find("rank 1 on " + host_name() + " came and left again before all were there") != std::string::npos);
  const Outcome alone = one[0].wait(kFaultLimitSeconds), lost = other[0].wait(kFaultLimitSeconds);
  CHECK(alone.exit_code == 3);
  expect_one_sentence("fault_program", alone.err,
                      {"rank 1 never came", "4 s", "'rendezvous'", std::to_string(one.port())});
  CHECK(lost.exit_code == 3);
  expect_one_sentence("fault_program", lost.err, {"rank 0 was not found at 127.0.0.1:" + std::to_string(other.port())});
}

TEST_CASE("a second rank 0 at one port is refused, and the run of the first one goes on") {
  ByHand busy(2);
  busy.start(0, faulty({}));
  REQUIRE(somebody_listens_at(busy.port()));
  const Outcome second = busy.start(0, faulty({})).wait(kFaultLimitSeconds);
  busy.start(1, faulty({}));
  CHECK(second.exit_code == 2);
  expect_one_sentence("fault_program", second.err, {"rank 0 can't listen", std::to_string(busy.port())});
  CHECK(busy[0].wait(kFaultLimitSeconds).exit_code == 0);
}

TEST_CASE(
    "a rank, its agent or the parent is killed or stopped from outside: all end, and say who, where and in which "
    "step") {
  const std::string who = "rank 1 on " + host_name();
  // Side by side: most of the time they wait.
  LoopingPair rank_killed, agent_killed, agent_ended, parent_killed;
  LoopingPair rank_stopped(kImpatientTwo), agent_stopped(kImpatientTwo);
  const Belongings parent = belongings_of_session(rank_killed.run[0].pid());
  const Belongings agent = belongings_of_session(rank_killed.run[1].pid());
  for (const Belongings& had : {parent, agent}) {
    CHECK(had.connected >= 2);  // the agent's connection, and the rank's with the other one
    CHECK(had.not_loopback.empty());
    CHECK(had.files.empty());
  }
  kill(rank_killed.rank_of_agent, SIGKILL);
  kill(rank_stopped.rank_of_agent, SIGSTOP);
  kill(agent_killed.run[1].pid(), SIGKILL);
  kill(agent_stopped.run[1].pid(), SIGSTOP);
  kill(agent_ended.run[1].pid(), SIGTERM);
  kill(parent_killed.run[0].pid(), SIGKILL);

  rank_killed.expect_end({who + " was killed by signal 9 (SIGKILL) in step '"}, {});
  rank_stopped.expect_end({who + " was stopped by signal 19 (SIGSTOP) in step '", "within 4 s"}, {});

  const Outcome orphan = agent_killed.run[0].wait(kFaultLimitSeconds);
  CHECK(orphan.exit_code == 3);
  expect_one_sentence("fault_program", orphan.err,
                      {who + " was lost in step '", "the process " + std::to_string(agent_killed.run[1].pid())});
  agent_killed.run.expect_nothing_left();

  const Outcome unheard = agent_stopped.run[0].wait(kFaultLimitSeconds);
  CHECK(unheard.exit_code == 3);
  expect_one_sentence("fault_program", unheard.err, {who + " was not heard of in step '"});
  kill(agent_stopped.run[1].pid(), SIGCONT);  // and once it goes on, it ends
  CHECK(agent_stopped.run[1].wait(kFaultLimitSeconds).exit_code == 3);
  agent_stopped.run.expect_nothing_left();

  agent_ended.expect_end({who + " was lost in step '"}, {"interrupted"});

  const Outcome left = parent_killed.run[1].wait(kFaultLimitSeconds);
  CHECK(left.exit_code == 3);
  expect_one_sentence("fault_program", left.err, {who + " has lost the process of rank 0", "the rank was ended"});
  parent_killed.run.expect_nothing_left();
}

TEST_CASE("a parent that computes for longer than --timeout, while ranks tell more than buffers hold, loses nobody") {
  ByHand run(2);
  run.start_all(faulty({"--mode", "slow_reference", "--seconds", "5"}, kImpatientTwo));
  const Outcome first = run[0].wait(kFaultLimitSeconds), second = run[1].wait(kFaultLimitSeconds);
  CAPTURE(first.err);
  CHECK(first.exit_code == 0);
  CHECK(second.exit_code == 0);
  const std::vector<std::string> lines = lines_of(first.out);
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find(std::string(100, 'x')) != std::string::npos;
        }) == 80000);
}

TEST_CASE("by hand: a rank's process that is ended while its rank saves leaves nothing of the file") {
  const TemporaryFolder folder;
  setenv("MUONWALK_UNNAMED_FILES", "off", 1);
  ByHand run(2);
  run.start_all(faulty({"--mode", "saving", "--culprit", "1", "--file", folder.file("checkpoint")}));
  unsetenv("MUONWALK_UNNAMED_FILES");
  for (int tenths = 0; folder.names().empty() && tenths < 10 * kFaultLimitSeconds; ++tenths) usleep(100000);
  REQUIRE(folder.names().size() == 1);
  kill(run[1].pid(), SIGTERM);
  CHECK(run[0].wait(kFaultLimitSeconds).exit_code == 3);
  CHECK(run[1].wait(kFaultLimitSeconds).exit_code == 3);
  CHECK(folder.names().empty());
}
