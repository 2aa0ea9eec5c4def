#include "tools/trace/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/trace/raw_trace.hpp"
#include "tools/trace/summary.hpp"

namespace muonwalk::sim {
namespace {

// "rank 3 (dp 1, tp 1)" → 3.
std::optional<int> rank_in_name(const std::string& name) {
  const std::string begin = "rank ";
  if (name.rfind(begin, 0) != 0) return std::nullopt;
  int rank = 0;
  const auto [read_to, error] = std::from_chars(name.data() + begin.size(), name.data() + name.size(), rank);
  if (error != std::errc() || rank < 0) return std::nullopt;
  return rank;
}

// What is made of a rank later: its summary, its intervals, and its notes.
constexpr std::int64_t kBytesPerRank = 4096;

// Completes a TraceFile, now that it is known what the whole file says of itself.
class TraceBuilder {
 public:
  TraceBuilder(const std::string& path, TraceInput& input)
      : raw_(read_raw_trace(path, input)), file_(std::move(raw_.file)) {}

  TraceFile build() {
    if (file_.dialect == TraceDialect::muonwalk)
      find_ranks();
    else
      find_rank();
    const auto uncounted = [this](TraceEvent& event) { return !finish(event); };
    file_.events.erase(std::remove_if(file_.events.begin(), file_.events.end(), uncounted), file_.events.end());
    std::sort(file_.events.begin(), file_.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
      return std::tie(a.rank, a.begin_ns, b.duration_ns, a.event_class, a.name, a.call) <
             std::tie(b.rank, b.begin_ns, a.duration_ns, b.event_class, b.name, b.call);
    });
    for (const auto& [category, events] : raw_.dropped)
      file_.left_out[why_left_out(file_.dialect, raw_.text(category))] += events;
    note_shortages();
    file_.tallies.resize(raw_.texts.size());
    for (file_.names.resize(raw_.texts.size()); !raw_.numbers.empty();) {
      auto node = raw_.numbers.extract(raw_.numbers.begin());  // without a copy of the text
      file_.names[static_cast<std::size_t>(node.mapped())] = std::move(node.key());
    }
    refuse_empty();
    return std::move(file_);
  }

 private:
  // Of a file with one rank.
  void find_rank() {
    const auto number = [](std::int64_t said) {
      return static_cast<int>(std::clamp<std::int64_t>(said, 0, std::numeric_limits<int>::max()));
    };
    TraceRank rank;
    rank.rank = number(raw_.rank);
    rank.label = fmt::format("rank {}", rank.rank);
    rank.world_size = number(raw_.world_size);
    if (raw_.rank < 0)
      file_.notes.push_back(
          fmt::format("{} has no distributedInfo with a rank: it is taken for rank 0.", in_quotes(file_.path)));
    else if (rank.world_size > 0 && rank.rank >= rank.world_size)
      file_.notes.push_back(
          fmt::format("{} says that it is of rank {} of {} ranks, which are 0 to {}: one of the two is wrong.",
                      in_quotes(file_.path), rank.rank, rank.world_size, rank.world_size - 1));
    file_.ranks.push_back(rank);
  }

  // Of a lesson's file, by the names of its processes.
  void find_ranks() {
    std::map<int, std::pair<std::string, std::int32_t>> by_rank;
    for (const auto& [process, name] : raw_.process_names) {
      const auto rank = rank_in_name(name);
      if (!rank) continue;
      if (!by_rank.emplace(*rank, std::make_pair(name, process)).second)
        throw UsageError(fmt::format(
            "{} has two processes that are named rank {}; a trace has one process per rank, so record it again",
            in_quotes(file_.path), *rank));
    }
    for (const auto& [number, named] : by_rank) {
      raw_.budget.take(kBytesPerRank);
      raw_.budget.take_text(named.first);
      rank_of_process_[named.second] = static_cast<int>(file_.ranks.size());
      file_.ranks.push_back({number, named.first, static_cast<int>(by_rank.size())});
    }
  }

  // Finds the class and the rank of an event; false where it counts in no figure.
  bool finish(TraceEvent& event) {
    const std::string& category = raw_.text(event.category);
    event.event_class = classify(file_.dialect, category, raw_.text(event.name));
    if (event.event_class == EventClass::other) {
      ++file_.left_out[why_left_out(file_.dialect, category)];
      return false;
    }
    const auto found = rank_of_process_.find(event.rank);
    if (file_.dialect == TraceDialect::muonwalk && found == rank_of_process_.end()) {
      ++file_.left_out["of a process whose name does not say its rank"];
      return false;
    }
    event.rank = file_.dialect == TraceDialect::muonwalk ? found->second : 0;
    return true;
  }

  void note_shortages() {
    if (raw_.without_room > 0)
      file_.notes.push_back(
          fmt::format("{} lacks the last events of its run, {} in all: the recording had no room for them, so every "
                      "figure may be too small; record again with a larger --trace-events.",
                      in_quotes(file_.path), raw_.without_room));
    if (raw_.failed)
      file_.notes.push_back(fmt::format("{} is of a run whose check failed: what it did may not be what it should.",
                                        in_quotes(file_.path)));
  }

  void refuse_empty() const {
    if (!file_.events.empty()) return;
    std::int64_t left_out = 0;
    std::string most = "";
    std::int64_t of_most = 0;
    for (const auto& [why, events] : file_.left_out) {
      left_out += events;
      if (events > of_most) of_most = events, most = why;
    }
    throw UsageError(fmt::format(
        "{} holds no kernel, no range and no operator that could be counted{}; name a file that "
        "torch.profiler or a lesson's --trace wrote",
        in_quotes(file_.path),
        left_out == 0
            ? std::string(": it has no events at all")
            : fmt::format(": {} left out, {} of them because of: {}",
                          left_out == 1 ? "one event is" : fmt::format("{} events are", left_out), of_most, most)));
  }

  RawTrace raw_;
  TraceFile file_;
  std::map<std::int32_t, int> rank_of_process_;
};

Interval clock_of(const TraceFile& file) {
  return extent(file.events, [](const TraceEvent&) { return true; });
}

void require_same_run(const std::vector<TraceFile>& files) {
  std::map<int, std::string> path_of_rank;
  const TraceFile& first = files.front();
  const auto apart = [&](const TraceFile& file, const std::string& why) {
    return UsageError(fmt::format("{} and {} don't belong together: {}; name files of different ranks of one run",
                                  in_quotes(first.path), in_quotes(file.path), why));
  };
  for (const TraceFile& file : files) {
    if (file.dialect != first.dialect)
      throw apart(file, fmt::format("one is a {} trace and the other a {} trace", dialect_name(first.dialect),
                                    dialect_name(file.dialect)));
    for (const TraceRank& rank : file.ranks) {
      const auto [at, added] = path_of_rank.emplace(rank.rank, file.path);
      if (!added)
        throw UsageError(fmt::format("{} and {} are both of rank {}; name files of different ranks of one run",
                                     in_quotes(at->second), in_quotes(file.path), rank.rank));
      if (rank.world_size > 0 && rank.rank >= rank.world_size)
        throw UsageError(
            fmt::format("{} says that it is of rank {} of {} ranks, so it can't stand beside others; name "
                        "files of different ranks of one run",
                        in_quotes(file.path), rank.rank, rank.world_size));
      if (rank.world_size != first.ranks.front().world_size && file.dialect == TraceDialect::pytorch)
        throw apart(file,
                    fmt::format("the runs have {} and {} ranks", first.ranks.front().world_size, rank.world_size));
    }
    if (file.backend != first.backend)
      throw apart(file, fmt::format("one talks over {} and the other over {}",
                                    first.backend.empty() ? "nothing" : visible_name(first.backend),
                                    file.backend.empty() ? "nothing" : visible_name(file.backend)));
    const auto [begin, end] = clock_of(file);
    const auto [first_begin, first_end] = clock_of(first);
    if (end < first_begin || begin > first_end) throw apart(file, "by their clocks, one ended before the other began");
  }
}

// The files that a path stands for: itself, or those in a folder.
std::vector<std::string> trace_paths(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string().substr(1);  // one that is all ending is none
    if (entry.is_regular_file(error) && (ends_with(name, ".json") || ends_with(name, ".json.gz")))
      paths.push_back(entry.path().string());
  }
  if (paths.empty())
    throw UsageError(
        fmt::format("{} can't be read as traces: it is a folder without a file that ends in .json or "
                    ".json.gz; name a file, or a folder with a file per rank",
                    in_quotes(path)));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TraceFile read_trace(const std::string& path) {
  TraceInput input(path);
  return TraceBuilder(path, input).build();
}

TraceFile read_trace_text(const std::string& name, std::string text) {
  TraceInput input(name, std::move(text));
  return TraceBuilder(name, input).build();
}

std::vector<TraceFile> read_traces(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) append(all, trace_paths(path));
  std::vector<TraceFile> files;
  for (const std::string& path : all) files.push_back(read_trace(path));
  if (files.size() > 1) require_same_run(files);
  return files;
}

}  // namespace muonwalk::sim
