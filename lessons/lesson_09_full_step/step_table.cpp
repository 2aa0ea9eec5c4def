#include "lessons/lesson_09_full_step/step_table.hpp"

#include <fmt/format.h>

#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kMostMatrices = 5;  // of which each phase is shown
constexpr int kNameWidth = 20;

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

}  // namespace

std::string step_table(const Plan& plan, const Layout& layout) {
  std::vector<std::vector<std::string>> rows = {{"        ", "phase", "before", "after", "sends"}};
  int matrices = 0, matrices_left_out = 0, buckets = 0, last = -1;
  for (const PlannedPhase& planned : phases_of(plan)) {
    const int parameter = planned.work.parameter;
    buckets += planned.work.phase == phases::reduce_gradients;
    if (buckets > 1) continue;
    const bool begins = parameter >= 0 && parameter != last;  // the journey of another matrix
    matrices += begins;
    last = parameter;
    if (parameter >= 0 && matrices > kMostMatrices) {
      matrices_left_out += begins;
      continue;
    }
    const auto [before, after] = before_and_after(planned, layout);
    const std::string name = begins ? visible_name(layout.meta(parameter).name, kNameWidth) : "";
    rows.push_back(
        {"  " + name, std::string(planned.work.phase), before, after, planned.calls ? bytes_text(planned.bytes) : ""});
  }
  rows.push_back({"  all", "", "", "", bytes_text(ledger_of(plan).total().bytes_sent)});
  std::vector<std::string> lines = {fmt::format("step 1, phase by phase, as rank {} takes it", plan.place.rank)};
  append(lines, table_lines(rows, 2));
  std::string not_shown;
  if (matrices_left_out > 0)
    not_shown = fmt::format("{} more {} of this bucket", number_text(matrices_left_out),
                            matrices_left_out == 1 ? "matrix" : "matrices");
  if (buckets > 1) not_shown += (not_shown.empty() ? "" : " and ") + count_text(buckets - 1, "more bucket");
  if (!not_shown.empty()) lines.push_back("  not shown, but in the sum: " + not_shown);
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace muonwalk::sim
