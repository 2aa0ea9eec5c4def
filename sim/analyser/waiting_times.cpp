#include "sim/analyser/waiting_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace muonwalk::sim {
namespace {

// One call on one rank.
struct RankCall {
  std::size_t file = 0;
  std::size_t rank = 0;
  std::int64_t duration_ns = 0;
  std::int64_t message_bytes = -1;
};

// The collective, the ranks of the group and the group's name.
using CallKey = std::tuple<Collective, std::string, std::string>;

std::string text_or_empty(const TraceFile& file, std::int32_t name) {
  return name < 0 ? "" : file.names[static_cast<std::size_t>(name)];
}

}  // namespace

std::vector<std::vector<WaitingTimes>> waiting_times(const std::vector<TraceFile>& files,
                                                     std::vector<std::string>& notes) {
  std::vector<std::vector<WaitingTimes>> times;
  // [key][n] → the n-th call of each rank.
  std::map<CallKey, std::vector<std::vector<RankCall>>> calls;
  for (std::size_t f = 0; f < files.size(); ++f) {
    const TraceFile& file = files[f];
    times.emplace_back(file.ranks.size());
    std::vector<EventClass> classes;
    for (std::size_t r = 0; r < file.ranks.size(); ++r)
      classes.push_back(communication_class(rank_times(file, static_cast<int>(r)).basis));
    std::map<std::pair<CallKey, std::size_t>, std::size_t> made;  // (key, rank) → calls so far
    for (const TraceEvent& event : file.events) {
      const std::size_t rank = static_cast<std::size_t>(file.rank_of(event));
      if (event.event_class != classes[rank]) continue;
      const CollectiveCall* call = file.call_of(event);
      // A message from one rank to another is no call of all: its receiver waits by design.
      const bool comparable = call != nullptr && call->group >= 0 && call->collective != Collective::send &&
                              call->collective != Collective::recv && call->collective != Collective::send_recv;
      if (!comparable) {
        ++times[f][rank].unmatched_calls;
        continue;
      }
      const CallKey key{call->collective, text_or_empty(file, call->group), text_or_empty(file, call->group_name)};
      const std::size_t n = made[{key, rank}]++;
      auto& of_key = calls[key];
      if (of_key.size() <= n) of_key.resize(n + 1);
      of_key[n].push_back({f, rank, event.duration_ns, call->message_bytes});
    }
  }
  for (const auto& [key, of_key] : calls) {
    const std::size_t ranks = of_key.front().size();
    std::int64_t uneven = 0, unequal = 0;
    for (const std::vector<RankCall>& same : of_key) {
      if (same.size() < ranks) ++uneven;
      std::int64_t shortest = same.front().duration_ns;
      for (const RankCall& call : same) {
        shortest = std::min(shortest, call.duration_ns);
        if (call.message_bytes != same.front().message_bytes) ++unequal;
      }
      for (const RankCall& call : same) {
        WaitingTimes& of_rank = times[call.file][call.rank];
        if (same.size() < 2) {
          ++of_rank.unmatched_calls;
          continue;
        }
        ++of_rank.matched_calls;
        of_rank.transfer_ns += shortest;
        of_rank.waiting_ns += call.duration_ns - shortest;
      }
    }
    const std::string what = fmt::format("{} in group {}", collective_text(std::get<0>(key)), std::get<1>(key));
    if (uneven > 0)
      notes.push_back(fmt::format(
          "Not all ranks were traced in the same calls of {}: {} calls are missing on some, so the n-th call of one "
          "rank may be set beside another call of the next.",
          what, uneven));
    if (unequal > 0)
      notes.push_back(fmt::format("Ranks disagree on the size of {} calls of {}: these traces may not be of one run.",
                                  unequal, what));
  }
  return times;
}

}  // namespace muonwalk::sim
