// Timelines as text: what a reader sees, and that the lines say where every move is.
#include <doctest/doctest.h>

#include <stdexcept>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "src/text/text.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::lines_of;

namespace {

// The characters of a UTF-8 text.
std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> characters;
  for (const char byte : text) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) characters.emplace_back();
    characters.back() += byte;
  }
  return characters;
}

}  // namespace

TEST_CASE("timeline_text: both schedules as a reader sees them") {
  CHECK(timeline_text(play_pipeline(PipelineSchedule::gpipe, 2, 4, 1, 2)) ==
        "stage 0  0 1 2 3 · · · ←0─ ←1─ ←2─ ←3─\n"
        "stage 1  · 0 1 2 3 ←0─ ←1─ ←2─ ←3─ · ·");
  CHECK(timeline_text(play_pipeline(PipelineSchedule::one_f_one_b, 2, 4, 1, 2)) ==
        "stage 0  0 1 · · ←0─ 2 ←1─ 3 ←2─ · ←3─\n"
        "stage 1  · 0 ←0─ 1 ←1─ 2 ←2─ 3 ←3─ · ·");
  CHECK(timeline_text(play_pipeline(PipelineSchedule::one_f_one_b, 2, 3, 2, 1)) ==
        "stage 0  0──── 1──── ·  ←0 2──── ←1 ·  ·  ←2\n"
        "stage 1  ·  ·  0──── ←0 1──── ←1 2──── ←2 ·");
}

TEST_CASE("timeline_text: any schedule that fits: each unit of each stage is where it belongs") {
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (int stages = 1; stages <= 5; ++stages)
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        INFO(pipeline_schedule_name(schedule) << ", " << stages << " stages, " << micro_batches);
        const auto played = play_pipeline(schedule, stages, micro_batches, 1, 1);
        const std::string text = timeline_text(played);
        const auto lines = lines_of(text);
        REQUIRE(lines.size() == static_cast<std::size_t>(stages));
        REQUIRE(text.back() != '\n');
        const std::size_t unit = micro_batches > 10 ? 4 : 3, name = 9;
        for (std::size_t s = 0; s < lines.size(); ++s) {
          REQUIRE(text_width(lines[s]) <= kColumns);
          REQUIRE(lines[s].back() != ' ');
          if (text.find("…") != std::string::npos) continue;
          auto characters = characters_of(lines[s]);
          characters.resize(name + unit * static_cast<std::size_t>(played.extent().end), " ");
          std::size_t dots = 0;
          for (const auto& character : characters) dots += character == "·";
          REQUIRE(dots == static_cast<std::size_t>(played.idle(static_cast<int>(s))));
          for (const PipelineSpan& span : played.stages[s]) {
            std::string drawn;
            const std::size_t at = name + unit * static_cast<std::size_t>(span.time.begin);
            for (std::size_t i = 0; i < unit; ++i) drawn += characters[at + i];
            const bool back = span.move.kind == PipelineMove::Kind::backward;
            const std::string number = (back ? "←" : "") + std::to_string(span.move.micro_batch);
            std::string expected = number;
            while (text_width(expected) + 1 < static_cast<int>(unit)) expected += "─";
            REQUIRE(drawn == expected + " ");
          }
        }
      }
}

TEST_CASE("timeline_text: what is too long keeps its beginning and its end") {
  const auto long_one = play_pipeline(PipelineSchedule::one_f_one_b, 12, 100, 1, 2);
  const auto lines = lines_of(timeline_text(long_one));
  REQUIRE(lines.size() == 12);
  for (const std::string& line : lines) {
    CHECK(text_width(line) <= kColumns);
    CHECK(text_width(line.substr(0, line.find("…"))) == text_width(lines[0].substr(0, lines[0].find("…"))));
  }
  CHECK(lines[0].find("stage 0   0─ 1─ 2─ ") == 0);
  CHECK(lines[11].find("stage 11  ·  ·  ·  ") == 0);
  CHECK(lines[0].find("←99") + std::string("←99").size() <= lines[0].size());
  CHECK(lines[11].find("·  ·  ·", 80) != std::string::npos);
}

TEST_CASE("timeline_text: what can't be drawn is refused") {
  CHECK_THROWS_WITH_AS(timeline_text({}), "a timeline without moves can't be drawn as text", std::invalid_argument);
  CHECK_THROWS_WITH_AS(timeline_text(play_pipeline(PipelineSchedule::gpipe, 2, 2, 1, 0)),
                       "a move of no time can't be drawn", std::invalid_argument);
}

TEST_CASE("bubble_text: what was played beside the formula") {
  CHECK(bubble_text(play_pipeline(PipelineSchedule::gpipe, 2, 4, 1, 2)) ==
        "bubble 25.0 % on every stage, 25.0 % by the formula");
}
