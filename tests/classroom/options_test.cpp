// The command line of a lesson: what every option does, and what is refused in which words.

#include "sim/ranks/options.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/ranks/printed.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::printed;

namespace {

LessonInfo info_with(std::vector<LessonOption> options = {}) {
  LessonInfo info;
  info.name = "lesson_77_test";
  info.title = "A test";
  info.question = "what do options do?";
  info.bugs = {{"first_bug", "goes wrong"}, {"second_bug", "goes wrong otherwise"}};
  info.options = std::move(options);
  return info;
}

bool parse(std::vector<std::string> words, Options& options, const LessonInfo& info = info_with()) {
  words.insert(words.begin(), "program");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return parse_options(info, static_cast<int>(words.size()), pointers.data(), options);
}

Options parsed(const std::vector<std::string>& words) {
  Options options;
  options.grid = Grid().tp(2);
  CHECK(parse(words, options));
  return options;
}

// The sentence with which a lesson refuses the words.
std::string said(const LessonInfo& info, const std::vector<std::string>& words, Options options = {}) {
  try {
    parse(words, options, info);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

std::string refusal(const std::vector<std::string>& words) {
  Options options;
  options.grid = Grid().tp(2);
  return said(info_with(), words, options);
}

// Options of a lesson's own, one of every kind.
struct OwnOptions {
  bool flag = false;
  int number = 3;
  float real = 0.5f;
  std::string word = "before";
  std::vector<std::string> words;
  LessonInfo info = info_with({{"--flag", "", &flag},
                               {"--number", "", &number},
                               {"--real", "", &real},
                               {"--word", "", &word},
                               {"--words", "", &words}});
};

}  // namespace

TEST_CASE("parse_options: no option: the lesson's own layout and the defaults") {
  const Options options = parsed({});
  CHECK(options.grid == Grid().tp(2));
  CHECK_FALSE(options.grid_given);
  CHECK(options.threads == 0);
  CHECK(options.seed == 1);
  CHECK(options.precision == Precision::fp32);
  CHECK(options.verbose == 1);
  CHECK(options.timeout_seconds == 30);
  CHECK(options.world == WorldKind::processes);
  CHECK(options.transport == TransportKind::gloo);
  CHECK(options.bug.empty());
  CHECK(options.fault.kind == Fault::Kind::none);
}

TEST_CASE("parse_options: every option sets what it says") {
  CHECK(parsed({"--dp", "3"}).grid == Grid().dp(3).tp(2));
  CHECK(parsed({"--dp", "3"}).grid_given);
  CHECK(parsed({"--tp=4"}).grid == Grid().tp(4));
  CHECK(parsed({"--pp", "2"}).grid == Grid().tp(2).pp(2));
  CHECK(parsed({"--threads", "5"}).threads == 5);
  CHECK(parsed({"--threads", "5"}).threads_per_rank() == 5);
  CHECK(parsed({"--seed", "0"}).seed == 0);
  CHECK(parsed({"--seed", "18446744073709551615"}).seed == 18446744073709551615u);
  CHECK(parsed({"--precision", "bf16"}).precision == Precision::bf16);
  CHECK(parsed({"--precision", "fp32"}).precision == Precision::fp32);
  CHECK(parsed({}).products == Products::eigen);
  CHECK(parsed({"--products", "chain"}).products == Products::chain);
  CHECK(parsed({"--products", "tiles"}).products == Products::tiles);
  CHECK(parsed({"--products", "eigen"}).products == Products::eigen);
  for (int level : {0, 1, 2}) CHECK(parsed({"--verbose", std::to_string(level)}).verbose == level);
  CHECK(parsed({"--timeout", "0.5"}).timeout_seconds == 0.5);
  CHECK(parsed({"--world", "fibers"}).world == WorldKind::fibers);
  CHECK(parsed({"--world", "fibers"}).talks_over() == TransportKind::memory);
  CHECK(parsed({"--world", "fibers", "--turns", "7"}).turns == 7);
  CHECK_FALSE(parsed({"--world", "fibers"}).turns);
  CHECK(parsed({"--transport", "gloo"}).transport == TransportKind::gloo);
  CHECK(parsed({"--bug", "second_bug"}).bug == "second_bug");
  CHECK(parsed({"--dp", "8", "--tp", "8"}).grid.size() == kMostRanks);
  // Of an option that is given twice the last one holds.
  CHECK(parsed({"--dp", "2", "--dp", "3"}).grid.dp() == 3);
  CHECK(parsed({"--world", "processes", "--world", "fibers"}).world == WorldKind::fibers);
}

TEST_CASE("parse_options: every kind of fault, with and without a step") {
  const std::vector<std::pair<std::string, Fault::Kind>> kinds = {{"kill", Fault::Kind::kill},
                                                                  {"exit", Fault::Kind::exit},
                                                                  {"throw", Fault::Kind::raise},
                                                                  {"stop", Fault::Kind::stop},
                                                                  {"hang", Fault::Kind::hang},
                                                                  {"spin", Fault::Kind::spin},
                                                                  {"never-connect", Fault::Kind::never_connect}};
  for (const auto& [word, kind] : kinds) {
    const Fault fault = parsed({"--fault", word + ":1"}).fault;
    CHECK(fault.kind == kind);
    CHECK(fault.rank == 1);
    CHECK(fault.step == 1);
    CHECK(parsed({"--fault", word + ":0:7"}).fault.step == 7);
  }
}

TEST_CASE(
    "parse_options: what can't work is refused in one sentence that names the option, the value and what would work") {
  struct Refused {
    std::vector<std::string> words;
    std::vector<std::string> named;
  };
  const std::vector<Refused> all = {
      {{"--dp", "0"}, {"--dp 0", "at least 1"}},
      {{"--tp", "-4"}, {"--tp -4", "at least 1"}},
      {{"--pp", "0"}, {"--pp 0", "at least 1"}},
      {{"--dp", "65"}, {"--dp 65", "64"}},
      {{"--dp", "2147483647", "--tp", "2147483647"}, {"--dp 2147483647", "2048"}},
      {{"--dp", "99999999999999"}, {"--dp 99999999999999", "--help"}},
      {{"--dp", "64"}, {"--dp 64 --tp 2", "128 ranks", "64"}},
      {{"--dp", "16", "--tp", "16"}, {"256 ranks", "64", "for example"}},
      {{"--dp", "two"}, {"--dp two", "--help"}},
      {{"--tp", "2.5"}, {"--tp 2.5", "--help"}},
      {{"--tp", ""}, {"--tp", "at least 1"}},
      {{"--dp"}, {"--dp", "--help"}},
      {{"--threads", "0"}, {"--threads 0", "at least 1"}},
      {{"--threads", "1000000"}, {"--threads 1000000", "256"}},
      {{"--seed", "-1"}, {"--seed -1", "from 0"}},
      {{"--seed", "1.5"}, {"--seed 1.5", "from 0"}},
      {{"--seed", ""}, {"--seed ''", "from 0"}},
      {{"--seed", "18446744073709551616"}, {"18446744073709551616", "18446744073709551615"}},
      {{"--precision", "fp8"}, {"--precision fp8", "fp32", "bf16"}},
      {{"--products", "blas"}, {"--products blas", "eigen", "chain", "tiles"}},
      {{"--products", ""}, {"--products ''", "eigen", "chain"}},
      {{"--precision", ""}, {"--precision ''", "fp32", "bf16"}},
      {{"--verbose", "3"}, {"--verbose 3", "0, 1 or 2"}},
      {{"--verbose", "-1"}, {"--verbose -1", "0, 1 or 2"}},
      {{"--bug", "third_bug"}, {"--bug third_bug", "lesson_77_test", "first_bug", "second_bug"}},
      {{"--bug", ""}, {"--bug ''", "first_bug"}},
      {{"--timeout", "0"}, {"--timeout 0", "0.1"}},
      {{"--timeout", "-3"}, {"--timeout -3", "0.1"}},
      {{"--timeout", "nan"}, {"--timeout nan", "0.1"}},
      {{"--timeout", "inf"}, {"--timeout inf", "86400"}},
      {{"--timeout", "soon"}, {"--timeout soon", "--help"}},
      {{"--world", "galaxy"}, {"--world galaxy", "processes", "fibers"}},
      {{"--transport", "pigeon"}, {"--transport pigeon", "gloo"}},
      {{"--world", "fibers", "--transport", "gloo"}, {"--world fibers", "memory", "leave --transport gloo out"}},
      {{"--transport", "nccl", "--world", "fibers"}, {"--world fibers", "memory", "leave --transport nccl out"}},
      {{"--fault", ""}, {"--fault ''", "KIND:RANK"}},
      {{"--fault", "kill"}, {"--fault kill", "KIND:RANK"}},
      {{"--fault", "kill:"}, {"--fault kill:", "KIND:RANK"}},
      {{"--fault", "murder:1"}, {"--fault murder:1", "kill"}},
      {{"--fault", "kill:one"}, {"--fault kill:one", "KIND:RANK"}},
      {{"--fault", "kill:1:x"}, {"--fault kill:1:x", "STEP"}},
      {{"--fault", "kill:1:-1"}, {"--fault kill:1:-1", "STEP"}},
      {{"--fault", "kill:1:2:3"}, {"--fault kill:1:2:3", "STEP"}},
      {{"--fault", "kill:2"}, {"rank 2", "0 to 1"}},
      {{"--fault", "kill:-1"}, {"rank -1", "0 to 1"}},
      {{"--fault", "kill:1", "--world", "fibers"}, {"--fault", "--world fibers", "throw"}},
      {{"--record="}, {"--record= has an empty value"}},
      {{"--seed=", "--dp", "1"}, {"--seed= has an empty value"}},
      {{"--dpp", "3"}, {"--dpp is not an option of lesson_77_test; lesson_77_test --help lists them"}},
      {{"3"}, {"3 is not an option of lesson_77_test; lesson_77_test --help lists them"}}};
  for (const Refused& refused : all) {
    const std::string sentence = refusal(refused.words);
    CAPTURE(refused.words[0]);
    CAPTURE(sentence);
    for (const std::string& words : refused.named) {
      CAPTURE(words);
      CHECK(sentence.find(words) != std::string::npos);
    }
    CHECK(sentence.find('\n') == std::string::npos);
    CHECK(sentence.size() > 20);
    CHECK(sentence.back() != '.');
    CHECK(sentence.back() != ' ');
  }
  for (const std::string option :
       {"--verbose", "--timeout", "--threads", "--world", "--transport", "--record", "--trace", "--trace-events"})
    CHECK(refusal({option, ""}).find(option + " ''") == 0);
}

TEST_CASE("parse_options: what depends on the lesson or on who has started it is refused in the words that are kept") {
  LessonInfo fp32 = info_with(), no_bugs = info_with(), plans = info_with();
  fp32.fp32_only = true;
  no_bugs.bugs.clear();
  std::string plans_of;
  plans.plans_of = &plans_of;
  CHECK(said(fp32, {"--precision", "fp32"}) == "(accepted)");
  CHECK(said(fp32, {"--precision", "bf16"}) ==
        "--precision bf16 would change nothing in lesson_77_test, which moves float32 and multiplies nothing; try it "
        "with lesson 04, 06 or 09");
  for (const std::string products : {"eigen", "chain", "tiles"})
    CHECK(said(fp32, {"--products", products}) ==
          "--products " + products +
              " would change nothing in lesson_77_test, which multiplies no matrices; try it with lesson 06 or 09");
  CHECK(said(no_bugs, {"--bug", "x"}) == "--bug x is not a planted bug of lesson_77_test; it has none");
  CHECK(said(info_with(), {"--trace-events", "7"}) ==
        "--trace-events goes with --trace, which was not given; add --trace run.json");
  CHECK(said(info_with(), {"--trace-events", "0", "--trace", "t.json"}) ==
        "--trace-events 0 is too small; it takes a whole number of at least 1");
  CHECK(said(info_with(), {"--trace-events", "16777217", "--trace", "t.json"}) ==
        "--trace-events 16777217 is too much for one machine; it takes a whole number from 1 to 16777216");
  CHECK(said(info_with(), {"--trace-events", "16777216", "--trace", "t"}) == "(accepted)");

  // Limits, at their ends.
  CHECK(said(info_with(), {"--timeout", "86400"}) == "(accepted)");
  CHECK(said(info_with(), {"--timeout", "86401"}) ==
        "--timeout 86401 makes no sense; it takes seconds from 0.1 to 86400");
  CHECK(said(info_with(), {"--timeout", "0.1"}) == "(accepted)");
  CHECK(said(info_with(), {"--threads", "256"}) == "(accepted)");
  CHECK(said(info_with(), {"--threads", "257"}) ==
        "--threads 257 is too much for one machine; it takes a whole number from 1 to 256");
  CHECK(said(info_with(), {"--dp", "64"}) == "(accepted)");
  CHECK(said(info_with(), {"--dp", "65"}) ==
        "--dp 65 --tp 1 --pp 1 asks for 65 ranks, more than one machine should bear; at most 64 work, for example --dp "
        "8 --tp 1 --pp 1");
  CHECK(said(info_with(), {"--world", "fibers", "--dp", "256", "--tp", "8"}) == "(accepted)");
  CHECK(said(info_with(), {"--world", "fibers", "--dp", "683", "--tp", "3"}) ==
        "--dp 683 --tp 3 --pp 1 asks for 2049 ranks, more than one machine should bear; at most 2048 work, for example "
        "--dp 8 --tp 3 --pp 1");
  CHECK(said(info_with(), {"--fault", "throw:1:0", "--dp", "2", "--world", "fibers"}) == "(accepted)");
  CHECK(said(plans, {"--dp", "65"}) ==
        "--dp 65 --tp 1 --pp 1 asks for 65 ranks, more than one machine should bear; at most 64 work, for example --dp "
        "8 --tp 1 --pp 1");
  plans_of = "a model";
  CHECK(said(plans, {"--dp", "65536"}) == "(accepted)");
  CHECK(said(plans, {"--dp", "65537"}) ==
        "--dp 65537 is too much for one machine; it takes a whole number from 1 to 65536");
  CHECK(said(plans, {"--dp", "4096", "--tp", "16", "--pp", "2"}) ==
        "--dp 4096 --tp 16 --pp 2 asks for 131072 ranks, but plans are made for at most 65536");

  // One of several processes.
  Options two_by_two;
  two_by_two.grid = Grid().dp(2).tp(2);
  const std::vector<std::string> alone = {"--rank", "0", "--world-size", "1"};
  const auto launched = [&](std::vector<std::string> words, const Options& options) {
    words.insert(words.begin(), alone.begin(), alone.end());
    return said(info_with(), words, options);
  };
  CHECK(launched({"--dp", "1", "--tp", "1"}, two_by_two) == "(accepted)");
  CHECK(launched({}, two_by_two) ==
        "--world-size 1 means 1 process, but dp 2 × tp 2 is a layout of 4, which is what lesson_77_test takes unless "
        "told otherwise; start 4, or try --dp 1 --tp 1 --pp 1");
  CHECK(launched({"--dp", "3", "--tp", "1"}, two_by_two) ==
        "--world-size 1 means 1 process, but dp 3 × tp 1 is a layout of 3; start 3, or try --dp 1 --tp 1 --pp 1");
  CHECK(launched({"--network", "private"}, Options()) ==
        "--network private is for ranks that this program starts itself, but this one is rank 0 of 1 (--rank); leave "
        "it out");
  CHECK(launched({"--network", "shared"}, Options()) == "(accepted)");
  CHECK(launched({"--world", "fibers"}, Options()) ==
        "--world fibers keeps all ranks in one process, but this one is rank 0 of 1 (--rank); start the program by "
        "itself for that, or leave --world out");
  two_by_two.launch = Launch();
  two_by_two.launch->world_size = 6, two_by_two.launch->launcher = "torchrun";
  CHECK_THROWS_WITH_AS(require_valid(info_with(), two_by_two),
                       "torchrun has started 6 processes, but dp 2 × tp 2 is a layout of 4, which is what "
                       "lesson_77_test takes unless told otherwise; start 4, or try --dp 3 --tp 2 --pp 1, or --dp 6 "
                       "--tp 1 --pp 1",
                       UsageError);
}

TEST_CASE(
    "parse_options: --help is the text that is kept and fits on the screen; --list-bugs names the bugs; both run "
    "nothing") {
  bool flag = false;
  int number = 0;
  const LessonInfo info =
      info_with({{"--own-flag", "a flag of this lesson", &flag}, {"--own-number", "a number", &number}});
  for (const char* help : {"--help", "-h"}) {
    Options options;
    bool runs = true;
    const std::string text = printed([&] { runs = parse({help}, options, info); });
    CHECK_FALSE(runs);
    for (const std::string& line : testing::lines_of(text)) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
  // Lessons differ in what they multiply.
  const auto help_of = [](const LessonInfo& of) {
    return printed([&] {
      Options of_lesson;
      of_lesson.grid = Grid().dp(4).tp(2);
      parse({"--help"}, of_lesson, of);
    });
  };
  LessonInfo fp32 = info_with(), chain = info_with();
  fp32.fp32_only = true;
  chain.products = Products::chain;
  CHECK(help_of(fp32).find("fp32: this lesson rounds nothing\n") != std::string::npos);
  CHECK(help_of(fp32).find("nothing: this lesson multiplies no matrices\n") != std::string::npos);
  CHECK(help_of(chain).find("chain (default)") != std::string::npos);
  testing::expect_golden("help.txt", help_of(info));
  Options options;
  bool runs = true;
  const std::string text = printed([&] { runs = parse({"--list-bugs"}, options, info); });
  CHECK_FALSE(runs);
  CHECK(text == "first_bug  goes wrong\nsecond_bug  goes wrong otherwise\n");
}

TEST_CASE("parse_options: a lesson's own options of every kind; of lists that are given twice all holds") {
  OwnOptions own;
  Options options;
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{{"--number", ""},
                                                                                    {"--real", ""},
                                                                                    {"--word", ""},
                                                                                    {"--words", ""},
                                                                                    {"--words", "a", "", "b"},
                                                                                    {"--real=", "--flag"},
                                                                                    {"--word=", "x"}}) {
    CAPTURE(line[0]);
    const std::string sentence = said(own.info, line);
    CHECK(sentence.find(line[0]) == 0);
    CHECK(sentence.find("empty") != std::string::npos);
  }
  CHECK(parse({}, options, own.info));
  CHECK_FALSE(own.flag);
  CHECK(own.number == 3);
  CHECK(own.real == 0.5f);
  CHECK(own.word == "before");
  CHECK(parse({"--flag", "--number", "-7", "--real", "0.25", "--word", "after", "--words", "a", "b", "--dp", "2",
               "--words", "c"},
              options, own.info));
  CHECK(own.flag);
  CHECK(own.number == -7);
  CHECK(own.real == 0.25f);
  CHECK(own.word == "after");
  CHECK(own.words == std::vector<std::string>{"a", "b", "c"});
  CHECK(options.grid.dp() == 2);
  CHECK(said(own.info, {"--number", "x"}).find("--number") != std::string::npos);
}

TEST_CASE("require_valid: options from code are held to the same rules") {
  const LessonInfo info = info_with();
  Options good;
  CHECK_NOTHROW(require_valid(info, good));
  const auto refused = [&](auto change) {
    Options options;
    change(options);
    CHECK_THROWS_AS(require_valid(info, options), UsageError);
  };
  refused([](Options& o) { o.grid.dp(65); });
  refused([](Options& o) { o.verbose = 3; });
  refused([](Options& o) { o.timeout_seconds = std::nan(""); });
  refused([](Options& o) { o.threads = -1; });
  refused([](Options& o) { o.bug = "no_such_bug"; });
  refused([](Options& o) { o.transport = TransportKind::memory; });
  refused([](Options& o) { o.turns = 7; });
  refused([](Options& o) { o.fault = {Fault::Kind::kill, 1, 1}; });
}

TEST_CASE("Options::rank_info: the place of every rank, and at least one thread each") {
  Options options = parsed({"--dp", "4", "--tp", "2", "--pp", "2", "--seed", "9", "--bug", "first_bug", "--precision",
                            "bf16", "--products", "chain"});
  for (int rank = 0; rank < 16; ++rank) {
    const RankInfo info = options.rank_info(rank);
    CHECK(info.place.rank == rank);
    CHECK(info.grid.rank(info.place.dp, info.place.tp, info.place.pp) == rank);
    CHECK(info.threads >= 1);
    CHECK(info.seed == 9);
    CHECK(info.precision == Precision::bf16);
    CHECK(info.products == Products::chain);
    CHECK(info.bug("first_bug"));
    CHECK_FALSE(info.bug("second_bug"));
  }
}
