// Lesson 20 through the program itself: a run that was saved on one grid goes on on another, and comes to the same
// file, byte for byte, as the run that nobody interrupted; what can't work is refused in a sentence, and what breaks on
// the way has another exit code; and on a terminal it says how far it is.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/pseudo_terminal.hpp"
#include "tests/ranks/run_program.hpp"

using muonwalk::testing::children_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::Program;
using muonwalk::testing::PseudoTerminal;
using muonwalk::testing::run_program;
namespace fs = std::filesystem;

namespace {

const std::vector<std::vector<int>> kGrids = {{1, 1, 1}, {2, 2, 2}, {4, 2, 1}, {1, 4, 2}, {8, 1, 1}};  // dp, tp, pp

Outcome lesson(const std::vector<int>& grid, const std::vector<std::string>& more,
               const std::function<void()>& prepare = nullptr) {
  // With one thread per rank, which wait for nobody: the parent has work as well.
  std::vector<std::string> command = {LESSON, "--small", "--verbose", "0", "--threads", "1"};
  const char* names[] = {"--dp", "--tp", "--pp"};
  for (std::size_t i = 0; i < 3; ++i) command.insert(command.end(), {names[i], std::to_string(grid[i])});
  command.insert(command.end(), more.begin(), more.end());
  return run_program(command, 120, prepare);
}

std::string name_of(const std::vector<int>& grid) {
  return std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]);
}

void expect_refusal(const std::vector<std::string>& options, const std::string& words) {
  const Outcome outcome = lesson({2, 2, 2}, options);
  INFO(options.back(), ": ", outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a rank that is killed in any step, one that saves included, is told in one sentence") {
  for (int step = 2; step <= 8; ++step) {
    const std::vector<std::string> options = {"--steps",   "6", "--optimizer", "muon",
                                              "--timeout", "5", "--fault",     "kill:1:" + std::to_string(step)};
    const Outcome outcome = lesson({2, 2, 1}, options);
    INFO("step ", step, ": ", outcome.err);
    CHECK(outcome.exit_code == 3);
    const std::string begin = "lesson_20_pretrain: rank 1 was killed by signal 9 (SIGKILL) in step 'Muon + AdamW: ";
    CHECK(outcome.err.rfind(begin, 0) == 0);
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  }
}

TEST_CASE("from any grid to any grid, nothing is lost") {
  const TemporaryFolder folder;
  for (const auto& from : kGrids) {
    const Outcome saved = lesson(from, {"--steps", "4", "--save", folder.file(name_of(from)), "--save-every", "1"});
    INFO("saved on ", name_of(from), ": ", saved.out, saved.err);
    REQUIRE(saved.exit_code == 0);
  }
  // Rows are grids that a run was saved on, columns grids that it went on on.
  for (const std::string way : {"adamw", "muon"}) {
    const std::string uninterrupted = read_text(folder.file("1x1x1/" + way + "/step-000004.safetensors"));
    REQUIRE(!uninterrupted.empty());
    std::string table = way + ", from the row's grid to the column's\n        ";
    for (const auto& to : kGrids) table += "  " + name_of(to);
    for (std::size_t f = 0; f < kGrids.size(); ++f) {
      const std::string saved = folder.file(name_of(kGrids[f]) + "/" + way);
      CHECK(read_text(saved + "/step-000004.safetensors") == uninterrupted);
      table += "\n  " + name_of(kGrids[f]) + " ";
      for (std::size_t t = 0; t < kGrids.size(); ++t) {
        if (way == "adamw" && t != (f + 1) % kGrids.size()) {  // all pairs of one way are enough
          table += "      -";
          continue;
        }
        const std::string resumed = folder.file("resumed-" + name_of(kGrids[f]) + "-" + name_of(kGrids[t]));
        // Before the pause and behind it, in turn.
        const std::string step = (f + t) % 2 == 0 ? "1" : "3";
        std::vector<std::string> options = {"--steps", "4", "--optimizer", way, "--save", resumed};
        options.insert(options.end(), {"--resume", saved + "/step-00000" + step + ".safetensors"});
        // One of each row as processes, as all were when they were saved; as fibers, ranks begin sooner.
        if (t != (f + 1) % kGrids.size()) options.insert(options.end(), {"--world", "fibers"});
        const Outcome outcome = lesson(kGrids[t], options);
        INFO("from ", name_of(kGrids[f]), " to ", name_of(kGrids[t]), ": ", outcome.out, outcome.err);
        const bool equal =
            outcome.exit_code == 0 && read_text(resumed + "/" + way + "/step-000004.safetensors") == uninterrupted;
        CHECK(equal);
        table += equal ? "  equal" : "  OTHER";
      }
    }
    std::cout << table << "\n";
  }
}

TEST_CASE("a checkpoint of another run is refused, and says which") {
  const TemporaryFolder folder;
  const Outcome saved = lesson({2, 2, 2}, {"--save", folder.file("run"), "--save-every", "2"});
  REQUIRE(saved.exit_code == 0);
  const std::string file = folder.file("run/muon/step-000002.safetensors");
  const std::vector<std::string> go_on = {"--optimizer", "muon", "--resume", file};
  const auto with = [&go_on](std::vector<std::string> more) {
    more.insert(more.begin(), go_on.begin(), go_on.end());
    return more;
  };
  expect_refusal(with({"--lr", "0.01"}), "its rates is");
  expect_refusal(with({"--decay", "all"}), "its decay is \"matrices\", but here it is \"all\"");
  expect_refusal(with({"--seed", "5"}), "its seed is");
  expect_refusal(with({"--micro-batches", "4"}), "its batch is");
  expect_refusal(with({"--text", LESSON}), "its text is");
  expect_refusal(with({"--steps", "9"}), "its rates is");
  expect_refusal({"--optimizer", "adamw", "--resume", file}, "its optimizer is");
  expect_refusal({"--resume", file}, "say which optimizer");
  expect_refusal({"--resume", folder.file("run")}, "nothing is left to do");
  for (const std::string optimizer : {"both", "muon"})
    expect_refusal({"--optimizer", optimizer, "--resume", folder.file("nowhere")}, "there is no such file or folder");
  std::string torn = read_text(file);
  torn[torn.size() / 2] ^= 1;
  std::ofstream(folder.file("torn.safetensors"), std::ios::binary) << torn;
  expect_refusal({"--optimizer", "muon", "--resume", folder.file("torn.safetensors")}, "torn.safetensors");
  CHECK(lesson({1, 1, 1}, with({"--schedule", "gpipe"})).exit_code == 0);
}

TEST_CASE("--grids compares all of them, with the same losses on each") {
  const Outcome outcome = lesson({1, 1, 1}, {"--steps", "3", "--grids", "1x1x1,4x2x1"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("dp 4 × tp 2") != std::string::npos);
  // What stands behind the grid: a line for each, of which nothing differs.
  std::set<std::string> said;
  std::istringstream lines(outcome.out);
  int of_grids = 0;
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find("AdamW ");
        at != std::string::npos && line.find("all bits") != std::string::npos) {
      ++of_grids;
      said.insert(line.substr(at, line.find("all bits") - at));
    }
  CHECK(of_grids == 2);
  CHECK(said.size() == 1);
  // Of what can't be asked for, one that each layer refuses: the rest is in pretraining_request_test.cpp.
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--grids", "1x2"}, {"--steps", "1"}, {"--lr", "-1"}, {"--text", "/dev"}})
    expect_refusal(options, options[0]);
}

TEST_CASE("experts on one, two or four ranks, as processes and as fibers: the same losses, and all bits") {
  std::set<std::string> said;
  for (const std::string world : {"processes", "fibers"})
    for (const std::string ep : {"1", "2", "4"}) {
      const Outcome outcome = lesson({4, 1, 1}, {"--experts", "4", "--ep", ep, "--grids", "4x1x1", "--world", world});
      INFO("ep ", ep, ", ", world, ": ", outcome.out, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      said.insert(outcome.out.substr(outcome.out.rfind("dp 4")));
    }
  CHECK(said.size() == 1);
  CHECK(said.begin()->find("all bits") != std::string::npos);
  expect_refusal({"--bug", "mixed_up_groups"}, "add --experts 4 --dp 4 --tp 1 --ep 2");
  expect_refusal({"--experts", "4", "--bug", "bf16_steps"}, "a run with experts takes none; leave out --experts");
}

TEST_CASE("a file that can't be written, and options of which one would be passed over, are refused before any work") {
  const TemporaryFolder folder;
  const std::vector<std::string> grids = {"--grids", "1x1x1,2x1x1"}, sweep = {"--sweep"};
  // Files of the lesson's own run, which does not come about.
  for (const std::string option : {"--record", "--trace"})
    for (const auto& other : {grids, sweep}) {
      std::vector<std::string> options = other;
      options.insert(options.end(), {option, folder.file("file")});
      expect_refusal(options, option + " writes a file of the lesson's run, and " + other[0] + " does something else");
      CHECK_FALSE(fs::exists(folder.file("file")));
    }
  fs::create_directories(folder.file("taken/muon/step-000006.safetensors"));
  expect_refusal({"--save", folder.file("taken")}, "step-000006.safetensors\": it is a folder");
}

TEST_CASE("asked to end before its first step: what it says to go on with is there, and it goes on") {
  const auto handles_interrupts = [](pid_t pid) {  // once it is the lesson, by the mask of caught signals
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    bool lesson = false;
    for (std::string line; std::getline(status, line);) {
      lesson = lesson || line.rfind("Name:\tlesson_20", 0) == 0;
      if (line.rfind("SigCgt:", 0) == 0) return lesson && (std::stoull(line.substr(7), nullptr, 16) & 2) != 0;
    }
    return false;
  };
  int saved = 0;
  for (int moment = 0; moment < 6; ++moment) {
    CAPTURE(moment);
    const TemporaryFolder folder;
    const std::vector<std::string> words = {LESSON, "--small", "--dp", "2", "--tp", "1", "--pp", "1", "--threads", "1"};
    std::vector<std::string> command = words;
    command.insert(command.end(), {"--steps", "40", "--save", folder.file("saved")});
    Program program(command);
    // Until the first rank is there, or the program is ready for an interrupt.
    for (int waits = 0; waits < 600000; ++waits, usleep(100))
      if (moment < 3 ? !children_of(program.pid()).empty() : handles_interrupts(program.pid())) break;
    usleep(moment < 3 ? 0 : 3000 * (moment - 3));
    kill(-program.pid(), SIGINT);
    const Outcome outcome = program.wait(120);
    INFO(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 3);
    const std::string words_of_it =
        "saved; --optimizer adamw --resume " + folder.file("saved/adamw") + " goes on with it";
    if (outcome.err.find(words_of_it) == std::string::npos) {
      CHECK(outcome.err.find("interrupted; ") != std::string::npos);
      CHECK(outcome.err.find("saved") == std::string::npos);
      continue;
    }
    ++saved;
    CHECK_FALSE(fs::is_empty(folder.file("saved/adamw")));
    command = words;
    command.insert(command.end(), {"--steps", "40", "--optimizer", "adamw", "--resume", folder.file("saved/adamw")});
    CHECK(run_program(command, 120).exit_code == 0);
  }
  CHECK(saved > 0);
}

TEST_CASE("a disk that gets full while the lesson trains ends it with exit code 3: it was asked for correctly") {
  const TemporaryFolder folder;
  const std::string value = folder.file("written"), file = value + "/adamw/step-000006.safetensors";
  const Outcome outcome = lesson({2, 1, 1}, {"--save", value}, [] {
    const rlimit limit = {400, 400};  // bytes: room for what is printed, and not for the file
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  INFO(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.err.find("can't write \"" + file + "\": File too large; make room") != std::string::npos);
  CHECK(outcome.out.find("OK") == std::string::npos);
  CHECK_FALSE(fs::exists(file));
}

TEST_SUITE_BEGIN("on a terminal");

TEST_CASE("on a terminal it says how far it is, unless nobody wants to know") {
  const PseudoTerminal terminal;
  if (!terminal.open()) return;
  const auto written = [&](const std::string& verbose) {
    const auto to_terminal = [name = terminal.path()] {
      ::dup2(::open(name.c_str(), O_RDWR | O_NOCTTY), STDERR_FILENO);
    };
    CHECK(lesson({1, 1, 1}, {"--steps", "2", "--optimizer", "muon", "--verbose", verbose}, to_terminal).exit_code == 0);
    return terminal.written();
  };
  const std::string wanted = written("1");
  INFO(wanted);
  CHECK(wanted.find("\rMuon + AdamW: step 1 of 2\x1b[K") == 0);
  CHECK(written("0").empty());
}

TEST_SUITE_END();
