// What a lesson compares and counts: its checks, its costs, its timings.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

#include "sim/classroom/comparison.hpp"
#include "sim/classroom/cost_table.hpp"
#include "sim/classroom/lesson_state.hpp"
#include "sim/ranks/rank_groups.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

std::vector<std::vector<NamedMatrix>> LessonCore::run_collect(const Held& held) {
  start();
  std::vector<std::vector<NamedMatrix>> collected;
  guarded([&] {
    StepReports reports = state_->world->hand_over("hand over results", [&](Rank& rank) {
      MemoryMeter uncounted;  // copies for the check do not count as the lesson's memory
      const MeterScope scope(uncounted);
      for (NamedMatrix& matrix : held(rank)) rank.add(std::move(matrix));
    });
    for (auto& of_rank : reports) {
      collected.emplace_back();
      for (Report& report : of_rank)
        if (auto* matrix = std::get_if<NamedMatrix>(&report)) collected.back().push_back(std::move(*matrix));
    }
  });
  return collected;
}

// Compares what every rank holds with what it should hold.
Comparison LessonCore::compare_ranks(const std::string& what, const Held& held, const Expected& expected) {
  auto collected = run_collect(held);
  Comparison comparison;
  if (!is_parent()) return comparison;
  const auto in_words =
      [&](std::vector<NamedMatrix> matrices) {  // what has no name of its own is called as the check is
        for (NamedMatrix& matrix : matrices)
          if (matrix.name.empty()) matrix.name = what;
        return matrices;
      };
  guarded([&] {
    for (std::size_t rank = 0; rank < collected.size(); ++rank)
      compare(rank_label(options_.grid, static_cast<int>(rank)), in_words(std::move(collected[rank])),
              in_words(expected(options_.rank_info(static_cast<int>(rank)))), comparison);
  });
  if (comparison.elements == 0 && comparison.first.empty())
    comparison.first = {"there was nothing to compare: neither the ranks nor the reference hold an element"};
  return comparison;
}

// What a comparison has found, with the first difference.
void LessonCore::print_comparison(const std::string& what, const Comparison& comparison) {
  if (state_->checks++ == 0 && options_.verbose > 0 && state_->steps > 0) print();
  const Paint& paint = state_->paint;
  const bool one = options_.grid.size() == 1, equal = comparison.equal();
  const std::string who = one ? "1 rank" : fmt::format("{} ranks", options_.grid.size());
  const std::vector<std::string> result =
      aligned_lines(fmt::format("check   {}: {} {} the reference", what, who,
                                equal ? (one ? "equals" : "equal") : (one ? "differs from" : "differ from")),
                    equal ? fmt::format("{} {}, bit for bit   {}", number_text(comparison.elements),
                                        comparison.elements == 1 ? "element" : "elements", paint.good("✔"))
                          : fmt::format("{} of {} elements differ   {}", number_text(comparison.different),
                                        number_text(comparison.elements), paint.bad("✘")));
  for (const std::string& line : result) print(line);
  for (const std::string& line : comparison.first) print("        " + line);
}

void LessonCore::run_check(const std::string& what, const Held& held, const Expected& expected) {
  const Comparison comparison = compare_ranks(what, held, expected);
  if (!is_parent()) return;
  if (!comparison.equal()) ++state_->failed_checks;
  print_comparison(what, comparison);
}

void LessonCore::run_quiet_check(const std::string& what, const Held& held, const Expected& expected) {
  const Comparison comparison = compare_ranks(what, held, expected);
  if (!is_parent()) return;
  Comparison& all = state_->quiet_comparison;
  ++state_->quiet_checks;
  all.elements += comparison.elements;
  all.different += comparison.different;
  if (comparison.equal()) return;
  ++state_->failed_checks;
  ++state_->failed_quiet_checks;
  if (all.equal()) print_comparison(what, comparison);  // at once: what follows may not come to its end
  if (all.equal()) all.first = comparison.first;
}

void LessonCore::sum_up_checks(const std::string& what) {
  start();
  if (!is_parent()) return;
  const Comparison& all = state_->quiet_comparison;
  if (state_->quiet_checks == 0) {
    ++state_->failed_checks;
    print_comparison(what, {0, 0, {"there was nothing to sum up: no check was made"}});
  } else if (all.equal()) {
    print_comparison(what, all);
  } else {
    for (const std::string& line :
         aligned_lines(fmt::format("check   {}: {} of {} differ from the reference", what, state_->failed_quiet_checks,
                                   state_->quiet_checks),
                       fmt::format("{} of {} elements differ   {}", number_text(all.different),
                                   number_text(all.elements), state_->paint.bad("✘"))))
      print(line);
  }
  state_->quiet_checks = state_->failed_quiet_checks = 0;
  state_->quiet_comparison = {};
}

void LessonCore::check_numbers(const std::string& what, const NamedNumbers& read, const NamedNumbers& expected) {
  start();
  if (!is_parent()) return;
  const std::string difference = first_difference(read, expected);
  const bool equal = difference.empty() && !expected.empty();
  if (!equal) ++state_->failed_checks;
  if (state_->checks++ == 0 && options_.verbose > 0 && state_->steps > 0) print();
  const Paint& paint = state_->paint;
  for (const std::string& line :
       aligned_lines(fmt::format("check   {}", what),
                     equal ? fmt::format("{} numbers, all equal   {}",
                                         number_text(static_cast<long long>(expected.size())), paint.good("✔"))
                           : fmt::format("not equal   {}", paint.bad("✘"))))
    print(line);
  if (!equal)
    for (const std::string& line :
         wrap_text("first difference: " + (expected.empty() ? "there is nothing to compare with" : difference), 2,
                   output_columns() - 8))
      print("        " + line);
}

void LessonCore::cost(const std::function<Prediction(const RankInfo&)>& predict) {
  start();
  std::vector<RankCost> costs;
  guarded([&] {
    const auto reports = state_->world->hand_over("count", [&](Rank& rank) {
      RankGroups& groups = rank.groups();
      Counted counted;
      RankCost& cost = counted.cost;
      cost.counted = groups.ledger;
      cost.counted_peak = groups.memory.peak();
      const KernelTraffic kernel = options_.world == WorldKind::processes ? groups.kernel_traffic() : KernelTraffic();
      cost.kernel_known = kernel.known;
      cost.kernel_sent = kernel.bytes_sent;
      cost.header_sent = groups.header_bytes_sent();
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      counted.kilobytes = usage.ru_maxrss;
      rank.add(std::move(counted));
    });
    for_each<Counted>(reports, [&](int rank, const Counted& counted) {
      costs.push_back(counted.cost);
      const Prediction prediction = predict(options_.rank_info(rank));
      costs.back().predicted = prediction.ledger;
      costs.back().predicted_peak = prediction.peak_elements;
      state_->peak_kilobytes = std::max(state_->peak_kilobytes, counted.kilobytes);
    });
  });
  if (!is_parent()) return;
  const CostTable table =
      cost_table(costs, options_.transport == TransportKind::nccl ? "NCCL's bytes pass its sockets by" : "");
  if (options_.verbose > 0 || !table.equal)
    for (std::size_t i = 0; i < table.lines.size(); ++i) print((i == 0 ? "cost  " : "      ") + table.lines[i]);
  if (!table.equal) ++state_->failed_checks;
}

bool LessonCore::all_equal() const {
  if (!is_parent()) throw std::logic_error("a rank asked how the checks went, which only the parent knows");
  return state_->failed_checks == 0;
}

void LessonCore::timings() {
  if (!is_parent() || options_.verbose == 0) return;
  print_error_line(fmt::format("{}: measured on this machine, seconds per rank", info_.name));
  print_error_line(fmt::format("  {:<32}{:>10}{:>10}", "phase", "mean", "most"));
  for (const std::string& phase : state_->phases) {
    double sum = 0, most = 0;
    for (const auto& [rank, seconds] : state_->seconds[phase]) {
      sum += seconds;
      most = std::max(most, seconds);
    }
    const std::string space(static_cast<std::size_t>(std::max(1, 32 - text_width(phase))), ' ');
    print_error_line(fmt::format("  {}{:>10.3f}{:>10.3f}", phase + space, sum / options_.grid.size(), most));
  }
  // Ranks that are threads share the memory of one process, in a notebook with its kernel.
  if (state_->peak_kilobytes > 0 && options_.world == WorldKind::processes)
    print_error_line(fmt::format("  {:<32}{:>16.1f} MiB", "peak memory of a rank",
                                 static_cast<double>(state_->peak_kilobytes) / 1024));
}

std::vector<NamedMatrix> named(const Matrix& matrix) { return {NamedMatrix{"", matrix, 0, 0}}; }
std::vector<NamedMatrix> named(const Flat& values) {
  return {NamedMatrix{"", Matrix(1, static_cast<Index>(values.size()), values), 0, 0}};
}
std::vector<NamedMatrix> named(std::vector<NamedMatrix> matrices) { return matrices; }

}  // namespace muonwalk::sim
