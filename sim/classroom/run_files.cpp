#include "sim/classroom/run_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/ranks/rank_groups.hpp"
#include "sim/replay/trace_writers.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"

namespace muonwalk::sim {
namespace {

// "rank 3 (dp 1, tp 1)": all coordinates that tell ranks apart.
std::string trace_label(const Grid& grid, int rank) {
  std::string coordinates;
  const Place place = grid.place(rank);
  for (const auto& [name, coordinate] :
       {std::pair("dp", place.dp), std::pair("tp", place.tp), std::pair("pp", place.pp)})
    if (grid.size(name) > 1) coordinates += fmt::format("{}{} {}", coordinates.empty() ? "" : ", ", name, coordinate);
  return coordinates.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, coordinates);
}

}  // namespace

Tracer::Tracer(const LessonInfo& info, const Options& options)
    : clock_(options.clock()), file_(options.trace_file), room_(options.trace_events) {
  run_.name = info.name;
  run_.title = info.title;
  run_.grid = options.grid;
  run_.precision = precision_name(options.precision);
  run_.backend = transport_name(options.talks_over());
  const RunGroups groups(options);
  for (int rank = 0; rank < options.grid.size(); ++rank) {
    run_.ranks.emplace_back();
    run_.ranks.back().label = trace_label(options.grid, rank);
    run_.ranks.back().groups = groups.of_rank(rank);
  }
}

void Tracer::step(const StepReports& reports) {
  for_each<Traced>(reports, [&](int rank, const Traced& traced) {
    RankTrace& of_rank = run_.ranks[static_cast<std::size_t>(rank)];
    of_rank.names = traced.batch.names;
    of_rank.dropped = traced.batch.dropped;
    of_rank.full_since_ns = traced.batch.full_since_ns;
    of_rank.ledger = traced.ledger;
    of_rank.spans.insert(of_rank.spans.end(), traced.batch.spans.begin(), traced.batch.spans.end());
  });
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

void Tracer::write(bool ok, FilesBeside& files) {
  if (file_.empty()) return;
  run_.ok = ok;
  keep_what_was_asked_for();
  files.push_back(write_chrome_trace(file_, run_));
  std::int64_t most = 0, sum = 0;
  for (const RankTrace& rank : run_.ranks) {
    most = std::max(most, rank.dropped);
    sum += rank.dropped;
  }
  if (sum > 0)
    print_error_line(fmt::format(
        "{}: the trace has the first {} events of a rank and lacks {} later ones; --trace-events {} has room for all",
        run_.name, room_, sum, room_ + most));
}

RunFiles::RunFiles(const LessonInfo& info, const Options& options) {
  if (!options.record_file.empty()) recording = std::make_unique<RecordingBuilder>(info, options);
  if (options.tracing()) tracer = std::make_unique<Tracer>(info, options);
}

void RunFiles::write(const Options& options, bool ok, FilesBeside& files) {
  if (recording != nullptr) {
    recording->finish(ok);
    files.push_back(text_file_beside(options.record_file, recording_json(recording->recording())));
  }
  if (tracer != nullptr) tracer->write(ok, files);
}

void require_writable(const Options& options) {
  if (!options.record_file.empty()) FileBeside(options.record_file);
  if (!options.trace_file.empty()) FileBeside(options.trace_file);
}

void require_no_files(const Options& options, const char* option) {
  for (const auto& [file_option, path] :
       {std::pair("--record", &options.record_file), {"--trace", &options.trace_file}})
    if (!path->empty())
      throw UsageError(fmt::format(
          "{} writes a file of the lesson's run, and {} does something else in its place; leave one of them out.",
          file_option, option));
}

}  // namespace muonwalk::sim
