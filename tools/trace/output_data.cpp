#include <nlohmann/json.hpp>

#include "tools/trace/output.hpp"

namespace muonwalk::sim {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
Json unless_empty(const T& value) {
  return value == T() ? Json(nullptr) : Json(value);
}

Json json_ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

const char* basis_name(TimeBasis basis) {
  constexpr std::array<const char*, 4> kNames = {"device", "host", "recorded", "none"};
  return kNames[static_cast<std::size_t>(basis)];
}

Json collective_json(const CollectiveLine& line) {
  Json json = {{"collective", collective_text(line.collective)},
               {"type", unless_empty(line.type)},
               {"group", unless_empty(line.group)},
               {"group_size", unless_empty(line.group_size)}};
  for (const CollectiveFigure& figure : kCollectiveFigures) {
    const auto value = figure.value(line);
    const bool whole = value && (*figure.unit == '\0' || figure.unit == std::string("bytes"));
    json[figure.key] = whole ? Json(static_cast<std::int64_t>(*value)) : or_null(value);
  }
  return json;
}

Json optimizer_json(const OptimizerShare& share) {
  if (share.ranges == 0) return nullptr;
  return {{"ranges", share.ranges},
          {"time_ms", json_ms(share.time_ns)},
          {"of_ms", json_ms(share.of_ns)},
          {"share", share.share()},
          {"communication_ms", json_ms(share.communication_ns)}};
}

Json rank_json(const RankSummary& rank, bool one) {
  Json json = {
      {"rank", one ? Json(rank.rank) : Json(nullptr)}, {"label", rank.label}, {"counted", basis_name(rank.basis)}};
  for (const RankTime& time : kRankTimes) {
    json[time.key] = rank.basis == TimeBasis::none ? Json(nullptr) : json_ms(rank.*time.ns);
    if (time.ns == &RankSummary::overlap_ns) json["overlap"] = or_null(rank.overlap_share());
  }
  json["kernels"] = rank.kernels;
  json["collective_calls"] = rank.collective_calls;
  json["optimizer"] = {{"device", optimizer_json(rank.optimizer_device)},
                       {"host", optimizer_json(rank.optimizer_host)}};
  json["transfer_and_waiting"] = nullptr;
  if (rank.waiting.matched_calls > 0)
    json["transfer_and_waiting"] = {{"calls", rank.waiting.matched_calls},
                                    {"not_matched", rank.waiting.unmatched_calls},
                                    {"transfer_ms", json_ms(rank.waiting.transfer_ns)},
                                    {"waiting_ms", json_ms(rank.waiting.waiting_ns)}};
  json["steps"] = unless_empty(rank.steps);
  json["steps_from"] = unless_empty(rank.steps_from);
  json["collectives"] = Json::array();
  for (const CollectiveLine& line : rank.collectives) json["collectives"].push_back(collective_json(line));
  return json;
}

}  // namespace

std::string summary_json(const Summary& summary) {
  Json ranks = Json::array(), counted = Json::object();
  for (const RankSummary& rank : summary.ranks) ranks.push_back(rank_json(rank, true));
  for (int c = 0; c < kEventClasses; ++c)
    if (const std::int64_t events = summary.counted.of(static_cast<EventClass>(c)); events > 0)
      counted[event_class_name(static_cast<EventClass>(c))] = events;
  const Json json = {{"format", "muonwalk-trace-summary"},
                     {"version", 1},
                     {"files", summary.paths},
                     {"dialect", dialect_name(summary.dialect)},
                     {"backend", unless_empty(summary.backend)},
                     {"title", unless_empty(summary.title)},
                     {"world_size", unless_empty(summary.world_size)},
                     {"ranks", ranks},
                     {"all_ranks", rank_json(summary.together, false)},
                     {"events", counted},
                     {"left_out", summary.counted.left_out},
                     {"notes", summary.notes}};
  // Names in a trace are UTF-8, but paths need not be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muonwalk::sim
