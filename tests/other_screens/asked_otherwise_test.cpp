// What lessons say when they are not asked for a run: their options and bugs, what they refuse, and what lesson 20
// makes of its own options: whole, as it is kept.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/golden/golden_text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

namespace {

using muonwalk::testing::expect_golden;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using Words = std::vector<std::string>;

const Words kLessons = {
    "00_hello_ranks",   "01_grid",        "02_collectives", "03_virtual_buffer",   "04_dp_gather",  "05_tp_gather",
    "06_newton_schulz", "07_tp_shard",    "08_dp_shard",    "09_full_step",        "10_bug_hunt",   "11_zero1_adamw",
    "12_matched_rms",   "13_byte_ledger", "14_memory",      "15_sharding_layouts", "16_strategies", "17_overlap",
    "18_read_a_trace",  "19_pipeline_3d", "20_pretrain",    "21_scale_out",        "22_nccl",       "23_two_hosts"};

Outcome ask(const std::string& lesson, const Words& options) {
  Words command = {std::string(MUONWALK_LESSONS) + "/lesson_" + lesson};
  command.insert(command.end(), options.begin(), options.end());
  return muonwalk::testing::run_program(command, 120);
}

// "lesson --option value" with FOLDER for a folder; "+" stands for a blank in a value.
Outcome ask_line(const std::string& line, const std::string& folder = "") {
  std::istringstream words(line);
  std::string lesson;
  words >> lesson;
  Words options;
  for (std::string word; words >> word;) {
    std::replace(word.begin(), word.end(), '+', ' ');
    const std::size_t at = word.find("FOLDER");
    if (at != std::string::npos) word.replace(at, 6, folder);
    options.push_back(word);
  }
  return ask(lesson, options);
}

std::string without_folder(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); !folder.empty() && at != std::string::npos; at = text.find(folder))
    text.replace(at, folder.size(), "FOLDER");
  return text;
}

}  // namespace

TEST_CASE(
    "lessons: the options and defaults that a lesson does not share with others, and its bugs, are what is kept") {
  std::vector<Words> helps;
  std::set<std::string> common;
  for (const std::string& lesson : kLessons) {
    const Outcome help = ask(lesson, {"--help"});
    CHECK(help.exit_code == 0);
    helps.push_back(lines_of(help.out));
    std::set<std::string> lines(helps.back().begin(), helps.back().end()), both;
    std::set_intersection(lines.begin(), lines.end(), common.begin(), common.end(), std::inserter(both, both.end()));
    common = helps.size() == 1 ? lines : both;
  }
  CHECK(common.size() > 20);
  std::string text;
  for (std::size_t i = 0; i < kLessons.size(); ++i) {
    text += "lesson_" + kLessons[i] + "\n";
    for (const std::string& line : helps[i])
      if (common.count(line) == 0) text += line + "\n";
    text += ask(kLessons[i], {"--list-bugs"}).out;
  }
  expect_golden("lesson_options.txt", text);
}

TEST_CASE("lessons: what a lesson refuses is refused before any rank starts, in the sentence that is kept") {
  std::string text;
  for (const char* question : {"00_hello_ranks --dp 2 --tp 3",
                               "00_hello_ranks --dp 3 --pp 4",
                               "00_hello_ranks --dp 1",
                               "03_virtual_buffer --mark 2",
                               "04_dp_gather --tp 3",
                               "05_tp_gather --tp 5",
                               "06_newton_schulz --tp 7",
                               "07_tp_shard --tp 3",
                               "08_dp_shard --tp 8",
                               "09_full_step --adamw-lr 1 --adamw-for x",
                               "09_full_step --adamw-for x",
                               "09_full_step --pp 6",
                               "09_full_step --steps 0",
                               "09_full_step --steps 1001",
                               "09_full_step --lr -1",
                               "09_full_step --momentum 1",
                               "09_full_step --weight-decay -0.5",
                               "09_full_step --rms -1",
                               "09_full_step --ns-steps -1",
                               "09_full_step --alignment 0",
                               "09_full_step --bucket-capacity -1",
                               "09_full_step --ownership all",
                               "09_full_step --model gpt2",
                               "09_full_step --model gpt2 --plan --small",
                               "09_full_step --model gpt --plan",
                               "09_full_step --toy --small",
                               "09_full_step --out x",
                               "10_bug_hunt --pp 2",
                               "10_bug_hunt --mystery 9",
                               "10_bug_hunt --mystery 2 --evidence bits,bytes",
                               "10_bug_hunt --mystery 2 --bug flat_matrix",
                               "10_bug_hunt --mystery 2 --suspect nobody",
                               "10_bug_hunt --mystery 2 --dp 2",
                               "10_bug_hunt --mystery 2 --record x",
                               "10_bug_hunt --mystery 2 --trace x",
                               "10_bug_hunt --reveal",
                               "11_zero1_adamw --tp 3",
                               "12_matched_rms --pp 2",
                               "12_matched_rms --steps 0",
                               "12_matched_rms --steps 100000",
                               "12_matched_rms --recipe adam",
                               "12_matched_rms --scale huge",
                               "12_matched_rms --coefficients cubic",
                               "12_matched_rms --split-qkv four",
                               "12_matched_rms --tp 3",
                               "13_byte_ledger --pp 3",
                               "13_byte_ledger --precision bf16",
                               "13_byte_ledger --tp 3",
                               "14_memory --model llama",
                               "14_memory --bucket-capacity -1",
                               "15_sharding_layouts --pp 3",
                               "15_sharding_layouts --model llama",
                               "15_sharding_layouts --tp 3",
                               "16_strategies --pp 3",
                               "16_strategies --price 1,2",
                               "16_strategies --price 0,1,2",
                               "16_strategies --price 1,-1,2",
                               "16_strategies --price 1,1,0",
                               "16_strategies --price 1,1,2,3",
                               "16_strategies --tp 3",
                               "17_overlap --pp 3",
                               "17_overlap --way backwards",
                               "17_overlap --way all+at+once --link 1",
                               "17_overlap --link 0,1",
                               "17_overlap --link 1,-1",
                               "18_read_a_trace --pp 2",
                               "18_read_a_trace --published FOLDER/none",
                               "18_read_a_trace --published FOLDER",
                               "18_read_a_trace --tp 3",
                               "19_pipeline_3d --schedule interleaved",
                               "19_pipeline_3d --micro-batches 6 --dp 4",
                               "19_pipeline_3d --micro-batches 0",
                               "19_pipeline_3d --pp 9",
                               "19_pipeline_3d --tp 3",
                               "20_pretrain --steps 1",
                               "20_pretrain --lr -0.5",
                               "20_pretrain --adamw-lr -1",
                               "20_pretrain --outer-lr -1",
                               "20_pretrain --micro-batches 3",
                               "20_pretrain --pp 3",
                               "20_pretrain --tp 8 --dp 1",
                               "20_pretrain --schedule no",
                               "20_pretrain --resume FOLDER/none",
                               "20_pretrain --resume FOLDER",
                               "20_pretrain --text FOLDER/none",
                               "20_pretrain --other-text FOLDER",
                               "20_pretrain --grids 2x2x2,3x1x1",
                               "21_scale_out --pp 2",
                               "21_scale_out --tp 3",
                               "22_nccl --pp 2",
                               "22_nccl --tp 3",
                               "23_two_hosts --placement apart",
                               "23_two_hosts --link slow",
                               "23_two_hosts --pp 2",
                               "23_two_hosts --dp 3 --tp 1"}) {
    const TemporaryFolder folder;
    const Outcome outcome = ask_line(question, folder.path());
    CHECK_MESSAGE(outcome.exit_code == 2, question);
    CHECK(outcome.out.empty());
    text += "$ lesson_" + std::string(question) + "\n" + without_folder(outcome.err, folder.path());
  }
  expect_golden("lesson_refusals.txt", text);
}

TEST_CASE("lesson 20: sweep, grids, one optimizer, files, and going on: screens and files are what is kept") {
  const TemporaryFolder folder;
  std::string text;
  const auto expect = [&](const std::string& options, int exit_code = 0) {
    const Outcome outcome = ask_line("20_pretrain --small --world threads --threads 1 " + options, folder.path());
    CHECK_MESSAGE(outcome.exit_code == exit_code, options << ": " << outcome.err);
    text += "$ lesson_20_pretrain --small " + options + "\n" + outcome.out;
    if (exit_code != 0) text += without_folder(outcome.err, folder.path());
  };
  std::string prose;
  for (int i = 0; i < 400; ++i) prose += "line " + std::to_string(i * i) + " of a text\n";
  write_text(folder.file("prose"), prose);
  write_text(folder.file("other"), std::string(300, 'x') + prose.substr(2000));
  expect("--sweep --steps 2");
  expect("--grids 1x1x1,2x1x2 --steps 2 --optimizer muon");
  expect("--optimizer muon --decay all --steps 24 --lr 0.03 --outer-lr 0.015 --dp 1 --tp 2 --pp 1");
  expect("--optimizer adamw --adamw-lr 0.005 --micro-batches 4 --dp 2 --tp 1 --pp 1 --schedule 1f1b --steps 5");
  expect("--dp 1 --tp 1 --pp 2 --save FOLDER/run --save-every 2 --csv FOLDER/losses.csv --svg FOLDER/");
  text += read_text(folder.file("losses.csv")) + read_text(folder.file("losses.svg"));
  for (const char* way : {"adamw", "muon"}) {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.file("run") + "/" + way))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) text += std::string(way) + "/" + name + "\n";
  }
  expect("--dp 2 --tp 2 --pp 1 --optimizer muon --resume FOLDER/run/muon/step-000002.safetensors");
  expect("--dp 2 --tp 2 --pp 1 --optimizer adamw --resume FOLDER/run/adamw/step-000004.safetensors");
  expect("--resume FOLDER/run", 2);
  expect("--resume FOLDER/run/adamw/step-000002.safetensors", 2);
  expect("--optimizer adamw --resume FOLDER/run/muon/step-000002.safetensors", 2);
  expect("--optimizer muon --lr 0.5 --resume FOLDER/run/muon/step-000002.safetensors", 2);
  expect("--optimizer muon --steps 3 --seed 7 --dp 1 --tp 1 --pp 1 --text FOLDER/prose --other-text FOLDER/other");
  expect_golden("lesson_20_files.txt", without_folder(text, folder.path()));
}
