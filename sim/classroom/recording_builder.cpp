#include "sim/classroom/recording_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/replay/palette.hpp"
#include "src/layout/grid.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

RecordingBuilder::RecordingBuilder(const LessonInfo& info, const Options& options) {
  recording_.name = info.name;
  recording_.number = lesson_number(info);
  recording_.title = info.title;
  recording_.question = info.question;
  recording_.grid = options.grid;
  recording_.precision = precision_name(options.precision);
}

void RecordingBuilder::heading(const std::string& printed) { recording_.heading = without_colours(printed); }

void RecordingBuilder::line(const std::string& printed) {
  std::vector<std::string>& lines = recording_.steps.empty() ? recording_.before : recording_.steps.back().lines;
  append(lines, split_at(without_colours(printed), '\n'));  // a text may have several lines
}

int RecordingBuilder::tensor(const std::string& name) {
  const std::string tensor = name.substr(0, name.find(','));
  auto& tensors = recording_.tensors;
  const auto same = [&](const RecordedTensor& known) { return known.name == tensor; };
  const auto found = std::find_if(tensors.begin(), tensors.end(), same);
  if (found != tensors.end()) return static_cast<int>(found - tensors.begin());
  tensors.push_back({tensor, {}});
  return static_cast<int>(tensors.size()) - 1;
}

// The colour that is wanted, unless it has one. Where another tensor has that, the next one that is free.
int RecordingBuilder::coloured(int tensor, int wanted, int step) {
  const auto& tensors = recording_.tensors;
  std::optional<int>& colour = recording_.tensors[static_cast<std::size_t>(tensor)].colour;
  for (int tried = 0; !colour && tried < kColours; ++tried) {
    const int next = (wanted + kColours + step * tried) % kColours;
    if (std::none_of(tensors.begin(), tensors.end(), [next](const auto& other) { return other.colour == next; }))
      colour = next;
  }
  if (!colour) colour = wanted % kColours;
  return tensor;
}

// Matrices take the colours from the front, as on the map of a buffer, and flat arrays those from the back.
int RecordingBuilder::coloured(int tensor, bool flat) {
  if (recording_.tensors[static_cast<std::size_t>(tensor)].colour) return tensor;
  return flat ? coloured(tensor, kColours - 1 - runs_++ % kColours, -1) : coloured(tensor, matrices_++, 1);
}

RecordedBlock RecordingBuilder::block(const Shown& shown) {
  RecordedBlock block = shown.block;
  // All parameters of the buffer, whichever of them this block has: so their colours don't depend on the ranks' shards.
  std::vector<int> parameters;
  for (const ShownParameter& each : shown.parameters) parameters.push_back(coloured(tensor(each.name), each.number, 1));
  block.tensor = tensor(block.name);
  if (block.spans)
    for (RecordedSpan& span : *block.spans) span.tensor = parameters.at(static_cast<std::size_t>(span.tensor));
  else
    coloured(block.tensor, block.flat);
  for (const std::string& name : shown.made_of) block.from.push_back(tensor(name));
  if (shown.values.empty()) return block;
  block.digest = digest_text(shown.values);
  if (block.rows * block.cols <= kMostRecordedValues) block.values = shown.values;
  return block;
}

void RecordingBuilder::step(const std::string& title, const StepReports& reports) {
  RecordedStep step;
  step.number = static_cast<int>(recording_.steps.size()) + 1;
  step.title = title;
  for (const auto& of_rank : reports) {
    step.holds.emplace_back();
    step.says.emplace_back();
    for (const Report& report : of_rank) {
      if (const auto* shown = std::get_if<Shown>(&report)) step.holds.back().push_back(block(*shown));
      if (const auto* said = std::get_if<Said>(&report)) step.says.back().push_back(said->line);
      if (const auto* move = std::get_if<RecordedMove>(&report)) step.moves.push_back(*move);
    }
  }
  recording_.steps.push_back(std::move(step));
  own_lines_ = 0;
}

void RecordingBuilder::step_printed() {
  if (!recording_.steps.empty()) own_lines_ = recording_.steps.back().lines.size();
}

void RecordingBuilder::finish(bool ok) {
  recording_.ok = ok;
  if (recording_.steps.empty()) return;
  auto& lines = recording_.steps.back().lines;
  const auto first = lines.begin() + static_cast<std::ptrdiff_t>(own_lines_);
  recording_.after.assign(first, lines.end());
  lines.erase(first, lines.end());
}

std::vector<PhaseRecords> phases_of(const std::string& title, StepReports reports) {
  const std::size_t ranks = reports.size();
  std::vector<PhaseRecords> phases;
  const auto place = [&](const std::string& name) -> StepReports& {
    const std::string of = name.empty() ? title : fmt::format("{}: {}", title, name);
    const auto same = [&](const PhaseRecords& phase) { return phase.title == of; };
    auto found = std::find_if(phases.begin(), phases.end(), same);
    if (found == phases.end()) found = phases.insert(found, {of, StepReports(ranks)});
    return found->reports;
  };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    // A rank's records up to a PhaseEnded are those of that phase; what comes after the last one has no phase.
    std::vector<Report> open;
    const auto close = [&](const std::string& name) {
      auto& of_rank = place(name)[rank];
      std::move(open.begin(), open.end(), std::back_inserter(of_rank));
      open.clear();
    };
    for (Report& report : reports[rank])
      if (const auto* phase = std::get_if<PhaseEnded>(&report))
        close(phase->name);
      else if (std::holds_alternative<Shown>(report) || std::holds_alternative<Said>(report) ||
               std::holds_alternative<RecordedMove>(report))
        open.push_back(std::move(report));
    if (!open.empty()) close("");
  }
  if (phases.empty()) place("");
  for (PhaseRecords& phase : phases) {
    std::vector<Traffic> moved(ranks);
    for_each<RecordedMove>(phase.reports, [&](int, const RecordedMove& move) {
      moved[static_cast<std::size_t>(move.from)] += {move.bytes, 0, 1, 0};
      moved[static_cast<std::size_t>(move.to)] += {0, move.bytes, 0, 1};
    });
    for (std::size_t rank = 0; rank < ranks; ++rank) phase.reports[rank].push_back(moved[rank]);
  }
  return phases;
}

}  // namespace muonwalk::sim
