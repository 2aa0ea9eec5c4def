#include "lessons/lesson_18_read_a_trace/made_up_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/replay/trace_writers.hpp"
#include "src/text/table.hpp"
#include "tools/trace/reader.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;  // in nanoseconds

int ranks_of(const std::vector<MadeUpEvent>& events) {
  int ranks = 0;
  for (const MadeUpEvent& event : events) ranks = std::max(ranks, event.rank + 1);
  return ranks;
}

bool is_call(const MadeUpEvent& event) { return event.category == "kernel" && event.name.rfind("nccl", 0) == 0; }

std::string call_arguments(const MadeUpEvent& event, int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return fmt::format(R"("Collective name":{},"Group size":{},"Process Group Name":"{}","Process Group Ranks":"[{}]")",
                     quoted(event.name), ranks, event.stream, fmt::join(members, ", "));
}

std::string text_of_rank(const std::vector<MadeUpEvent>& events, int rank, int ranks) {
  std::string text;
  TraceFileWriter file([&text](const std::string& piece) { text += piece; },
                       fmt::format(R"("distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}})", rank, ranks));
  for (const MadeUpEvent& event : events)
    if (event.rank == rank)
      file.slice(event.stream > 0 ? rank : 1000 + rank, event.stream, event.category.c_str(), event.name,
                 kMillisecond * event.begin, kMillisecond * event.end(),
                 is_call(event) ? call_arguments(event, ranks) : "");
  file.finish();
  return text;
}

// A row of the picture: events that share it.
struct PictureRow {
  int rank;
  std::string on;  // "host range", "kernel, stream 7"
  std::string name;
};

std::string on_text(const MadeUpEvent& event) {
  if (event.category == "kernel") return fmt::format("kernel, stream {}", event.stream);
  return event_class_name(classify(TraceDialect::pytorch, event.category, event.name));
}

// Two columns a millisecond: "··██··".
void paint_event(std::vector<std::string>& cells, const MadeUpEvent& event) {
  for (int ms = event.begin; ms < event.end(); ++ms) cells[static_cast<std::size_t>(ms)] = "██";
  // Of events that touch, the next one can be told by a gap.
  if (event.duration > 0) cells[static_cast<std::size_t>(event.end() - 1)] = "█▌";
}

}  // namespace

std::vector<TraceFile> made_up_trace(const std::vector<MadeUpEvent>& events) {
  const int ranks = ranks_of(events);
  std::vector<TraceFile> files;
  for (int rank = 0; rank < ranks; ++rank)
    files.push_back(
        read_trace_text(fmt::format("the made-up trace of rank {}", rank), text_of_rank(events, rank, ranks)));
  return files;
}

std::vector<std::string> drawn(const std::vector<MadeUpEvent>& events) {
  int end = 0;
  for (const MadeUpEvent& event : events) end = std::max(end, event.end());
  std::vector<std::pair<PictureRow, std::vector<std::string>>> rows;
  for (const MadeUpEvent& event : events) {
    const std::string on = on_text(event);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& each) {
      return each.first.rank == event.rank && each.first.on == on && each.first.name == event.name;
    });
    if (row == rows.end())
      row = rows.insert(rows.end(),
                        {{event.rank, on, event.name}, std::vector<std::string>(static_cast<std::size_t>(end), "  ")});
    paint_event(row->second, event);
  }
  std::string scale;
  for (int ms = 0; ms <= end; ms += 5) scale += fmt::format("{:<10}", ms);
  Table table({{"ms"}, {""}, {""}, {scale}});
  int above = -1;
  for (const auto& [row, cells] : rows) {
    table.row({row.rank != above ? fmt::format("rank {}", row.rank) : "", row.on, row.name,
               fmt::format("{}", fmt::join(cells, ""))});
    above = row.rank;
  }
  return table.lines();
}

NamedNumbers in_milliseconds(const Summary& summary) {
  NamedNumbers ms;
  for (const RankSummary& rank : summary.ranks) {
    const std::string who = fmt::format("rank {}: ", rank.rank);
    ms[who + "computation"] = rank.computation_ns / kMillisecond;
    ms[who + "communication"] = rank.communication_ns / kMillisecond;
    ms[who + "overlap"] = rank.overlap_ns / kMillisecond;
    ms[who + "optimizer"] = rank.optimizer_device.time_ns / kMillisecond;
    ms[who + "waiting"] = rank.waiting.waiting_ns / kMillisecond;
    ms[who + "calls"] = rank.collective_calls;
  }
  return ms;
}

}  // namespace muonwalk::sim
