// The hunt of lesson 10, through the program.
#include "lessons/lesson_10_bug_hunt/hunt.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "lessons/lesson_10_bug_hunt/notebook_kernel.hpp"
#include "src/text/text.hpp"
#include "tests/ranks/expect_refused.hpp"

using muonwalk::text_width;
using muonwalk::sim::loss_text;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

// Ranks that are fibers: there are many hunts to go on.
Outcome lesson(std::vector<std::string> options) {
  options.insert(options.begin(), {LESSON, "--world", "fibers"});
  return run_program(options, 120);
}

struct Case {
  std::string number, culprit;
  std::set<std::string> suspicious;  // kinds of evidence that are not as they should be
};
const std::vector<Case> kCases = {{"1", "flat_matrix", {}},
                                  {"2", "stale_parameter_list", {"bits", "bytes", "newton-schulz-calls"}},
                                  {"3", "spawn_in_notebook", {}},
                                  {"4", "inverted_split_dim", {"bits", "bytes", "newton-schulz-calls"}},
                                  {"5", "second_moment_zeros", {"bits", "resume"}},
                                  {"6", "hard_wired_device", {}},
                                  {"7", "reset_dist_metas", {"bits", "bytes", "newton-schulz-calls"}},
                                  {"8", "hard_wired_nccl", {}}};
const std::vector<std::string> kKinds = {"bits", "bytes", "resume", "newton-schulz-calls"};

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("the hunt: symptoms alone name no culprit, and where it trains to the end the loss falls") {
  for (const Case& c : kCases) {
    const Outcome outcome = lesson({"--mystery", c.number});
    CAPTURE(outcome.out);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    const std::string seen = outcome.out.substr(0, outcome.out.find("\nnext  "));
    for (const Case& other : kCases) CHECK_FALSE(contains(seen, other.culprit));
    CHECK(contains(seen, "it falls in every step") == !c.suspicious.empty());
    CHECK(contains(seen, "last words of rank 0: ") == c.suspicious.empty());
    CHECK_FALSE(contains(outcome.out, "reveal  "));
    CHECK(contains(outcome.out, "lesson_10_bug_hunt: mystery " + c.number + " is open\n"));
    for (const std::string& line : lines_of(outcome.out)) CHECK(text_width(line) <= 100);
  }
}

TEST_CASE("the hunt: of the eight suspects one did it; why the others did not is said without naming it") {
  for (const Case& c : kCases)
    for (const Case& other : kCases) {
      // All pairs of bugs that train to the end; each of the others with itself and with the first of them.
      const bool trains = !c.suspicious.empty() && !other.suspicious.empty();
      if (!trains && c.number != other.number && c.number != "2" && other.number != "2") continue;
      const Outcome outcome = lesson({"--mystery", c.number, "--suspect", other.culprit});
      CAPTURE(c.culprit);
      CAPTURE(outcome.out);
      const bool right = c.culprit == other.culprit;
      CHECK(outcome.exit_code == (right ? 0 : 1));
      CHECK(contains(outcome.out, "suspect   yes, it was " + other.culprit) == right);
      CHECK(contains(outcome.out, "suspect   no: with " + other.culprit + " the ") == !right);
      CHECK(contains(outcome.out, "reveal    " + c.culprit + ": ") == right);
      CHECK(contains(outcome.out, "mystery " + c.number + (right ? " is solved\n" : " is not solved")));
      for (const std::string& line : lines_of(outcome.out)) CHECK(text_width(line) <= 100);
    }
}

TEST_CASE("the hunt: each kind of evidence shows what it should, of each bug that trains to the end") {
  for (const Case& c : kCases)
    for (const std::string& kind : kKinds) {
      if (c.suspicious.empty() && kind != "bytes") continue;  // there is none of any kind
      const Outcome outcome = lesson({"--mystery", c.number, "--evidence", kind});
      CAPTURE(outcome.out);
      CHECK(outcome.exit_code == 0);
      CHECK(contains(outcome.out, "evidence  " + kind + ": "));
      CHECK(contains(outcome.out, "✘") == (c.suspicious.count(kind) > 0));
      CHECK(contains(outcome.out, "there is none: the program ended") == c.suspicious.empty());
    }
  // What gave each of them away.
  const auto row = [](const char* number, const char* kind, const std::string& name) {
    for (const std::string& line : lines_of(lesson({"--mystery", number, "--evidence", kind}).out))
      if (contains(line, "  " + name + " ")) return line;
    return std::string("no such line");
  };
  CHECK(contains(row("2", "bits", "w_out"), "192 of 192 differ: as at the start"));
  CHECK(contains(row("2", "newton-schulz-calls", "w_up as 4 × 16"), "6 calls    12 calls  ✘"));
  CHECK(contains(row("4", "bits", "w_router"), "0 of 192 differ"));
  CHECK(contains(row("4", "bytes", "all_gather over tp"), "18 calls, 2,688 B   0 calls, 0 B        ✘"));
  CHECK(contains(row("4", "newton-schulz-calls", "w_query as 4 × 8"), "0 calls    6 calls  ✘"));
  CHECK(contains(row("5", "resume", "bias"), "32 of 32 differ  ✘"));
  CHECK(contains(row("5", "resume", "w_query"), "0 of 128 differ  0 of 128 differ"));
  CHECK(contains(row("7", "bits", "w_up"), "0 of 128 differ"));
  CHECK(contains(row("7", "bytes", "reduce_scatter over dp"), "12 calls"));
}

TEST_CASE("the hunt: a reveal, little with --verbose 0, and the same on processes over Gloo") {
  const Outcome revealed = lesson({"--mystery", "7", "--reveal"});
  CHECK(revealed.exit_code == 0);
  CHECK(contains(revealed.out, "reveal    reset_dist_metas: "));
  CHECK(contains(revealed.out, "mystery 7 is revealed\n"));
  CHECK(lesson({"--mystery", "7", "--reveal", "--suspect", "flat_matrix"}).exit_code == 1);
  const Outcome brief = lesson({"--mystery", "4", "--verbose", "0"});
  CHECK(brief.exit_code == 0);
  CHECK(brief.out == "lesson_10_bug_hunt: mystery 4 is open\n");
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--mystery", "3"},
        {"--mystery", "4", "--evidence", "bytes", "--suspect", "flat_matrix"}}) {
    std::vector<std::string> processes = options;
    processes.insert(processes.begin(), LESSON);
    const Outcome there = run_program(processes, 120), here = lesson(options);
    CHECK(there.out == here.out);
    CHECK(there.err.empty());
    CHECK(there.exit_code == here.exit_code);
  }
}

TEST_CASE("the hunt: what can't work is one sentence and exit 2") {
  expect_refused(
      {LESSON, "--world", "fibers"},
      {{{"--mystery", "9"}, "--mystery 9 is not known; the mysteries have the numbers 1 to 8"},
       {{"--mystery", "0"}, "--mystery 0 is not known"},
       {{"--mystery", "-1"}, "--mystery -1 is not known"},
       {{"--mystery", "four"}, "--mystery four is not known"},
       {{"--mystery", "1 "}, "is not known"},
       {{"--mystery", ""}, "--mystery"},
       {{"--mystery", "4", "--suspect", "gremlins"},
        "--suspect gremlins is not a bug of this lesson; --list-bugs names the 8"},
       {{"--mystery", "4", "--suspect", "a\nb"}, "--suspect \"a\\nb\" is not a bug"},
       {{"--mystery", "4", "--evidence", "smell"}, "it is bits, bytes, resume or newton-schulz-calls"},
       {{"--mystery", "4", "--evidence", "bits", "--evidence", "bytes"}, "--evidence shows one kind at a time"},
       {{"--suspect", "flat_matrix"},
        "--suspect flat_matrix goes with --mystery, which was not given; add --mystery 1"},
       {{"--evidence", "bits"}, "--evidence bits goes with --mystery"},
       {{"--reveal"}, "--reveal goes with --mystery"},
       {{"--mystery", "4", "--bug", "flat_matrix"}, "leave out one of them"},
       {{"--mystery", "4", "--dp", "4"}, "--mystery 4 happened on dp 2 × tp 2; leave out --dp, --tp and --pp"},
       {{"--mystery", "4", "--record", "/tmp/never_written.json"}, "--mystery 4 is not recorded"},
       {{"--mystery", "4", "--trace", "/tmp/never_written.json"}, "--mystery 4 is not recorded"}});
}

TEST_CASE("the text of a loss says that it falls only where it falls in every step") {
  CHECK(loss_text({}).empty());
  CHECK(loss_text({2}) == "loss 2.00");
  CHECK(loss_text({2, 1.5, 1.25}) == "loss 2.00 → 1.50 → 1.25: it falls in every step");
  CHECK(loss_text({2, 1.5, 1.5}) == "loss 2.00 → 1.50 → 1.50");
  CHECK(loss_text({2, 2.5, 1}) == "loss 2.00 → 2.50 → 1.00");
}

TEST_CASE("notebook kernel: a worker that is a thread answers, one that is forked never does, in any order") {
  for (int again = 0; again < 2; ++again) {
    CHECK(muonwalk::sim::thread_worker_answers());
    CHECK_FALSE(muonwalk::sim::forked_worker_answers());
  }
}
