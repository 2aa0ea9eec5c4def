#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "sim/cost_model/found_layouts_output.hpp"
#include "sim/cost_model/training_memory.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds >= 1000) return fmt::format("{} s", number_text(std::llround(seconds)));
  return fmt::format("{:.3f} s", seconds);
}

std::string gibibytes_text(double bytes) { return fmt::format("{:.1f} GiB", bytes / kGibibyte); }

std::string strategy_text(const FoundLayout& found) {
  return found.strategy ? fmt::format("({})", found.strategy->letter) : "AdamW";
}

// The strategies that the letters stand for.
std::string legend(const std::vector<FoundLayout>& found) {
  std::map<char, const char*> names;
  for (const FoundLayout& each : found)
    if (each.strategy) names.emplace(each.strategy->letter, each.strategy->name);
  std::string text;
  for (const auto& [letter, name] : names) text += fmt::format("{}({}) {}", text.empty() ? "" : ", ", letter, name);
  return text;
}

std::vector<std::string> layout_row(const FoundLayout& found, int gpus, int number) {
  const TrainingLayout& layout = found.layout;
  const StepPrediction& prediction = found.prediction;
  std::string grid = fmt::format("{} × {} × {}", layout.dp, layout.tp, layout.pp);
  if (layout.ep > 1) grid += fmt::format(", ep {}", layout.ep);
  return {fmt::format("{}  {}", number, grid),
          strategy_text(found),
          fmt::format("{} of {}", number_text(layout.accumulation), layout.micro_batch),
          recomputation_name(layout.recomputation),
          time_text(prediction.step_seconds()) + (any_extrapolated(prediction.seconds) ? " *" : ""),
          fmt::format("{:.0f}", prediction.tokens_per_second / gpus),
          gibibytes_text(total(prediction.bytes))};
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
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", term->name, amount(term->amount),
                        percent_text(term->amount / all));
  }
  return rest > 0 ? text + fmt::format(", all else {}", amount(rest)) : text;
}

void append_text(std::vector<std::string>& lines, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
}

// What was read outside of where it was measured, and which terms depend on it.
void append_extrapolations(std::vector<std::string>& lines, const std::vector<Term>& terms) {
  std::map<std::string, std::string> terms_of;
  for (const Term& term : terms)
    for (const TermInput& input : term.inputs)
      if (input.extrapolated) {
        std::string& list =
            terms_of[fmt::format("{} = {}, the nearest that was measured is {}", input.name,
                                 amount_text(input.value, input.unit), amount_text(input.nearest_at, input.unit))];
        list += (list.empty() ? "" : ", ") + std::string(term.name);
      }
  for (const auto& [input, list] : terms_of)
    append(lines, paragraph(fmt::format("* outside of what was measured: {}; it is in: {}", input, list), 0, 2));
}

}  // namespace

std::vector<std::string> layouts_text(const LayoutSearch& search, const FoundLayouts& found) {
  const FoundLayout& best = found.best.front();
  std::vector<std::string> lines;
  const int sequences = best.layout.dp * best.layout.micro_batch * best.layout.accumulation;
  append(lines, paragraph(fmt::format("{} on {} of {}, {} of {} tokens per step, {}", search.model.name,
                                      search.gpus == 1 ? "1 GPU" : number_text(search.gpus) + " GPUs",
                                      visible_name(search.cluster.name),
                                      sequences == 1 ? "1 sequence" : number_text(sequences) + " sequences",
                                      number_text(search.model.tokens), search.software.name),
                          0, 2));
  lines.push_back(fmt::format("{} layouts, {} of them fit into {} of memory", number_text(found.tried),
                              number_text(found.fit), gibibytes_text(search.cluster.accelerator.memory_bytes)));
  lines.push_back("");
  std::vector<std::vector<std::string>> rows = {
      {"   dp × tp × pp", "optimizer", "micro-batches", "recompute", "a step", "tokens/s/GPU", "memory"}};
  int number = 0;
  for (const FoundLayout& each : found.best) rows.push_back(layout_row(each, search.gpus, ++number));
  append(lines, table_lines(rows, 2));
  if (const std::string names = legend(found.best); !names.empty()) append(lines, paragraph(names, 0, 2));
  lines.push_back("");
  append(lines, paragraph("time: " + where_it_goes(best.prediction.seconds, time_text), 0, 2));
  append(lines, paragraph("memory: " + where_it_goes(best.prediction.bytes, gibibytes_text), 0, 2));
  if (found.best.size() > 1) append(lines, paragraph("the runner-up is " + why_slower(best, found.best[1]), 0, 2));
  append_extrapolations(lines, best.prediction.seconds);
  return lines;
}

std::vector<std::string> explanation_text(const StepQuestion& question, const StepPrediction& prediction) {
  std::vector<std::string> lines;
  append(lines, paragraph(fmt::format("{} on {} of {} with {}: {}", question.model.name,
                                      count_text(question.layout.ranks(), "GPU"), visible_name(question.cluster.name),
                                      question.software.name, text(question.layout)),
                          0, 2));
  lines.push_back("");
  lines.push_back("time of a step");
  append_text(lines, explain(prediction.seconds, "s"));
  lines.push_back("");
  lines.push_back("memory of the fullest stage, at its peak");
  append_text(lines, explain(prediction.bytes, "B"));
  lines.push_back("");
  lines.push_back(
      fmt::format("{:.0f} tokens per second and GPU; {:.2f} GiB of {:.1f}: it {}",
                  prediction.tokens_per_second / question.layout.ranks(), total(prediction.bytes) / kGibibyte,
                  question.cluster.accelerator.memory_bytes / kGibibyte, prediction.fits ? "fits" : "does not fit"));
  return lines;
}

}  // namespace muonwalk::sim
