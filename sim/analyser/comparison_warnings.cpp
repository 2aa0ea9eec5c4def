#include "sim/analyser/comparison_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/analyser/figure_table.hpp"

namespace muonwalk::sim {
namespace {

using Texts = std::set<std::string>;

std::string list(const Texts& texts) { return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")); }

// Something of every collective, as a set; what a trace does not say is in it as "unknown".
Texts of_collectives(const Summary& run, const std::function<std::string(const CollectiveLine&)>& what) {
  Texts texts;
  for (const CollectiveLine& line : run.together.collectives) {
    if (line.collective == Collective::barrier) continue;
    const std::string text = what(line);
    texts.insert(text.empty() ? "unknown" : text);
  }
  return texts;
}

bool has(const Summary& run, std::initializer_list<Collective> any) {
  return std::any_of(run.together.collectives.begin(), run.together.collectives.end(), [&](const CollectiveLine& line) {
    return std::find(any.begin(), any.end(), line.collective) != any.end();
  });
}

std::string type_of(const CollectiveLine& line) { return line.type; }

// The ranks of a group are all that counts; where they are not said, its name and size.
std::string group_of(const CollectiveLine& line) {
  if (line.group.empty() || line.group.front() == '[' || line.group_size == 0) return line.group;
  return fmt::format("{} of {} ranks", line.group, line.group_size);
}

void warn_of_sets(const char* what, const Texts& a, const Texts& b, std::vector<std::string>& warnings) {
  if (a != b)
    warnings.push_back(fmt::format("Different {}: A has {}, B has {}.", what, list(a), list(b)));
  else if (a.count("unknown") > 0)
    warnings.push_back(fmt::format("Neither trace says the {} of all its collectives: they may differ.", what));
}

// A sum that holds a collective which the other run does not need, or leaves to a part that was not recorded.
void warn_of_missing(const Summary& a, const Summary& b, std::vector<std::string>& warnings) {
  const auto warn = [&](const char* what, const char* names, bool in_a, bool in_b) {
    if (in_a == in_b) return;
    warnings.push_back(fmt::format("{} has no {} ({}), {} has: the sums of communication are of different things.",
                                   in_a ? "B" : "A", what, names, in_a ? "A" : "B"));
  };
  warn("reduction of gradients", "all_reduce, reduce_scatter or reduce",
       has(a, {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}),
       has(b, {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}));
  warn("gather of parameters", "all_gather or broadcast", has(a, {Collective::all_gather, Collective::broadcast}),
       has(b, {Collective::all_gather, Collective::broadcast}));
  warn("exchange", "all_to_all", has(a, {Collective::all_to_all}), has(b, {Collective::all_to_all}));
}

Texts matrices_of(const Summary& run) {
  Texts texts;
  for (const TracedMatrix& matrix : run.matrices)
    texts.insert(fmt::format("{} {} × {}", matrix.name, matrix.rows, matrix.cols));
  return texts;
}

void warn_of_matrices(const Summary& a, const Summary& b, std::vector<std::string>& warnings) {
  if (a.matrices.empty() || b.matrices.empty()) {
    warnings.push_back(fmt::format("{} not say which matrices {} trained: whether the work was the same can't be told.",
                                   a.matrices.empty() && b.matrices.empty() ? "The traces do"
                                   : a.matrices.empty()                     ? "A does"
                                                                            : "B does",
                                   a.matrices.empty() && b.matrices.empty() ? "they" : "it"));
  } else {
    warn_of_sets("matrices", matrices_of(a), matrices_of(b), warnings);
  }
}

void warn_of_overlap(const char* name, const RankSummary& run, std::vector<std::string>& warnings) {
  if (run.overlap_ns > 0)
    warnings.push_back(fmt::format(
        "{} overlaps {} of its communication ({} of {} ms) with computation: that part of the sum costs no "
        "time to the end.",
        name, percent_text(run.overlap_share().value_or(0)), ms_text(run.overlap_ns), ms_text(run.communication_ns)));
  if (run.communication_sum_ns > run.communication_ns)
    warnings.push_back(
        fmt::format("{} runs collectives at the same time: their times add up to {} ms, of {} ms that passed.", name,
                    ms_text(run.communication_sum_ns), ms_text(run.communication_ns)));
}

void warn_of_host(const char* name, const Summary& run, std::vector<std::string>& warnings) {
  const auto count = [&](EventClass c) { return run.counted.of_class[static_cast<std::size_t>(c)]; };
  const std::int64_t beside =
      count(EventClass::host_range) + count(EventClass::host_operator) + count(EventClass::device_range);
  if (run.together.basis == TimeBasis::device && beside > 0)
    warnings.push_back(fmt::format(
        "{} has {} ranges and operators beside its {} kernels: on the host they are the time to start work, on "
        "the device the time of the kernels once more; they are in no sum here.",
        name, beside, run.together.kernels + run.together.collective_calls));
}

void warn_of_optimizer(const RankSummary& a, const RankSummary& b, std::vector<std::string>& warnings) {
  const OptimizerShare &in_a = a.optimizer_device, &in_b = b.optimizer_device;
  if ((in_a.ranges == 0) != (in_b.ranges == 0))
    warnings.push_back(fmt::format("The optimizer's range is known of {} only.", in_a.ranges == 0 ? "B" : "A"));
  else if (in_a.ranges > 0 && (in_a.communication_ns == 0) != (in_b.communication_ns == 0))
    warnings.push_back(fmt::format(
        "The optimizer's range holds communication in {} ({} ms) and none in {}: what one does inside its step "
        "the other does before it.",
        in_a.communication_ns > 0 ? "A" : "B", ms_text(std::max(in_a.communication_ns, in_b.communication_ns)),
        in_a.communication_ns > 0 ? "B" : "A"));
}

std::string world_text(const Summary& run) {
  return run.world_size > 0 ? std::to_string(run.world_size) : "a number that it does not say";
}

void warn_of_runs(const Summary& a, const Summary& b, std::vector<std::string>& warnings) {
  if (a.dialect != b.dialect)
    warnings.push_back(fmt::format("A is a {} trace and B a {} trace: they were recorded by different means.",
                                   dialect_name(a.dialect), dialect_name(b.dialect)));
  if (a.together.basis != b.together.basis)
    warnings.push_back(
        "One run's times are those of kernels and the other's are not: computation is not counted the same way.");
  if (a.backend != b.backend)
    warnings.push_back(fmt::format("Different backends: A talks over {}, B over {}.",
                                   a.backend.empty() ? "one it does not name" : a.backend,
                                   b.backend.empty() ? "one it does not name" : b.backend));
  if (a.world_size != b.world_size)
    warnings.push_back(fmt::format("Different numbers of ranks: A ran on {}, B on {}.", world_text(a), world_text(b)));
  if (a.ranks.size() != b.ranks.size())
    warnings.push_back(fmt::format("A has the traces of {} ranks, B of {}: the figures are means over these.",
                                   a.ranks.size(), b.ranks.size()));
  const bool one_a = a.ranks.size() == 1 && a.world_size != 1, one_b = b.ranks.size() == 1 && b.world_size != 1;
  if (one_a || one_b)
    warnings.push_back(
        fmt::format("One rank only in {}: what a call took is transfer and waiting together.", one_a && one_b ? "both"
                                                                                               : one_a        ? "A"
                                                                                                              : "B"));
  if (a.together.steps == 0 || b.together.steps == 0)
    warnings.push_back(fmt::format("No steps were found in {}: the runs may be of different length.",
                                   a.together.steps == b.together.steps ? "either"
                                   : a.together.steps == 0              ? "A"
                                                                        : "B"));
  else if (a.together.steps != b.together.steps)
    warnings.push_back(fmt::format("Different numbers of steps: A has {}, B has {}; look at the figures per step.",
                                   a.together.steps, b.together.steps));
}

}  // namespace

std::vector<std::string> comparison_warnings(const Summary& a, const Summary& b) {
  std::vector<std::string> warnings;
  warn_of_runs(a, b, warnings);
  warn_of_matrices(a, b, warnings);
  warn_of_sets("element types", of_collectives(a, type_of), of_collectives(b, type_of), warnings);
  warn_of_sets("groups", of_collectives(a, group_of), of_collectives(b, group_of), warnings);
  warn_of_missing(a, b, warnings);
  warn_of_overlap("A", a.together, warnings);
  warn_of_overlap("B", b.together, warnings);
  warn_of_optimizer(a.together, b.together, warnings);
  warn_of_host("A", a, warnings);
  warn_of_host("B", b, warnings);
  return warnings;
}

}  // namespace muonwalk::sim
