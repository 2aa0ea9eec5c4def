#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "sim/replay/palette.hpp"
#include "sim/replay/recording.hpp"

namespace muonwalk::sim {
namespace {

// Keys stay in the order in which they are written, and numbers are floats, so that 0.1f is printed as 0.1.
using RecordingJson =
    nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t, float>;

RecordingJson number(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

RecordingJson text_or_null(const std::optional<std::string>& text) {
  return text ? RecordingJson(*text) : RecordingJson(nullptr);
}

RecordingJson values_of(const RecordedBlock& block) {
  if (!block.values) return nullptr;
  RecordingJson values = RecordingJson::array();
  for (const float value : *block.values) values.push_back(number(value));
  return values;
}

RecordingJson block_json(const RecordedBlock& block) {
  RecordingJson json = {{"name", block.name},
                        {"tensor", block.tensor},
                        {"rows", block.rows},
                        {"cols", block.cols},
                        {"flat", block.flat},
                        {"bytes", block.bytes},
                        {"unit", block.unit},
                        {"begin", block.begin},
                        {"end", block.end},
                        {"of", block.of},
                        {"values", values_of(block)},
                        {"digest", text_or_null(block.digest)},
                        {"note", text_or_null(block.note)},
                        {"from", block.from}};
  if (!block.spans) return json;
  RecordingJson& spans = json["spans"] = RecordingJson::array();
  for (const RecordedSpan& span : *block.spans) spans.push_back({span.tensor, span.begin, span.end, span.first});
  return json;
}

RecordingJson move_json(const RecordedMove& move) {
  return {{"from", move.from},   {"to", move.to},
          {"group", move.group}, {"collective", move.collective},
          {"type", move.type},   {"elements", move.elements},
          {"bytes", move.bytes}, {"call", move.call}};
}

RecordingJson step_json(const RecordedStep& step) {
  RecordingJson holds = RecordingJson::array(), moves = RecordingJson::array();
  for (const auto& of_rank : step.holds) {
    holds.push_back(RecordingJson::array());
    for (const RecordedBlock& block : of_rank) holds.back().push_back(block_json(block));
  }
  for (const RecordedMove& move : step.moves) moves.push_back(move_json(move));
  return {{"number", step.number}, {"title", step.title}, {"lines", step.lines},
          {"holds", holds},        {"says", step.says},   {"moves", moves}};
}

RecordingJson colours_json(const Colour (&colours)[kColours]) {
  RecordingJson all = RecordingJson::array();
  for (const Colour& colour : colours) all.push_back({{"light", colour.light}, {"dark", colour.dark}});
  return all;
}

}  // namespace

std::string recording_json(const Recording& recording) {
  RecordingJson ranks = RecordingJson::array(), tensors = RecordingJson::array(), steps = RecordingJson::array();
  for (int rank = 0; rank < recording.grid.size(); ++rank) {
    const Place place = recording.grid.place(rank);
    const std::string label = rank_label(recording.grid, rank);
    ranks.push_back({{"rank", rank}, {"label", label}, {"dp", place.dp}, {"tp", place.tp}, {"pp", place.pp}});
  }
  for (const RecordedTensor& tensor : recording.tensors)
    tensors.push_back(
        {{"name", tensor.name}, {"colour", tensor.colour ? RecordingJson(*tensor.colour) : RecordingJson(nullptr)}});
  for (const RecordedStep& step : recording.steps) steps.push_back(step_json(step));
  const RecordingJson all = {
      {"format", "muonwalk-recording"},
      {"version", 1},
      {"lesson",
       {{"name", recording.name},
        {"number", recording.number},
        {"title", recording.title},
        {"question", recording.question}}},
      {"heading", recording.heading},
      {"grid", {{"dp", recording.grid.dp()}, {"tp", recording.grid.tp()}, {"pp", recording.grid.pp()}}},
      {"precision", recording.precision},
      {"ranks", ranks},
      {"tensors", tensors},
      {"palette", {{"tensors", colours_json(kParameterColours)}, {"ranks", colours_json(kRankColours)}}},
      {"steps", steps},
      {"before", recording.before},
      {"after", recording.after},
      {"ok", recording.ok}};
  return all.dump(-1, ' ', false, RecordingJson::error_handler_t::replace) + "\n";
}

}  // namespace muonwalk::sim
