// What lessons print when they are asked for other grids, precisions and models than their own: whole, as it is kept.
// Ranks are threads, so that it does not take long.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/golden/golden_text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

namespace {

// Each question: a lesson and its options.
void expect_screens(const std::string& kept, const std::vector<std::string>& questions) {
  std::string text;
  for (const std::string& question : questions) {
    std::istringstream words(question);
    std::string word;
    words >> word;
    std::vector<std::string> command = {std::string(MUONWALK_LESSONS) + "/lesson_" + word};
    while (words >> word) command.push_back(word);
    command.insert(command.end(), {"--world", "threads"});
    // Standard error has what is measured.
    const muonwalk::testing::Outcome outcome = muonwalk::testing::run_program(command, 120);
    CHECK_MESSAGE(outcome.exit_code == 0, question << ": " << outcome.err);
    text += "$ lesson_" + question + "\n" + outcome.out;
  }
  muonwalk::testing::expect_golden(kept, text);
}

}  // namespace

TEST_CASE("lessons 00 to 08 on other grids: their screens are, word by word, what is kept") {
  expect_screens(
      "other_screens_00.txt",
      {"00_hello_ranks --dp 3 --verbose 2", "01_grid --dp 3 --tp 1 --pp 2", "02_collectives --dp 3 --verbose 2",
       "03_virtual_buffer --dp 3 --tp 1 --mark 2 --verbose 2", "03_virtual_buffer --dp 4 --tp 2",
       "04_dp_gather --dp 1 --tp 2 --precision bf16 --verbose 2", "04_dp_gather --dp 4 --tp 1",
       "05_tp_gather --dp 2 --tp 4 --verbose 2", "06_newton_schulz --tp 4 --precision bf16",
       "07_tp_shard --dp 2 --tp 2 --precision bf16 --verbose 2", "08_dp_shard --dp 3 --tp 1 --verbose 2"});
}

TEST_CASE("lessons 09 to 13 on other grids and with other settings: their screens are what is kept") {
  expect_screens("other_screens_09.txt",
                 {"09_full_step --small --steps 2 --bucket-capacity 900 --alignment 16 --dp 3 --tp 2 --precision bf16",
                  "09_full_step --toy --dp 2 --tp 2 --pp 2 --steps 1 --ownership matrices",
                  "09_full_step --small --steps 1 --dp 1 --tp 2 --pp 2 --no-nesterov",
                  "09_full_step --plan --model gpt2 --dp 6 --tp 4", "10_bug_hunt --dp 4 --tp 1",
                  "10_bug_hunt --mystery 2 --evidence bytes", "11_zero1_adamw --dp 3 --tp 2 --precision bf16",
                  "12_matched_rms --recipe torch", "12_matched_rms --split-qkv heads --tp 4 --dp 1",
                  "12_matched_rms --more-tables", "13_byte_ledger --dp 3 --tp 2", "13_byte_ledger --dp 1 --tp 2"});
}

TEST_CASE("lessons 14 to 22 on other grids and of other models: their screens are what is kept") {
  expect_screens(
      "other_screens_14.txt",
      {"14_memory --model llama-7b --dp 6 --tp 2", "14_memory --bucket-capacity 1000 --precision bf16 --dp 3 --tp 1",
       "15_sharding_layouts --model llama-7b --dp 8 --tp 8", "15_sharding_layouts --dp 3 --tp 2",
       "16_strategies --model gpt2 --dp 8 --tp 4 --price 20,5,300", "16_strategies --dp 2 --tp 2", "17_overlap --dp 3",
       "18_read_a_trace --dp 1 --tp 4 --precision bf16",
       "19_pipeline_3d --schedule gpipe --dp 1 --tp 1 --pp 3 --micro-batches 5",
       "19_pipeline_3d --dp 2 --tp 1 --pp 2 --verbose 2", "21_scale_out --dp 3 --tp 2",
       "21_scale_out --dp 2 --tp 2 --precision bf16", "22_nccl --dp 3 --tp 1"});
}

TEST_CASE("lessons 11 to 23 with options that are rarely given: their screens are what is kept") {
  expect_screens("other_screens_rare.txt",
                 {"09_full_step --small --steps 2 --lr 0.3 --momentum 0.5 --weight-decay 0.2 --rms 0.7 --ns-steps 3 "
                  "--verbose 2 --dp 2 --tp 1",
                  "09_full_step --plan --model gpt2 --dp 3 --tp 2 --pp 2 --ownership buffer",
                  "10_bug_hunt --dp 1 --tp 2 --verbose 2",
                  "11_zero1_adamw --dp 2 --tp 1 --pp 2",
                  "12_matched_rms --recipe emerging --steps 3 --verbose 2",
                  "12_matched_rms --recipe dion --coefficients aol --scale none --steps 2",
                  "12_matched_rms --recipe kellerjordan --coefficients polar_express --scale ratio --split-qkv none",
                  "13_byte_ledger --dp 4 --tp 1 --verbose 2",
                  "14_memory --model moonlight-16b --dp 8 --tp 4",
                  "14_memory --dp 2 --tp 2 --verbose 2",
                  "15_sharding_layouts --model qwen3-30b --dp 8 --tp 2",
                  "15_sharding_layouts --dp 4 --tp 1 --verbose 2",
                  "16_strategies --model moonlight-16b --dp 4 --tp 2 --precision bf16",
                  "16_strategies --dp 3 --tp 2 --verbose 2",
                  "17_overlap --way pipelined --link 0.02,200 --dp 2",
                  "17_overlap --dp 4 --verbose 2",
                  "18_read_a_trace --dp 2 --tp 1 --verbose 2",
                  "19_pipeline_3d --dp 1 --tp 1 --pp 3 --micro-batches 7 --verbose 2",
                  "21_scale_out --validate",
                  "21_scale_out --dp 4 --tp 1 --verbose 2",
                  "22_nccl --dp 2 --tp 4 --precision bf16 --verbose 2",
                  "23_two_hosts --link 100mbit,2ms --placement tp-across --network shared",
                  "23_two_hosts --dp 4 --tp 1 --network shared --verbose 2"});
}

TEST_CASE("pictures that lessons draw from plans: every shape and word is what is kept") {
  std::string text;
  const std::pair<const char*, const char*> pictures[] = {
      {"01_grid --dp 3 --pp 2 --tp 2", "grid"},
      {"03_virtual_buffer --dp 2 --tp 2 --mark 1", "buffer"},
      {"12_matched_rms", "rms"},
      {"14_memory --dp 3 --tp 1", "memory"},
      {"15_sharding_layouts --dp 3", "layouts"},
      {"16_strategies --dp 2 --tp 2", "costs"},
      {"17_overlap --dp 3", "schedules"},
      {"19_pipeline_3d --dp 1 --tp 1 --pp 3 --micro-batches 4", "schedules"}};
  for (const auto& [question, name] : pictures) {
    const TemporaryFolder folder;
    std::istringstream words(question);
    std::string word;
    words >> word;
    std::vector<std::string> command = {std::string(MUONWALK_LESSONS) + "/lesson_" + word};
    while (words >> word) command.push_back(word);
    command.insert(command.end(), {"--world", "threads", "--svg", folder.path() + "/"});
    const muonwalk::testing::Outcome outcome = muonwalk::testing::run_program(command, 120);
    CHECK_MESSAGE(outcome.exit_code == 0, question << ": " << outcome.err);
    text += std::string("$ lesson_") + question + "\n" + read_text(folder.file(std::string(name) + ".svg"));
  }
  muonwalk::testing::expect_golden("other_pictures.txt", text);
}
