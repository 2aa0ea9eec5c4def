#include "tools/scale/run_output.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilliseconds = 1e3;

std::string ms(double seconds) { return fixed_text(kMilliseconds * seconds, 3, "ms"); }
std::string gigabytes(double bytes) { return fixed_text(bytes / kGigabyte, 3, "GB"); }
std::string signed_percent(double share) { return fmt::format("{:+.2f} %", 100 * share); }

bool fits_in(const TrainingRun& run, const RunStep& step) {
  return step.memory() <= run.cluster.accelerator.memory_bytes;
}

std::string heading(const TrainingRun& run) {
  const TrainingLayout& layout = run.layout;
  const char* sharding[] = {"ddp", "zero1", "fsdp2", "hsdp"};
  return fmt::format("{} on {} × {}, {}, {}: {} tokens per step, {} of {}", run.name, layout.ranks(),
                     run.cluster.accelerator.name,
                     fmt::format("dp {} × tp {} × pp {}{}", layout.dp, layout.tp, layout.pp,
                                 layout.ep > 1 ? fmt::format(", ep {}", layout.ep) : ""),
                     sharding[static_cast<int>(run.sharding)], number_text(std::llround(run.tokens)),
                     layout.accumulation == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", layout.accumulation),
                     number_text(std::llround(run.tokens / layout.dp / layout.accumulation)));
}

}  // namespace

std::vector<std::string> run_text(const TrainingRun& run, const RunAnswer& prediction,
                                  const std::pair<RunBand, RunBand>& band) {
  const RunStep &adamw = prediction.adamw, &muon = prediction.muon;
  std::vector<std::string> lines = paragraph(heading(run), 0, 2);
  lines.push_back("");
  Table table({{""}, {"AdamW", Side::right}, {"Muon", Side::right}, {"Muon adds", Side::right}, {"", Side::right}});
  table.row(
      {"a step", ms(adamw.step()), ms(muon.step()), ms(prediction.extra()), signed_percent(prediction.extra_share())});
  table.row({"  in nine of ten runs, from", "", "", ms(band.first.extra), signed_percent(band.first.share)});
  table.row({"  to", "", "", ms(band.second.extra), signed_percent(band.second.share)});
  table.row(
      {"the optimizer's own time", ms(adamw.optimizer), ms(muon.optimizer), ms(muon.optimizer - adamw.optimizer)});
  table.row({"  of that, Newton–Schulz", "", ms(muon.newton_schulz)});
  table.row({"memory of a rank", gigabytes(adamw.memory()), gigabytes(muon.memory()),
             gigabytes(muon.memory() - adamw.memory()),
             fits_in(run, muon) ? (fits_in(run, adamw) ? "both fit" : "AdamW does not fit") : "does not fit"});
  for (const auto& [collective, bytes] : prediction.sent)
    table.row({"sent by a rank: " + collective, "", gigabytes(bytes)});
  append(lines, table.lines());
  append(lines, paragraph(fmt::format("T·m/B, what Newton–Schulz adds at most where nobody repeats it and all products "
                                      "are as fast: {}",
                                      signed_percent(prediction.jordan)),
                          0, 2));
  append(lines,
         paragraph(fmt::format("A product of {} × {} takes as long as its launch; of Muon's {} matrices, {} have a "
                               "product that waits for one",
                               std::llround(prediction.least_side), std::llround(prediction.least_side),
                               number_text(std::llround(prediction.matrices)),
                               number_text(std::llround(prediction.waiting_matrices))),
                   0, 2));
  append(lines, {"", "a step with Muon"});
  append(lines, explain(muon.seconds, "s"));
  append(lines, {"", "memory with Muon"});
  append(lines, explain(muon.bytes, "B"));
  if (!run.assumed.empty()) append(lines, {"", "taken, because the file does not say it"});
  for (const std::string& each : run.assumed) append(lines, paragraph("- " + each, 0, 2));
  return lines;
}

std::string run_json(const TrainingRun& run, const RunAnswer& prediction, const std::pair<RunBand, RunBand>& band) {
  const auto side = [&run](const RunStep& step) {
    Json json = {{"step_ms", kMilliseconds * step.step()},
                 {"optimizer_ms", kMilliseconds * step.optimizer},
                 {"memory_gb", step.memory() / kGigabyte},
                 {"fits", fits_in(run, step)}};
    Json terms = Json::array();
    for (const Term& term : step.seconds)
      terms.push_back({{"name", term.kind->name}, {"ms", kMilliseconds * term.amount}, {"formula", term.formula}});
    json["terms"] = terms;
    return json;
  };
  const auto end = [](const RunBand& each) {
    return Json{{"extra_ms", kMilliseconds * each.extra}, {"extra_percent", 100 * each.share}};
  };
  Json muon = side(prediction.muon), bytes = Json::object();
  muon["newton_schulz_ms"] = kMilliseconds * prediction.muon.newton_schulz;
  for (const auto& [collective, sent] : prediction.sent) bytes[collective] = sent;
  muon["bytes"] = bytes;
  const Json all = {{"format", "muonwalk-answer 1"},
                    {"run", heading(run)},
                    {"adamw", side(prediction.adamw)},
                    {"muon", muon},
                    {"extra_ms", kMilliseconds * prediction.extra()},
                    {"extra_percent", 100 * prediction.extra_share()},
                    {"low", end(band.first)},
                    {"high", end(band.second)},
                    {"t_m_over_b_percent", 100 * prediction.jordan},
                    {"launch_bound_below", prediction.least_side},
                    {"assumed", run.assumed}};
  return all.dump(1, ' ', true) + "\n";
}

}  // namespace muonwalk::sim
