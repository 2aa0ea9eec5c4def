#include "sim/analyser/trace_json.hpp"

#include <nlohmann/json.hpp>

namespace muonwalk::sim {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

const char* basis_name(TimeBasis basis) {
  switch (basis) {
    case TimeBasis::device:
      return "device";
    case TimeBasis::host:
      return "host";
    case TimeBasis::recorded:
      return "recorded";
    case TimeBasis::none:
      break;
  }
  return "none";
}

Json collective_json(const CollectiveLine& line) {
  return {{"collective", collective_text(line.collective)},
          {"type", text_or_null(line.type)},
          {"group", text_or_null(line.group)},
          {"group_size", line.group_size > 0 ? Json(line.group_size) : Json(nullptr)},
          {"calls", line.calls},
          {"time_ms", ms(line.time_ns)},
          {"message_bytes", or_null(line.message_bytes)},
          {"sent_bytes", or_null(line.sent_bytes)},
          {"algbw", or_null(line.algorithm_bandwidth())},
          {"busbw", or_null(line.bus_bandwidth())}};
}

Json optimizer_json(const OptimizerShare& share) {
  if (share.ranges == 0) return nullptr;
  return {{"ranges", share.ranges},
          {"time_ms", ms(share.time_ns)},
          {"of_ms", ms(share.of_ns)},
          {"share", share.share()},
          {"communication_ms", ms(share.communication_ns)}};
}

Json rank_json(const RankSummary& rank, bool one) {
  const auto time = [&](std::int64_t ns) { return rank.basis == TimeBasis::none ? Json(nullptr) : ms(ns); };
  Json collectives = Json::array();
  for (const CollectiveLine& line : rank.collectives) collectives.push_back(collective_json(line));
  Json waiting = nullptr;
  if (rank.waiting.matched_calls > 0)
    waiting = {{"calls", rank.waiting.matched_calls},
               {"not_matched", rank.waiting.unmatched_calls},
               {"transfer_ms", ms(rank.waiting.transfer_ns)},
               {"waiting_ms", ms(rank.waiting.waiting_ns)}};
  return {
      {"rank", one ? Json(rank.rank) : Json(nullptr)},
      {"label", rank.label},
      {"counted", basis_name(rank.basis)},
      {"span_ms", time(rank.span_ns)},
      {"computation_ms", time(rank.computation_ns)},
      {"communication_ms", time(rank.communication_ns)},
      {"communication_sum_ms", time(rank.communication_sum_ns)},
      {"overlap_ms", time(rank.overlap_ns)},
      {"overlap", or_null(rank.overlap_share())},
      {"copies_ms", time(rank.copies_ns)},
      {"idle_ms", time(rank.idle_ns)},
      {"kernels", rank.kernels},
      {"collective_calls", rank.collective_calls},
      {"optimizer", {{"device", optimizer_json(rank.optimizer_device)}, {"host", optimizer_json(rank.optimizer_host)}}},
      {"transfer_and_waiting", waiting},
      {"steps", rank.steps > 0 ? Json(rank.steps) : Json(nullptr)},
      {"steps_from", text_or_null(rank.steps_from)},
      {"collectives", collectives}};
}

Json summary_object(const Summary& summary) {
  Json ranks = Json::array(), matrices = Json::array(), counted = Json::object(), left_out = Json::object();
  for (const RankSummary& rank : summary.ranks) ranks.push_back(rank_json(rank, true));
  for (const TracedMatrix& matrix : summary.matrices)
    matrices.push_back({{"name", matrix.name}, {"rows", matrix.rows}, {"cols", matrix.cols}});
  for (int c = 0; c < kEventClasses; ++c)
    if (summary.counted.of_class[static_cast<std::size_t>(c)] > 0)
      counted[event_class_name(static_cast<EventClass>(c))] = summary.counted.of_class[static_cast<std::size_t>(c)];
  for (const auto& [why, events] : summary.counted.left_out) left_out[why] = events;
  return {{"files", summary.paths},
          {"dialect", dialect_name(summary.dialect)},
          {"backend", text_or_null(summary.backend)},
          {"title", text_or_null(summary.title)},
          {"world_size", summary.world_size > 0 ? Json(summary.world_size) : Json(nullptr)},
          {"matrices", matrices},
          {"ranks", ranks},
          {"all_ranks", rank_json(summary.together, false)},
          {"events", counted},
          {"left_out", left_out},
          {"notes", summary.notes}};
}

Json document(const char* format) { return {{"format", format}, {"version", 1}}; }

// Names in a trace are UTF-8, but paths need not be.
std::string printed(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string summary_json(const Summary& summary) {
  Json json = document("muonwalk-trace-summary");
  json.update(summary_object(summary));
  return printed(json);
}

std::string comparison_json(const TraceComparison& comparison) {
  Json json = document("muonwalk-trace-comparison");
  Json figures = Json::array();
  for (const ComparedFigure& figure : comparison.figures)
    figures.push_back({{"figure", figure.name},
                       {"unit", text_or_null(figure.unit)},
                       {"a", or_null(figure.a)},
                       {"b", or_null(figure.b)},
                       {"ratio", or_null(figure.ratio())}});
  json["figures"] = figures;
  json["warnings"] = comparison.warnings;
  json["a"] = summary_object(comparison.a);
  json["b"] = summary_object(comparison.b);
  return printed(json);
}

std::string published_json(const std::vector<PublishedClaim>& claims, const std::vector<std::string>& paths) {
  Json json = document("muonwalk-trace-published");
  json["source"] = "Distributed Muon: Field Notes & Reproducibility Artifacts, Jen Wei, 2025";
  json["files"] = paths;
  Json all = Json::array();
  for (const PublishedClaim& claim : claims) {
    Json figures = Json::array();
    for (const PublishedFigure& figure : claim.figures)
      figures.push_back({{"figure", figure.what},
                         {"unit", text_or_null(figure.unit)},
                         {"published", or_null(figure.published)},
                         {"recounted", or_null(figure.recounted)},
                         {"found_again", figure.published ? Json(figure.found_again()) : Json(nullptr)},
                         {"corrected", figure.corrected}});
    all.push_back({{"claim", claim.title},
                   {"counted", claim.counted},
                   {"corrected", claim.corrected},
                   {"differs", claim.differs},
                   {"evidence", claim.evidence},
                   {"figures", figures}});
  }
  json["claims"] = all;
  return printed(json);
}

}  // namespace muonwalk::sim
