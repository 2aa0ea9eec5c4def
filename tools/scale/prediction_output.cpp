#include "tools/scale/prediction_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {
namespace {

std::string time_text(double seconds) {
  return seconds >= 1 && seconds < 1000 ? fixed_text(seconds, 3, "s") : seconds_text(seconds, 4);
}

std::string strategy_text(const FoundLayout& found) {
  return found.strategy ? fmt::format("({})", found.strategy->letter) : "AdamW";
}

// Adds a sentence.
void say(std::vector<std::string>& lines, const std::string& sentence) { append(lines, paragraph(sentence, 0, 2)); }

// The strategies that the letters stand for.
std::string legend(const std::vector<FoundLayout>& found) {
  std::map<char, const char*> names;
  for (const FoundLayout& each : found)
    if (each.strategy) names.emplace(each.strategy->letter, each.strategy->name);
  std::string text;
  for (const auto& [letter, name] : names) text += fmt::format("{}({}) {}", text.empty() ? "" : ", ", letter, name);
  return text;
}

Table layout_table(const LayoutSearch& search, const FoundLayouts& found) {
  Table table({{"   dp × tp × pp"},
               {"optimizer"},
               {"micro-batches", Side::right},
               {"recompute", Side::right},
               {"a step", Side::right},
               {"tokens/s/GPU", Digits{0}},
               {"memory", gibibytes_text}});
  int number = 0;
  for (const FoundLayout& each : found.best) {
    const TrainingLayout& layout = each.layout;
    std::string grid = fmt::format("{}  {} × {} × {}", ++number, layout.dp, layout.tp, layout.pp);
    if (layout.ep > 1) grid += fmt::format(", ep {}", layout.ep);
    table.row({grid, strategy_text(each), fmt::format("{} of {}", number_text(layout.accumulation), layout.micro_batch),
               recomputation_name(layout.recomputation),
               time_text(each.prediction.step_seconds()) + (any_extrapolated(each.prediction.seconds) ? " *" : ""),
               each.prediction.tokens_per_second / search.gpus, total(each.prediction.bytes)});
  }
  return table;
}

// Terms from the largest on, of those that are more than nothing.
std::vector<const Term*> by_amount(const std::vector<Term>& terms) {
  std::vector<const Term*> sorted;
  for (const Term& term : terms)
    if (term.amount > 0) sorted.push_back(&term);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Term* a, const Term* b) { return a->amount > b->amount; });
  return sorted;
}

// The terms that make up a hundredth of the whole or more, and what the others come to.
std::string where_it_goes(const std::vector<Term>& terms, std::string (*amount)(double)) {
  std::string text;
  const double all = total(terms);
  double rest = 0;
  for (const Term* term : by_amount(terms)) {
    if (term->amount < all / 100) {
      rest += term->amount;
      continue;
    }
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", term->kind->name, amount(term->amount),
                        percent_text(term->amount / all));
  }
  return rest > 0 ? text + fmt::format(", all else {}", amount(rest)) : text;
}

// What was read outside of where it was measured, and which terms depend on it.
void append_extrapolations(std::vector<std::string>& lines, const std::vector<Term>& terms) {
  std::map<std::string, std::string> terms_of;
  for (const Term& term : terms)
    for (const TermInput& input : term.inputs)
      if (input.nearest_at) {
        std::string& list =
            terms_of[fmt::format("{} = {}, the nearest that was measured is {}", input.name,
                                 amount_text(input.value, input.unit), amount_text(*input.nearest_at, input.unit))];
        list += (list.empty() ? "" : ", ") + std::string(term.kind->name);
      }
  for (const auto& [input, list] : terms_of)
    say(lines, fmt::format("* outside of what was measured: {}; it is in: {}", input, list));
}

// ── As JSON

using Json = nlohmann::ordered_json;

Json terms_json(const std::vector<Term>& terms, const char* amount, double unit = 1) {
  Json list = Json::array();
  for (const Term& term : terms) {
    Json inputs = Json::array();
    for (const TermInput& input : term.inputs) {
      Json each = {{"name", input.name}, {"value", input.value}, {"unit", input.unit}, {"source", input.source}};
      if (input.nearest_at) each["nearest_measured_at"] = *input.nearest_at;
      inputs.push_back(each);
    }
    list.push_back({{"name", term.kind->name},
                    {amount, unit * term.amount},
                    {"formula", term.formula},
                    {"extrapolated", term.extrapolated()},
                    {"inputs", inputs}});
  }
  return list;
}

Json layout_json(const TrainingLayout& layout) {
  return {{"nodes", layout.nodes},
          {"dp", layout.dp},
          {"tp", layout.tp},
          {"pp", layout.pp},
          {"ep", layout.ep},
          {"zero", layout.zero},
          {"micro_batch_sequences", layout.micro_batch},
          {"accumulation", layout.accumulation},
          {"recomputation", recomputation_name(layout.recomputation)},
          {"chunks", layout.chunks}};
}

Json muon_json(const StepPrediction& prediction) {
  if (!prediction.muon) return nullptr;
  const MuonShare& share = *prediction.muon;
  return {{"steps", share.steps},
          {"side", share.side},
          {"batch_tokens", share.batch_tokens},
          {"repeats", share.repeats},
          {"share_of_model_flops", share.all()},
          {"seconds", prediction.muon_seconds},
          {"seconds_least", prediction.muon_band.first},
          {"seconds_most", prediction.muon_band.second}};
}

Json prediction_json(const StepPrediction& prediction, int gpus) {
  return {{"step_seconds", prediction.step_seconds()},
          {"muon", muon_json(prediction)},
          {"tokens_per_second_per_gpu", prediction.tokens_per_second / gpus},
          {"memory_bytes", total(prediction.bytes)},
          {"fits", prediction.fits},
          {"seconds", terms_json(prediction.seconds, "seconds")},
          {"memory", terms_json(prediction.bytes, "bytes")}};
}

std::string batch_of(const ModelShape& model, const TrainingLayout& layout) {
  return batch_text(model, std::int64_t{layout.dp} * layout.micro_batch * layout.accumulation);
}

std::string document(const Json& all) { return all.dump(1, ' ', true) + "\n"; }

}  // namespace

std::vector<std::string> layouts_text(const LayoutSearch& search, const FoundLayouts& found) {
  const FoundLayout& best = found.best.front();
  std::vector<std::string> lines;
  say(lines, fmt::format("{} on {} of {} with {}, {}", search.model.name,
                         search.gpus == 1 ? "1 GPU" : number_text(search.gpus) + " GPUs",
                         visible_name(search.cluster.name), search.software.name, batch_of(search.model, best.layout)));
  lines.push_back(fmt::format("{} layouts, {} of them fit into {} of memory", number_text(found.tried),
                              number_text(found.fit), gibibytes_text(search.cluster.accelerator.memory_bytes)));
  lines.push_back("");
  append(lines, layout_table(search, found).lines());
  if (const std::string names = legend(found.best); !names.empty()) say(lines, names);
  lines.push_back("");
  say(lines, "time: " + where_it_goes(best.prediction.seconds, time_text));
  say(lines, "memory: " + where_it_goes(best.prediction.bytes, gibibytes_text));
  if (best.prediction.muon) say(lines, muon_share_text(best.prediction));
  if (found.best.size() > 1) say(lines, "the runner-up is " + why_slower(best, found.best[1]));
  append_extrapolations(lines, best.prediction.seconds);
  return lines;
}

std::vector<std::string> explanation_text(const StepQuestion& question, const StepPrediction& prediction) {
  std::vector<std::string> lines;
  say(lines, fmt::format("{} on {} of {} with {}, {}: {}", question.model.name,
                         count_text(question.layout.ranks(), "GPU"), visible_name(question.cluster.name),
                         question.software.name, batch_of(question.model, question.layout), text(question.layout)));
  append(lines, {"", "time of a step"});
  append(lines, explain(prediction.seconds, "s"));
  if (prediction.muon) say(lines, muon_share_text(prediction));
  append(lines, {"", "memory of the fullest stage, at its peak"});
  append(lines, explain(prediction.bytes, "B"));
  lines.push_back("");
  lines.push_back(
      fmt::format("{:.0f} tokens per second and GPU; {:.2f} GiB of {:.1f}: it {}",
                  prediction.tokens_per_second / question.layout.ranks(), total(prediction.bytes) / kGibibyte,
                  question.cluster.accelerator.memory_bytes / kGibibyte, prediction.fits ? "fits" : "does not fit"));
  return lines;
}

std::string layouts_json(const LayoutSearch& search, const FoundLayouts& found) {
  Json layouts = Json::array();
  for (const FoundLayout& each : found.best) {
    Json json = {{"layout", layout_json(each.layout)},
                 {"strategy", each.strategy ? Json(std::string(1, each.strategy->letter)) : Json(nullptr)}};
    json.update(prediction_json(each.prediction, search.gpus));
    layouts.push_back(json);
  }
  return document({{"format", "muonwalk-scale-layouts"},
                   {"model", search.model.name},
                   {"cluster", search.cluster.name},
                   {"software", search.software.name},
                   {"gpus", search.gpus},
                   {"batch", batch_of(search.model, found.best.front().layout)},
                   {"tried", found.tried},
                   {"fit", found.fit},
                   {"layouts", layouts}});
}

std::string explanation_json(const StepQuestion& question, const StepPrediction& prediction) {
  Json json = {{"format", "muonwalk-scale-explanation"},
               {"model", question.model.name},
               {"cluster", question.cluster.name},
               {"software", question.software.name},
               {"batch", batch_of(question.model, question.layout)},
               {"layout", layout_json(question.layout)}};
  json.update(prediction_json(prediction, question.layout.ranks()));
  return document(json);
}

// ── A run that a file describes

namespace {

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
  say(lines,
      fmt::format("T·m/B, what Newton–Schulz adds at most where nobody repeats it and all products are as fast: {}",
                  signed_percent(prediction.jordan)));
  say(lines,
      fmt::format("A product of {0} × {0} takes as long as its launch; of Muon's {1} matrices, {2} have a product "
                  "that waits for one",
                  std::llround(prediction.least_side), number_text(std::llround(prediction.matrices)),
                  number_text(std::llround(prediction.waiting_matrices))));
  append(lines, {"", "a step with Muon"});
  append(lines, explain(muon.seconds, "s"));
  append(lines, {"", "memory with Muon"});
  append(lines, explain(muon.bytes, "B"));
  if (!run.assumed.empty()) append(lines, {"", "taken, because the file does not say it"});
  for (const std::string& each : run.assumed) say(lines, "- " + each);
  return lines;
}

std::string run_json(const TrainingRun& run, const RunAnswer& prediction, const std::pair<RunBand, RunBand>& band) {
  const auto side = [&run](const RunStep& step) {
    return Json{{"step_ms", kMilliseconds * step.step()},
                {"optimizer_ms", kMilliseconds * step.optimizer},
                {"memory_gb", step.memory() / kGigabyte},
                {"fits", fits_in(run, step)},
                {"terms", terms_json(step.seconds, "ms", kMilliseconds)}};
  };
  const auto end = [](const RunBand& each) {
    return Json{{"extra_ms", kMilliseconds * each.extra}, {"extra_percent", 100 * each.share}};
  };
  Json muon = side(prediction.muon), bytes = Json::object();
  muon["newton_schulz_ms"] = kMilliseconds * prediction.muon.newton_schulz;
  for (const auto& [collective, sent] : prediction.sent) bytes[collective] = sent;
  muon["bytes"] = bytes;
  return document({{"format", "muonwalk-answer 1"},
                   {"run", heading(run)},
                   {"adamw", side(prediction.adamw)},
                   {"muon", muon},
                   {"extra_ms", kMilliseconds * prediction.extra()},
                   {"extra_percent", 100 * prediction.extra_share()},
                   {"low", end(band.first)},
                   {"high", end(band.second)},
                   {"t_m_over_b_percent", 100 * prediction.jordan},
                   {"launch_bound_below", prediction.least_side},
                   {"assumed", run.assumed}});
}

}  // namespace muonwalk::sim
