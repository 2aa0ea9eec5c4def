// The toy of lesson 09, whose recording has the values of every phase: what a phase makes follows from what went in.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using nlohmann::json;

namespace {

json recorded(const std::vector<std::string>& grid) {
  const TemporaryFolder folder;
  std::vector<std::string> command = {LESSON_09,   "--toy", "--steps",  "1",
                                      "--verbose", "0",     "--record", folder.file("toy.json")};
  command.insert(command.end(), grid.begin(), grid.end());
  const muonwalk::testing::Outcome outcome = muonwalk::testing::run_program(command, 60);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(read_text(folder.file("toy.json")));
}

// What a rank held of `name` (the whole name, with its state) after the step with this title.
json held(const json& recording, const std::string& title, std::size_t rank, const std::string& name) {
  for (const json& step : recording["steps"])
    if (step["title"] == "optimizer step 1: " + title || step["title"] == title)
      for (const json& block : step["holds"][rank])
        if (block["name"] == name) return block;
  return nullptr;
}

std::vector<float> values(const json& block) {
  REQUIRE(block["values"].is_array());
  return block["values"].get<std::vector<float>>();
}

std::vector<float> part(const json& block, const json& range) {
  const std::vector<float> all = values(block);
  return {all.begin() + range["begin"].get<long>() - block["begin"].get<long>(),
          all.begin() + range["end"].get<long>() - block["begin"].get<long>()};
}

}  // namespace

TEST_CASE("lesson 09 --toy: what a planted bug does is recorded, and the run ends with 1") {
  for (const char* bug : {"dropped_gradient", "forgotten_momentum", "slice_shape", "stale_weights"}) {
    CAPTURE(bug);
    const TemporaryFolder folder;
    const muonwalk::testing::Outcome outcome = muonwalk::testing::run_program(
        {LESSON_09, "--toy", "--steps", "2", "--verbose", "0", "--bug", bug, "--record", folder.file("toy.json")}, 60);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(json::parse(read_text(folder.file("toy.json")))["steps"].size() > 2);
  }
}

TEST_CASE(
    "lesson 09 --toy: every block of every phase has its values, and they follow from those of the phase before") {
  for (const std::vector<std::string>& grid : {std::vector<std::string>{"--dp", "4", "--tp", "2"},
                                               {"--dp", "2", "--tp", "2", "--alignment", "4"},
                                               {"--dp", "2", "--tp", "1", "--bucket-capacity", "20"}}) {
    CAPTURE(fmt::format("{}", fmt::join(grid, " ")));
    const json recording = recorded(grid);
    REQUIRE(recording["steps"].size() == 11);
    for (const json& step : recording["steps"])
      for (const json& of_rank : step["holds"])
        for (const json& block : of_rank) {
          CAPTURE(block["name"].get<std::string>());
          CAPTURE(step["title"].get<std::string>());
          CHECK(block["values"].is_array());
        }
    const std::size_t ranks = recording["ranks"].size();
    const bool two = grid.size() > 4 && grid[4] == "--bucket-capacity";
    for (const std::string& bucket : two ? std::vector<std::string>{" 0", " 1"} : std::vector<std::string>{""}) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const json sum = held(recording, "reduce-scatter of gradients", rank, "gradients" + bucket);
        const json momentum = held(recording, "momentum", rank, "momentum" + bucket);
        const json update = held(recording, "momentum", rank, "update" + bucket);
        const json gathered = held(recording, "DP gather", rank, "update" + bucket);
        const json applied = held(recording, "apply", rank, "weights" + bucket);
        const json weights = held(recording, "all-gather of weights", rank, "weights" + bucket);
        // The sum of what all ranks of the group had, as a tree.
        std::vector<std::vector<float>> addends;
        for (std::size_t other = 0; other < ranks; ++other)
          if (recording["ranks"][other]["tp"] == recording["ranks"][rank]["tp"])
            addends.push_back(part(held(recording, "gradients (random numbers)", other, "gradients" + bucket), sum));
        std::vector<float> expected = addends[0];
        for (std::size_t at = 0; at < expected.size(); ++at) {
          std::vector<float> leaves;
          for (const auto& addend : addends) leaves.push_back(addend[at]);
          while (leaves.size() > 1)
            for (std::size_t i = 0; i < leaves.size(); ++i) {
              leaves[i] += leaves[i + 1];
              leaves.erase(leaves.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            }
          expected[at] = leaves[0];
        }
        CHECK(values(sum) == expected);
        CHECK(values(momentum) == values(sum));  // which began at 0
        for (std::size_t at = 0; at < expected.size(); ++at)
          CHECK(values(update)[at] == near(1.9 * static_cast<double>(expected[at]), 1e-5));
        CHECK(part(gathered, update) == values(update));
        CHECK(part(weights, applied) == values(applied));
        CHECK(values(applied) != part(held(recording, "lay out the parameters", rank, "weights" + bucket), applied));
        for (std::size_t other = 0; other < ranks; ++other)  // all ranks of a DP group end with the same weights
          if (recording["ranks"][other]["tp"] == recording["ranks"][rank]["tp"])
            CHECK(values(held(recording, "all-gather of weights", other, "weights" + bucket)) == values(weights));
        // Each matrix in which it owns an element: gathered from slices, made orthogonal, cut.
        for (const json& span : gathered["spans"]) {
          const std::string name = recording["tensors"][span[0].get<std::size_t>()]["name"];
          const json whole = held(recording, "TP gather", rank, name);
          if (whole.is_null()) continue;
          const json slice = held(recording, "TP shard", rank, name + ", orthogonal");
          const json owned = held(recording, "DP shard", rank, name + ", orthogonal");
          const long cols = whole["cols"];
          const auto cut = [&](const json& matrix) {  // the rank's slice of a whole matrix
            std::vector<float> found;
            const std::vector<float> all = values(matrix);
            const bool columns = slice["unit"] == "columns";
            for (long row = 0; row < whole["rows"].get<long>(); ++row)
              for (long col = 0; col < cols; ++col) {
                const long at = columns ? col : row;
                if (slice["unit"] == "" || (at >= slice["begin"] && at < slice["end"]))
                  found.push_back(all[static_cast<std::size_t>(row * cols + col)]);
              }
            return found;
          };
          const std::vector<float> flat = values(gathered);
          CHECK(cut(whole) ==
                std::vector<float>(flat.begin() + span[1].get<long>(), flat.begin() + span[2].get<long>()));
          CHECK(values(slice) == cut(held(recording, "Newton–Schulz", rank, name + ", orthogonal")));
          const std::vector<float> all = values(slice);
          CHECK(values(owned) ==
                std::vector<float>(all.begin() + owned["begin"].get<long>(), all.begin() + owned["end"].get<long>()));
        }
      }
    }
  }
}
