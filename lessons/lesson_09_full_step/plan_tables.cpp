#include "lessons/lesson_09_full_step/plan_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kNameWidth = 20;
constexpr int kHoldersWidth = 40;  // what 100 columns leave of a line

// A phase, and the bytes of the calls in it.
struct PlannedPhase {
  Work work;
  std::int64_t bytes = 0;
  bool calls = false;
  Index in = 0, out = 0;  // elements of its call
};

std::vector<PlannedPhase> phases_of(const Plan& plan) {
  std::vector<PlannedPhase> all;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation)) all.push_back({*work});
    const Call* call = std::get_if<Call>(&operation);
    if (call == nullptr || all.empty()) continue;
    all.back().calls = true;
    all.back().in = call->elements_in;
    all.back().out = call->elements_out;
    all.back().bytes += ledger_of({plan.grid, plan.place, {operation}}).total().bytes_sent;
  }
  return all;
}

std::string elements(Index count) { return number_text(count) + (count == 1 ? " element" : " elements"); }
std::string matrix(Shape shape) { return shape_text(shape.rows, shape.cols); }

// What the rank has before and after a phase.
std::pair<std::string, std::string> before_and_after(const PlannedPhase& planned, const Layout& layout) {
  const Work& work = planned.work;
  if (work.parameter < 0)
    return planned.calls ? std::make_pair(elements(planned.in), elements(planned.out))
                         : std::make_pair(elements(work.shape.size()), elements(work.shape.size()));
  const DistMeta& meta = layout.meta(work.parameter);
  const std::string full = matrix(meta.full_shape), slice = matrix(meta.shape);
  if (work.phase == phases::tp_gather) return {slice, full};
  if (work.phase == phases::orthogonalize) return {full, full};
  if (work.phase == phases::tp_shard) return {full, slice};
  const std::string owned = elements(work.shape.size());
  return {work.phase == phases::dp_shard ? slice : owned, owned};
}

// How many ranks of a pipeline stage need each parameter of the first buffer whole, because they own an element of it:
// its owners in dp, times tp. "w0 2 ranks, w1 2, w3 8", in at most `columns` characters; "…" for what doesn't fit.
std::string holders_text(const Layout& layout, int columns) {
  const std::string more = ", …";
  std::string text;
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const std::string ranks = std::to_string(layout.owners(meta).size() * static_cast<std::size_t>(layout.grid.tp()));
    const std::string words =
        text.empty() ? visible_name(meta.name) + " " + ranks + " ranks" : ", " + visible_name(meta.name) + " " + ranks;
    const bool last = &meta == &layout.buffers[0].parameters.back();
    if (text_width(text + words + (last ? "" : more)) > columns) return text.empty() ? "…" : text + more;
    text += words;
  }
  return text;
}

// Who does each matrix of the first stage that has any; the buffers of other groups are not Muon's.
std::string holders_of(const Layout& stage) {
  const Layout hidden = stage.of_group(kHiddenMatrices);
  return hidden.buffers.empty() ? "" : holders_text(hidden, kHoldersWidth);
}

}  // namespace

std::string step_table(const Plan& plan, const Layout& layout, int most_matrices) {
  Table table({{"matrix  "}, {"phase"}, {"before", Side::right}, {"after", Side::right}, {"sends", bytes_text}}, 2);
  const std::map<std::string, std::string> names = layout.short_names(kNameWidth);
  const std::vector<PlannedPhase> all = phases_of(plan);
  std::vector<int> matrices;  // of the first bucket
  int buckets = 0, last = -1;
  for (const PlannedPhase& planned : all) {
    buckets += planned.work.phase == phases::reduce_gradients;
    const int parameter = planned.work.parameter;
    if (buckets <= 1 && parameter >= 0 && (matrices.empty() || matrices.back() != parameter))
      matrices.push_back(parameter);
  }
  std::stable_sort(matrices.begin(), matrices.end(),
                   [&](int a, int b) { return layout.meta(a).full_shape.size() > layout.meta(b).full_shape.size(); });
  const std::size_t shown = std::min(matrices.size(), static_cast<std::size_t>(most_matrices));
  const auto is_shown = [&](int parameter) {
    const auto end = matrices.begin() + static_cast<std::ptrdiff_t>(shown);
    return parameter < 0 || std::find(matrices.begin(), end, parameter) != end;
  };
  int bucket = 0;
  for (const PlannedPhase& planned : all) {
    const int parameter = planned.work.parameter;
    bucket += planned.work.phase == phases::reduce_gradients;
    if (bucket > 1 || !is_shown(parameter)) continue;
    const bool begins = parameter >= 0 && parameter != last;  // the journey of another matrix
    last = parameter;
    const auto [before, after] = before_and_after(planned, layout);
    const std::string name = begins ? names.at(layout.meta(parameter).name) : "";
    table.row({name, std::string(planned.work.phase), before, after, planned.calls ? Cell(planned.bytes) : Cell("")});
  }
  table.row({"all", "", "", "", ledger_of(plan).total().bytes_sent});
  std::string not_shown;
  if (const std::size_t left_out = matrices.size() - shown; left_out > 0)
    not_shown = fmt::format("{} smaller {} of this bucket", number_text(static_cast<Index>(left_out)),
                            left_out == 1 ? "matrix" : "matrices");
  if (buckets > 1) not_shown += (not_shown.empty() ? "" : " and ") + count_text(buckets - 1, "more bucket");
  return fmt::format("step 1, phase by phase, as rank {} takes it\n{}{}", plan.place.rank, table.text(),
                     not_shown.empty() ? "" : "\n  not shown, but in the sum: " + not_shown);
}

std::string work_table(const Plan& serial, const std::vector<WorkOfLayout>& layouts) {
  const double once = flops(serial, phases::orthogonalize);
  if (once == 0) return "work    there is no Newton–Schulz in a step";
  const double unit = once < 1e9 ? 1e6 : 1e9;
  Table table({{"work    Newton–Schulz in a step"},
               {unit == 1e6 ? "MFLOP" : "GFLOP", Digits{2}},
               {"× the work", Digits{2}},
               {" ranks that do it"}});
  const auto add = [&](const std::string& name, double work, const std::string& ranks) {
    table.row({"        " + name, work / unit, work / once, ranks.empty() ? "" : " " + ranks});
  };
  add("one process", once, "");
  for (const WorkOfLayout& each : layouts)
    add(each.name, flops(each.kinds, phases::orthogonalize), holders_of(each.stages[0]));
  const Grid& grid = layouts.front().stages.front().grid;
  const int ranks = grid.dp() * grid.tp();
  add("upper bound", once * ranks, ranks == 1 ? "one rank does all" : fmt::format("all {} do everything", ranks));
  return table.text();
}

}  // namespace muonwalk::sim
