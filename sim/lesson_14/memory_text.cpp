#include "sim/lesson_14/memory_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"
#include "src/text/output_columns.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kBarWidth = 40;
constexpr int kMatrixWidth = 16;

// Of a RankMemory, what one line of the table is about.
struct TableLine {
  std::string name;
  std::function<Index(const RankMemory&)> bytes;
};

std::function<Index(const RankMemory&)> kept(std::vector<std::string> names) {
  return [names = std::move(names)](const RankMemory& memory) {
    Index bytes = 0;
    for (const std::string& name : names)
      if (const auto found = memory.kept.find(name); found != memory.kept.end()) bytes += found->second;
    return bytes;
  };
}

std::vector<TableLine> table_lines_of_memory() {
  return {{"weights, bfloat16", kept({"weights"})},
          {"gradients, float32", kept({"gradients"})},
          {"master weights, float32", kept({"master weights"})},
          {"momentum, first moments", kept({"momentum", "first moments"})},
          {"second moments", kept({"second moments"})},
          {"between two steps", [](const RankMemory& m) { return m.held(); }},
          {"for a moment", [](const RankMemory& m) { return m.most() - m.held(); }},
          {"at most", [](const RankMemory& m) { return m.most(); }}};
}

std::string ratio_text(Index part, Index of) {
  if (of == 0) return "–";
  const double ratio = static_cast<double>(part) / static_cast<double>(of);
  return ratio < 100 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.0f}", ratio);
}

// Rounded to the next whole one.
std::string units_text(Index bytes, Index unit) { return number_text((bytes + unit / 2) / unit); }

// The phases that get a line: each of a bucket, and of those of a matrix, which follow each other, the one that holds
// most.
std::vector<PhaseMemory> charted(const RankMemory& memory) {
  std::vector<PhaseMemory> all;
  for (const PhaseMemory& phase : memory.phases) {
    const bool same_matrix = phase.parameter >= 0 && !all.empty() && all.back().parameter == phase.parameter;
    if (!same_matrix)
      all.push_back(phase);
    else if (phase.most > all.back().most)
      all.back() = phase;
  }
  return all;
}

// "bucket 0.1", in the order in which a step goes through them.
std::vector<std::string> bucket_names(const Layout& layout) {
  std::vector<std::string> names;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b)
    for (std::size_t k = 0; k < layout.buffers[b].buckets.size(); ++k)
      names.push_back(fmt::format("bucket {}.{}", b, k));
  return names;
}

std::string repeated(const char* cell, Index times) {
  std::string text;
  for (Index i = 0; i < times; ++i) text += cell;
  return text;
}

}  // namespace

std::string memory_table(const std::string& title, const std::vector<MemoryPair>& pairs, const ParameterCount& count,
                         Index unit) {
  std::vector<std::vector<std::string>> rows = {{title}};
  for (const MemoryPair& pair : pairs) {
    const std::string prefix = pair.name.empty() ? "" : pair.name + " ";
    rows[0].insert(rows[0].end(), {prefix + "AdamW", prefix + "Muon", "ratio"});
  }
  for (const TableLine& line : table_lines_of_memory()) {
    rows.push_back({"  " + line.name});
    for (const MemoryPair& pair : pairs) {
      const Index adamw = line.bytes(pair.adamw), muon = line.bytes(pair.muon);
      rows.back().insert(rows.back().end(), {units_text(adamw, unit), units_text(muon, unit), ratio_text(muon, adamw)});
    }
  }
  rows.push_back({"  per parameter, between steps"});
  rows.push_back({"  per parameter of hidden matrices"});
  for (const MemoryPair& pair : pairs) {
    std::vector<std::string>&all = rows[rows.size() - 2], &hidden = rows.back();
    all.insert(all.end(), {ratio_text(pair.adamw.held(), count.all), ratio_text(pair.muon.held(), count.all), ""});
    hidden.insert(hidden.end(), {ratio_text(pair.adamw.kept_for_hidden, count.hidden),
                                 ratio_text(pair.muon.kept_for_hidden, count.hidden), ""});
  }
  return joined_table(rows, 1);
}

std::string phase_chart(const std::string& title, const RankMemory& memory, const Layout& layout) {
  const Index held = memory.held(), most = std::max<Index>(memory.most(), 1);
  const std::vector<std::string> buckets = bucket_names(layout);
  std::vector<std::vector<std::string>> rows = {{title, "", "bytes"}};
  std::vector<Index> bytes = {0};
  Index before = held;
  std::size_t begun = 0;  // buckets
  for (const PhaseMemory& phase : charted(memory)) {
    begun += phase.phase == phases::reduce_gradients;
    const bool of_matrix = phase.parameter >= 0;
    if (!of_matrix && phase.most == before) continue;
    before = phase.most;
    const std::string about = of_matrix ? visible_name(layout.meta(phase.parameter).name, kMatrixWidth)
                                        : buckets.at(std::max<std::size_t>(begun, 1) - 1);
    rows.push_back({"  " + phase.phase, about, number_text(phase.most)});
    bytes.push_back(phase.most);
  }
  std::string text;
  const std::vector<std::string> lines = table_lines(rows, 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += (i > 0 ? "\n" : "") + lines[i];
    if (i == 0) continue;
    const Index room = std::min<Index>(kBarWidth, output_columns() - 3 - text_width(lines[i]));
    const Index kept_cells = held * room / most;
    const Index cells = (bytes[i] * room + most - 1) / most;  // something is seen of all that is there
    text += "   " + repeated("█", kept_cells) + repeated("▒", cells - kept_cells);
  }
  return text;
}

}  // namespace muonwalk::sim
