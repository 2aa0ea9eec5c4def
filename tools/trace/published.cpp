#include "tools/trace/published.hpp"

#include <fmt/format.h>

#include <cctype>

#include "tools/trace/summary.hpp"

namespace muonwalk::sim {
namespace {

// Letters in lower case, without underscores and hyphens: "all_gather", "allgather_", "all-gather" and "AllGather" are
// the same to it.
std::string plain(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (c != '_' && c != '-') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }
double ratio(double a, double b) { return b != 0 ? a / b : 0; }

std::string evidence_of(const std::string& who, const NameMatch& match) {
  std::string text = who + ":";
  for (int c = 0; c < kEventClasses; ++c) {
    const NameTally& tally = match.of_class[static_cast<std::size_t>(c)];
    if (tally.events == 0) continue;
    text += fmt::format("{} {} {} {:.2f} ms", text.back() == ':' ? "" : " +", tally.events,
                        event_class_name(static_cast<EventClass>(c)), ms(tally.total_ns));
  }
  return text + fmt::format("{} {} events, {:.2f} ms", match.all.events > 0 ? " =" : "", match.all.events,
                            ms(match.all.total_ns));
}

// The sum over all events of one class and one name.
double sum_of(const TraceFile& file, EventClass event_class, const std::string& name) {
  std::int64_t sum = 0;
  for (const TraceEvent& event : file.events)
    if (event.event_class == event_class && file.name_of(event) == name) sum += event.duration_ns;
  return ms(sum);
}

// The sum over all events of one name, of any class.
double sum_of_name(const TraceFile& file, const std::string& name) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < file.names.size(); ++i)
    if (file.names[i] == name) sum += file.tallies[i].total_ns;
  return ms(sum);
}

// The time in which kernels compute inside the device ranges of a name.
double computing_in(const TraceFile& file, const std::string& name) {
  std::vector<Interval> ranges;
  for (const TraceEvent& event : file.events)
    if (event.event_class == EventClass::device_range && file.name_of(event) == name)
      ranges.push_back({event.begin_ns, event.end_ns()});
  return ms(intersected(IntervalSet(std::move(ranges)), rank_times(file, 0).computation).length());
}

// A trace, what an honest count makes of it, and what adding up the events that hold a collective's name does.
struct Counted {
  Counted(const TraceFile& trace, const std::string& collective)
      : file(trace), rank(summarize({trace}).together), named(match_names(trace, collective)) {}
  const TraceFile& file;
  RankSummary rank;
  NameMatch named;

  double named_ms() const { return ms(named.all.total_ns); }
  double named_events() const { return static_cast<double>(named.all.events); }
  double communication() const { return ms(rank.communication_sum_ns); }
  double calls() const { return static_cast<double>(rank.collective_calls); }
  double span() const { return ms(rank.span_ns); }
  double optimizer() const { return ms(rank.optimizer_device.time_ns); }
  double overlap_percent() const { return 100 * rank.overlap_share().value_or(0); }
  double steps() const { return rank.steps > 0 ? static_cast<double>(rank.steps) : 1; }
};

std::string types_of(const Counted& counted) {
  std::string types;
  for (const CollectiveLine& line : counted.rank.collectives)
    if (!line.type.empty() && types.find(line.type) == std::string::npos)
      types += (types.empty() ? "" : ", ") + line.type;
  return types.empty() ? "unknown" : types;
}

PublishedClaim communication_claim(const Counted& muon, const Counted& adamw) {
  return {"Communication: Muon's against AdamW's",
          "every event whose name holds all_gather (Muon) or all_reduce (AdamW), in any spelling and of any class",
          "communication kernels, each once",
          fmt::format("A call is in the trace as an operator, a host range, a device range and a kernel, so its time "
                      "on the device was added twice; and the ratio compares {} with {}, gathers without a reduction "
                      "of gradients with a reduction, on this rank alone.",
                      types_of(muon), types_of(adamw)),
          {{"Muon, time", "ms", 139.53, muon.named_ms(), 2, muon.communication(), 2},
           {"Muon, calls", "", 40.0, muon.named_events(), 0, muon.calls(), 0},
           {"AdamW, time", "ms", 245.84, adamw.named_ms(), 2, adamw.communication(), 2},
           {"AdamW, calls", "", 110.0, adamw.named_events(), 0, adamw.calls(), 0},
           {"Muon / AdamW", "", 0.57, ratio(muon.named_ms(), adamw.named_ms()), 2,
            ratio(muon.communication(), adamw.communication()), 3}},
          {evidence_of("Muon", muon.named), evidence_of("AdamW", adamw.named)}};
}

PublishedClaim per_step_claim(const Counted& muon, const Counted& adamw) {
  return {"The same, \"per step\"",
          "the sums above, in a table headed \"per step\"",
          "communication kernels, divided by the steps that the file holds",
          fmt::format("The table's figures are the sum of {:.0f} steps, and not one step.", muon.steps()),
          {{"Muon, a step", "ms", 139.53, muon.named_ms(), 2, muon.communication() / muon.steps(), 2},
           {"AdamW, a step", "ms", 245.84, adamw.named_ms(), 2, adamw.communication() / adamw.steps(), 2}},
          {}};
}

PublishedClaim optimizer_claim(const Counted& muon, const Counted& adamw) {
  const auto host = [](const Counted& run, const char* range) {
    return sum_of(run.file, EventClass::host_range, range);
  };
  const double muon_step = host(muon, "Muon_Step"), muon_all = host(muon, "Muon_Full_Training_Step");
  const double adamw_step = host(adamw, "AdamW_Step"), adamw_all = host(adamw, "AdamW_Full_Training_Step");
  const auto gathered = [](const Counted& run) {
    const std::int64_t inside = run.rank.optimizer_device.communication_ns;
    return inside > 0 ? fmt::format("{:.2f} ms of communication", ms(inside)) : std::string("none");
  };
  return {
      "The optimizer's overhead",
      "the host range Muon_Step over the host range Muon_Full_Training_Step",
      "the device ranges Optimizer.step# over the span of the device",
      fmt::format("The host only starts kernels and goes on, and the device works on them later; Muon's range on "
                  "the device holds {}, AdamW's {}.",
                  gathered(muon), gathered(adamw)),
      {{"Muon, optimizer", "ms", 4.29, muon_step, 2, muon.optimizer(), 2},
       {"Muon, all", "ms", 388.86, muon_all, 2, muon.span(), 2},
       {"Muon, share", "%", 1.1, 100 * ratio(muon_step, muon_all), 1, 100 * ratio(muon.optimizer(), muon.span()), 1},
       {"AdamW, optimizer", "ms", {}, adamw_step, 2, adamw.optimizer(), 2},
       {"AdamW, all", "ms", {}, adamw_all, 2, adamw.span(), 2},
       {"AdamW, share",
        "%",
        {},
        100 * ratio(adamw_step, adamw_all),
        1,
        100 * ratio(adamw.optimizer(), adamw.span()),
        1}},
      {}};
}

PublishedClaim forward_backward_claim(const Counted& muon, const Counted& adamw) {
  const std::string name = "FWD_BWD";
  return {"Forward and backward",
          "half of the sum of all ranges FWD_BWD, those of the host and those of the device",
          "the union of the kernels that compute inside the device ranges FWD_BWD",
          fmt::format("Half of the sum is the mean of two different times: on the host ({:.2f} and {:.2f} ms), the "
                      "range ends with a wait for all that the device still has to do, and on the device ({:.2f} and "
                      "{:.2f} ms), it holds gaps between the kernels.",
                      sum_of(muon.file, EventClass::host_range, name), sum_of(adamw.file, EventClass::host_range, name),
                      sum_of(muon.file, EventClass::device_range, name),
                      sum_of(adamw.file, EventClass::device_range, name)),
          {{"Muon", "ms", 271.0, sum_of_name(muon.file, name) / 2, 0, computing_in(muon.file, name), 2},
           {"AdamW", "ms", 281.0, sum_of_name(adamw.file, name) / 2, 0, computing_in(adamw.file, name), 2}},
          {}};
}

PublishedClaim async_claim(const Counted& muon, const Counted& adamw, const Counted& muon_async,
                           const Counted& adamw_async) {
  return {"With async_op=True",
          "the same match of names, over that of the synchronous run",
          "communication kernels, each once; the span of the device; the communication that runs during computation",
          fmt::format("A call that shares the device with computation takes longer itself while the whole ends sooner, "
                      "so the span is what tells: Muon's went from {:.2f} to {:.2f} ms with {:.1f} % of the "
                      "communication overlapped, AdamW's from {:.2f} to {:.2f} ms with {:.1f} %.",
                      muon.span(), muon_async.span(), muon_async.overlap_percent(), adamw.span(), adamw_async.span(),
                      adamw_async.overlap_percent()),
          {{"Muon, communication", "ms", 294.09, muon_async.named_ms(), 2, muon_async.communication(), 2},
           {"AdamW, communication", "ms", 377.44, adamw_async.named_ms(), 2, adamw_async.communication(), 2},
           {"Muon, async / sync", "", 2.1, ratio(muon_async.named_ms(), muon.named_ms()), 1,
            ratio(muon_async.communication(), muon.communication()), 2},
           {"AdamW, async / sync", "", 1.5, ratio(adamw_async.named_ms(), adamw.named_ms()), 1,
            ratio(adamw_async.communication(), adamw.communication()), 2},
           {"Muon, span", "ms", {}, {}, 2, muon_async.span(), 2},
           {"AdamW, span", "ms", {}, {}, 2, adamw_async.span(), 2},
           {"Muon, span, async / sync", "", {}, {}, 2, ratio(muon_async.span(), muon.span()), 2},
           {"AdamW, span, async / sync", "", {}, {}, 2, ratio(adamw_async.span(), adamw.span()), 2},
           {"Muon, overlapped", "%", {}, {}, 1, muon_async.overlap_percent(), 1},
           {"AdamW, overlapped", "%", {}, {}, 1, adamw_async.overlap_percent(), 1}},
          {evidence_of("Muon", muon_async.named), evidence_of("AdamW", adamw_async.named)}};
}

double rounded(double value, int decimals) { return std::stod(fmt::format("{:.{}f}", value, decimals)); }

}  // namespace

NameMatch match_names(const TraceFile& file, const std::string& text, std::optional<int> rank) {
  NameMatch match;
  std::vector<bool> matches;  // [name]
  for (std::size_t name = 0; name < file.names.size(); ++name) {
    matches.push_back(plain(file.names[name]).find(plain(text)) != std::string::npos);
    if (rank || !matches.back()) continue;
    match.all.events += file.tallies[name].events;
    match.all.total_ns += file.tallies[name].total_ns;
  }
  for (const TraceEvent& event : file.events) {
    if (!matches[static_cast<std::size_t>(event.name)] || (rank && event.rank != *rank)) continue;
    if (rank) match.all.add(event);
    match.of_class[static_cast<std::size_t>(event.event_class)].add(event);
  }
  return match;
}

bool PublishedFigure::found_again() const {
  return !published || (recounted && rounded(*recounted, decimals) == rounded(*published, decimals));
}

FoundAgain found_again(const std::vector<PublishedClaim>& claims) {
  FoundAgain again;
  for (const PublishedClaim& claim : claims)
    for (const PublishedFigure& figure : claim.figures) {
      if (!figure.published) continue;
      ++again.published;
      if (figure.found_again()) ++again.found;
    }
  return again;
}

std::vector<PublishedClaim> published_claims(const std::vector<TraceFile>& traces) {
  const Counted muon(traces[0], "all_gather"), adamw(traces[1], "all_reduce");
  std::vector<PublishedClaim> claims = {communication_claim(muon, adamw), per_step_claim(muon, adamw),
                                        optimizer_claim(muon, adamw), forward_backward_claim(muon, adamw)};
  if (traces.size() > 2)
    claims.push_back(async_claim(muon, adamw, {traces[2], "all_gather"}, {traces[3], "all_reduce"}));
  return claims;
}

}  // namespace muonwalk::sim
