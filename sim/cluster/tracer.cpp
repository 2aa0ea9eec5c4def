#include "sim/cluster/tracer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "sim/cluster/interrupt.hpp"
#include "sim/cluster/ledger_record.hpp"
#include "sim/recording/trace_writers.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

std::string rank_file(const std::string& folder, int rank) {
  return (std::filesystem::path(folder) / fmt::format("rank_{}.json", rank)).string();
}

// "rank 3 (dp 1, tp 1)": all coordinates that tell ranks apart.
std::string trace_label(const Grid& grid, int rank) {
  std::string coordinates;
  const Place place = grid.place(rank);
  for (const auto& [kind, coordinate] :
       {std::pair(GroupKind::dp, place.dp), std::pair(GroupKind::tp, place.tp), std::pair(GroupKind::pp, place.pp)})
    if (grid.size(kind) > 1)
      coordinates += fmt::format("{}{} {}", coordinates.empty() ? "" : ", ", group_name(kind), coordinate);
  return coordinates.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, coordinates);
}

}  // namespace

Tracer::Tracer(const LessonInfo& info, const Options& options)
    : file_(options.trace_file), folder_(options.trace_folder), room_(options.trace_events) {
  run_.name = info.name;
  run_.title = info.title;
  run_.grid = options.grid;
  run_.precision = precision_name(options.precision);
  run_.backend = options.transport == TransportKind::memory ? "memory" : "gloo";
  for (int rank = 0; rank < options.grid.size(); ++rank) {
    run_.ranks.emplace_back();
    run_.ranks.back().label = trace_label(options.grid, rank);
  }
}

Record trace_record(SpanBatch batch, const Ledger& ledger) {
  Record record;
  record.kind = "trace";
  record.fields = {{"names", std::move(batch.names)},
                   {"dropped", batch.dropped},
                   {"full_since", batch.full_since_ns},
                   {"ledger", ledger_fields(ledger)}};
  const auto* bytes = reinterpret_cast<const std::byte*>(batch.spans.data());
  record.payload.assign(bytes, bytes + batch.spans.size() * sizeof(Span));
  return record;
}

void Tracer::step(const std::vector<std::vector<Record>>& records) {
  for (std::size_t rank = 0; rank < records.size(); ++rank)
    for (const Record& record : records[rank]) {
      if (record.kind != "trace") continue;
      RankTrace& of_rank = run_.ranks[rank];
      of_rank.names = record.fields.at("names").get<std::vector<std::string>>();
      of_rank.dropped = record.fields.at("dropped");
      of_rank.full_since_ns = record.fields.at("full_since");
      of_rank.ledger = ledger_from(record.fields.at("ledger"));
      const std::size_t before = of_rank.spans.size();
      of_rank.spans.resize(before + record.payload.size() / sizeof(Span));
      if (!record.payload.empty()) std::memcpy(&of_rank.spans[before], record.payload.data(), record.payload.size());
    }
}

// A lesson that reads its own trace keeps more than it was asked to write.
void Tracer::keep_what_was_asked_for() {
  for (RankTrace& rank : run_.ranks) {
    const std::size_t room = static_cast<std::size_t>(room_);
    if (rank.spans.size() <= room) continue;
    rank.dropped += static_cast<std::int64_t>(rank.spans.size() - room);
    rank.full_since_ns = rank.spans[room].begin_ns;
    rank.spans.resize(room);
  }
}

void Tracer::write(bool ok) {
  if (file_.empty() && folder_.empty()) return;
  run_.ok = ok;
  keep_what_was_asked_for();
  try {
    const InterruptHold hold;  // Ctrl-C waits until the files are whole
    std::vector<std::unique_ptr<TraceFileWriter>> files;
    if (!folder_.empty())
      for (int rank = 0; rank < run_.grid.size(); ++rank)
        files.push_back(write_pytorch_dialect(rank_file(folder_, rank), run_, rank));
    if (!file_.empty()) write_chrome_trace(file_, run_);
    for (const auto& file : files) file->commit();
  } catch (const UsageError& error) {  // what breaks on the way has another code than what is refused before the run
    throw RunError(error.what());
  }
  std::int64_t most = 0, sum = 0;
  for (const RankTrace& rank : run_.ranks) {
    most = std::max(most, rank.dropped);
    sum += rank.dropped;
  }
  if (sum > 0)
    print_error_line(
        fmt::format("{}: the trace has the first {} events of a rank and lacks {} later ones; --trace-events {} has "
                    "room for all",
                    run_.name, room_, sum, room_ + most));
}

void require_trace_writable(const Options& options) {
  if (!options.trace_file.empty()) FileBeside(options.trace_file);
  if (options.trace_folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.trace_folder, error);
  if (error)
    throw UsageError(fmt::format("--trace-per-rank {} can't be made a folder: {}; choose another path",
                                 options.trace_folder, error.message()));
  for (int rank = 0; rank < options.grid.size(); ++rank) FileBeside(rank_file(options.trace_folder, rank));
  const std::string left = rank_file(options.trace_folder, options.grid.size());
  if (std::filesystem::exists(left, error))
    throw UsageError(
        fmt::format("{} is of another run, with more ranks than this one's {}, and tools would read both as one; "
                    "remove it, or choose another folder for --trace-per-rank",
                    left, options.grid.size()));
}

}  // namespace muonwalk::sim
