#include "sim/cluster/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/pictures/palette.hpp"
#include "sim/pictures/strip.hpp"
#include "sim/terminal/write_or_fail.hpp"
#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {
namespace {

std::string without_colours(const std::string& line) {
  std::string plain;
  bool in_escape = false;  // ESC [ … m
  for (const char c : line) {
    if (c == '\033') in_escape = true;
    if (!in_escape) plain += c;
    if (c == 'm') in_escape = false;
  }
  return plain;
}

constexpr std::ptrdiff_t kFewestPhases = 3;  // that are worth a picture of their own

bool is_folder(const std::string& path) { return !path.empty() && path.back() == '/'; }

}  // namespace

Recorder::Recorder(const LessonInfo& info, const Options& options)
    : record_path_(options.record_file), svg_path_(options.svg_path) {
  recording_.name = info.name;
  recording_.number = lesson_number(info);
  recording_.title = info.title;
  recording_.question = info.question;
  recording_.grid = options.grid;
  recording_.precision = precision_name(options.precision);
  for (int rank = 0; rank < options.grid.size(); ++rank)
    recording_.ranks.push_back({rank_label(options.grid, rank), options.grid.place(rank)});
}

void Recorder::heading(const std::string& printed) { recording_.heading = without_colours(printed); }

void Recorder::line(const std::string& printed) {
  std::vector<std::string>& lines = recording_.steps.empty() ? recording_.before : recording_.steps.back().lines;
  std::size_t at = 0;
  const std::string plain = without_colours(printed);
  for (std::size_t end = 0; end != std::string::npos; at = end + 1) {  // a text may have several lines
    end = plain.find('\n', at);
    lines.push_back(plain.substr(at, end == std::string::npos ? end : end - at));
  }
}

int Recorder::tensor(const std::string& name) {
  const std::string tensor = name.substr(0, name.find(','));
  auto& tensors = recording_.tensors;
  const auto same = [&](const RecordedTensor& known) { return known.name == tensor; };
  const auto found = std::find_if(tensors.begin(), tensors.end(), same);
  if (found != tensors.end()) return static_cast<int>(found - tensors.begin());
  tensors.push_back({tensor, {}});
  return static_cast<int>(tensors.size()) - 1;
}

// The colour that is wanted, unless it has one. Where another tensor has that, the next one that is free.
int Recorder::coloured(int tensor, int wanted, int step) {
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
int Recorder::coloured(int tensor, bool flat) {
  if (recording_.tensors[static_cast<std::size_t>(tensor)].colour) return tensor;
  return flat ? coloured(tensor, kColours - 1 - runs_++ % kColours, -1) : coloured(tensor, matrices_++, 1);
}

RecordedBlock Recorder::block(const Shown& shown) {
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

void Recorder::add_step(const std::string& title, const std::vector<std::vector<const Record*>>& records) {
  RecordedStep step;
  step.number = static_cast<int>(recording_.steps.size()) + 1;
  step.title = title;
  for (const auto& of_rank : records) {
    step.holds.emplace_back();
    step.says.emplace_back();
    for (const Record* record : of_rank) {
      if (const auto* shown = std::get_if<Shown>(record)) step.holds.back().push_back(block(*shown));
      if (const auto* said = std::get_if<Said>(record)) step.says.back().push_back(said->line);
      if (const auto* move = std::get_if<RecordedMove>(record)) step.moves.push_back(*move);
    }
  }
  recording_.steps.push_back(std::move(step));
  own_lines_ = 0;
}

void Recorder::step(const std::string& title, const StepRecords& records) {
  std::vector<std::vector<const Record*>> all(records.size());
  for (std::size_t rank = 0; rank < records.size(); ++rank)
    for (const Record& record : records[rank]) all[rank].push_back(&record);
  add_step(title, all);
}

void Recorder::quiet_step(const std::string& title, const StepRecords& records) {
  // A rank's records up to a PhaseEnded are those of that phase; what comes after the last one has no phase.
  std::vector<std::string> phases;
  std::vector<std::vector<std::vector<const Record*>>> of_phase;  // [phase][rank]
  const auto place = [&](const std::string& phase) {
    const auto found = std::find(phases.begin(), phases.end(), phase);
    if (found != phases.end()) return static_cast<std::size_t>(found - phases.begin());
    phases.push_back(phase);
    of_phase.emplace_back(records.size());
    return phases.size() - 1;
  };
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    std::vector<const Record*> open;
    const auto close = [&](const std::string& phase) {
      auto& of_rank = of_phase[place(phase)][rank];
      of_rank.insert(of_rank.end(), open.begin(), open.end());
      open.clear();
    };
    for (const Record& record : records[rank]) {
      if (const auto* phase = std::get_if<PhaseEnded>(&record))
        close(phase->name);
      else if (std::holds_alternative<Shown>(record) || std::holds_alternative<Said>(record) ||
               std::holds_alternative<RecordedMove>(record))
        open.push_back(&record);
    }
    if (!open.empty()) close("");
  }
  if (phases.empty()) place("");
  const std::size_t before = recording_.steps.size();
  for (std::size_t p = 0; p < phases.size(); ++p)
    add_step(phases[p].empty() ? title : fmt::format("{}: {}", title, phases[p]), of_phase[p]);
  const auto shows = [](const RecordedStep& step) { return !step.holds.front().empty(); };
  const auto first = recording_.steps.begin() + static_cast<std::ptrdiff_t>(before);
  if (phases_.empty() && std::count_if(first, recording_.steps.end(), shows) >= kFewestPhases)
    phases_ = {static_cast<int>(before), static_cast<int>(recording_.steps.size()) - 1};
}

void Recorder::step_printed() {
  if (!recording_.steps.empty()) own_lines_ = recording_.steps.back().lines.size();
}

void Recorder::finish(bool ok) {
  recording_.ok = ok;
  if (recording_.steps.empty()) return;
  auto& lines = recording_.steps.back().lines;
  const auto first = lines.begin() + static_cast<std::ptrdiff_t>(own_lines_);
  recording_.after.assign(first, lines.end());
  lines.erase(first, lines.end());
}

void Recorder::write() const {
  const auto write = [](const std::string& path, const std::string& text) {
    write_or_fail([&] { write_text_file(path, text); });
  };
  if (!record_path_.empty()) write(record_path_, recording_json(recording_));
  if (svg_path_.empty()) return;
  if (!is_folder(svg_path_))
    return write(svg_path_, pictures_.empty() ? strips_svg(recording_) : pictures_.front().second);
  for (const auto& [name, svg] : pictures_) write(fmt::format("{}{}.svg", svg_path_, name), svg);
  if (!phases_.empty()) write(svg_path_ + "phases.svg", phases_svg(recording_, phases_.begin, phases_.end, 0));
  for (std::size_t step = 0; step < recording_.steps.size(); ++step)
    write(fmt::format("{}step_{}.svg", svg_path_, step + 1), strip_svg(recording_, static_cast<int>(step)));
}

void require_writable(const Options& options) {
  if (!options.record_file.empty()) FileBeside(options.record_file);
  if (options.svg_path.empty()) return;
  if (!is_folder(options.svg_path)) {
    FileBeside(options.svg_path);
    return;
  }
  make_folder("--svg", options.svg_path);
  FileBeside(options.svg_path + "step_1.svg");
}

}  // namespace muonwalk::sim
