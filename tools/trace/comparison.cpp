#include "tools/trace/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

using Texts = std::set<std::string>;

std::string list(const Texts& texts) { return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")); }

// Something of every collective, as a set; what a trace does not say is in it as "unknown".
template <class What>
Texts of_collectives(const Summary& run, const What& what) {
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

Texts matrices_of(const Summary& run) {
  Texts texts;
  for (const TracedMatrix& matrix : run.matrices)
    texts.insert(fmt::format("{} {} × {}", visible_name(matrix.name), matrix.rows, matrix.cols));
  return texts;
}

std::string world_text(const Summary& run) {
  return run.world_size > 0 ? std::to_string(run.world_size) : "a number that it does not say";
}

bool one_of_several(const Summary& run) { return run.ranks.size() == 1 && run.world_size != 1; }

// Looks for the ways in which two runs can't be compared, and writes them down.
class Warner {
 public:
  Warner(const Summary& a, const Summary& b) : a_(a), b_(b) {}

  std::vector<std::string> all() {
    runs();
    steps();
    matrices();
    sets("element types", of_collectives(a_, type_of), of_collectives(b_, type_of));
    sets("groups", of_collectives(a_, group_of), of_collectives(b_, group_of));
    missing("reduction of gradients", "all_reduce, reduce_scatter or reduce",
            {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce});
    missing("gather of parameters", "all_gather or broadcast", {Collective::all_gather, Collective::broadcast});
    missing("exchange", "all_to_all", {Collective::all_to_all});
    overlap("A", a_.together);
    overlap("B", b_.together);
    optimizer(a_.together.optimizer_device, b_.together.optimizer_device);
    host("A", a_);
    host("B", b_);
    return std::move(warnings_);
  }

 private:
  template <class... Values>
  void warn(const char* sentence, const Values&... values) {
    warnings_.push_back(fmt::format(fmt::runtime(sentence), values...));
  }

  // Which of the runs something is said of.
  static const char* which(bool in_a, bool in_b, const char* both) { return in_a && in_b ? both : in_a ? "A" : "B"; }

  void runs() {
    if (a_.dialect != b_.dialect)
      warn("A is a {} trace and B a {} trace: they were recorded by different means.", dialect_name(a_.dialect),
           dialect_name(b_.dialect));
    if (a_.together.basis != b_.together.basis)
      warn("One run's times are those of kernels and the other's are not: computation is not counted the same way.");
    if (a_.backend != b_.backend)
      warn("Different backends: A talks over {}, B over {}.",
           a_.backend.empty() ? "one it does not name" : visible_name(a_.backend),
           b_.backend.empty() ? "one it does not name" : visible_name(b_.backend));
    if (a_.world_size != b_.world_size)
      warn("Different numbers of ranks: A ran on {}, B on {}.", world_text(a_), world_text(b_));
    if (a_.ranks.size() != b_.ranks.size())
      warn("A has the traces of {} ranks, B of {}: the figures are means over these.", a_.ranks.size(),
           b_.ranks.size());
    if (one_of_several(a_) || one_of_several(b_))
      warn("One rank only in {}: what a call took is transfer and waiting together.",
           which(one_of_several(a_), one_of_several(b_), "both"));
  }

  void steps() {
    const std::int64_t a = a_.together.steps, b = b_.together.steps;
    if (a == 0 || b == 0)
      warn("No steps were found in {}: the runs may be of different length.", which(a == 0, b == 0, "either"));
    else if (a != b)
      warn("Different numbers of steps: A has {}, B has {}; look at the figures per step.", a, b);
  }

  void matrices() {
    const bool none_a = a_.matrices.empty(), none_b = b_.matrices.empty();
    if (none_a || none_b)
      warn("{} not say which matrices {} trained: whether the work was the same can't be told.",
           none_a && none_b ? "The traces do" : fmt::format("{} does", which(none_a, none_b, "")),
           none_a && none_b ? "they" : "it");
    else
      sets("matrices", matrices_of(a_), matrices_of(b_));
  }

  void sets(const char* what, const Texts& a, const Texts& b) {
    if (a != b)
      warn("Different {}: A has {}, B has {}.", what, list(a), list(b));
    else if (a.count("unknown") > 0)
      warn("Neither trace says the {} of all its collectives: they may differ.", what);
  }

  // A sum that holds a collective which the other run does not need, or leaves to a part that was not recorded.
  void missing(const char* what, const char* names, std::initializer_list<Collective> any) {
    const bool in_a = has(a_, any);
    if (in_a != has(b_, any))
      warn("{} has no {} ({}), {} has: the sums of communication are of different things.", in_a ? "B" : "A", what,
           names, in_a ? "A" : "B");
  }

  void overlap(const char* name, const RankSummary& run) {
    if (run.overlap_ns > 0)
      warn(
          "{} overlaps {} of its communication ({} of {} ms) with computation: that part of the sum costs no time to "
          "the end.",
          name, percent_text(run.overlap_share().value_or(0)), ms_text(run.overlap_ns), ms_text(run.communication_ns));
    if (run.communication_sum_ns > run.communication_ns)
      warn("{} runs {} at the same time: their times add up to {} ms, of {} ms that passed.", name,
           run.transfers > 0 ? "calls and posted messages" : "collectives", ms_text(run.communication_sum_ns),
           ms_text(run.communication_ns));
  }

  void optimizer(const OptimizerShare& a, const OptimizerShare& b) {
    const bool in_a = a.communication_ns > 0;
    if ((a.ranges == 0) != (b.ranges == 0))
      warn("The optimizer's range is known of {} only.", a.ranges == 0 ? "B" : "A");
    else if (a.ranges > 0 && in_a != (b.communication_ns > 0))
      warn(
          "The optimizer's range holds communication in {} ({} ms) and none in {}: what one does inside its step the "
          "other does before it.",
          in_a ? "A" : "B", ms_text(std::max(a.communication_ns, b.communication_ns)), in_a ? "B" : "A");
  }

  void host(const char* name, const Summary& run) {
    const std::int64_t beside = run.counted.of(EventClass::host_range) + run.counted.of(EventClass::host_operator) +
                                run.counted.of(EventClass::device_range);
    if (run.together.basis == TimeBasis::device && beside > 0)
      warn(
          "{} has {} ranges and operators beside its {} kernels: on the host they are the time to start work, on the "
          "device the time of the kernels once more; they are in no sum here.",
          name, beside, run.together.kernels + run.together.collective_calls);
  }

  const Summary &a_, &b_;
  std::vector<std::string> warnings_;
};

// The lines of one collective, of whatever type and group, added up.
CollectiveLine sum_of(const RankSummary& summary, Collective collective) {
  CollectiveLine sum;
  sum.message_bytes = 0;
  for (const CollectiveLine& line : summary.collectives)
    if (line.collective == collective) sum.add(line);
  return sum;
}

}  // namespace

std::vector<Figure> figures_of(const RankSummary& summary, std::size_t ranks) {
  const double n = static_cast<double>(std::max<std::size_t>(ranks, 1));
  const auto if_known = [](bool known, double value) { return known ? std::optional<double>(value) : std::nullopt; };
  const auto ms = [&](std::int64_t ns) {
    return if_known(summary.basis != TimeBasis::none, static_cast<double>(ns) / 1e6 / n);
  };
  const double steps = static_cast<double>(summary.steps);
  std::vector<Figure> figures = {{"steps", "", if_known(steps > 0, steps)}};
  for (const RankTime& time : kRankTimes) {
    const auto value = ms(summary.*time.ns);
    figures.push_back({time.figure, "ms", value});
    if (time.per_step != nullptr)
      figures.push_back({time.per_step, "ms", if_known(value && steps > 0, value.value_or(0) / steps)});
    if (time.ns == &RankSummary::overlap_ns)
      figures.push_back({"overlap of communication", "%",
                         if_known(summary.overlap_share().has_value(), 100 * summary.overlap_share().value_or(0))});
  }
  for (const auto& [where, of, share] : {std::make_tuple("device", "span", &summary.optimizer_device),
                                         std::make_tuple("host", "host", &summary.optimizer_host)}) {
    const bool known = share->ranges > 0;
    figures.push_back(
        {fmt::format("optimizer, {}", where), "ms", if_known(known, static_cast<double>(share->time_ns) / 1e6 / n)});
    figures.push_back({fmt::format("optimizer, share of the {}", of), "%", if_known(known, 100 * share->share())});
  }
  const bool matched = summary.waiting.matched_calls > 0;
  figures.push_back({"transfer", "ms", matched ? ms(summary.waiting.transfer_ns) : std::nullopt, false});
  figures.push_back({"waiting", "ms", matched ? ms(summary.waiting.waiting_ns) : std::nullopt, false});
  for (int c = 0; c <= static_cast<int>(Collective::other); ++c) {
    const CollectiveLine sum = sum_of(summary, static_cast<Collective>(c));
    const bool called = sum.calls > 0;
    const std::string name = collective_text(static_cast<Collective>(c));
    figures.push_back({name + ", calls", "", if_known(called, static_cast<double>(sum.calls) / n), false});
    figures.push_back({name + ", sum", "ms", called ? ms(sum.time_ns) : std::nullopt, false});
    figures.push_back({name + ", messages", "bytes",
                       if_known(called && sum.message_bytes, static_cast<double>(sum.message_bytes.value_or(0)) / n),
                       false});
  }
  return figures;
}

std::optional<double> ComparedFigure::ratio() const {
  if (!a || !b || *a == 0) return std::nullopt;
  return *b / *a;
}

TraceComparison compare(Summary a, Summary b) {
  TraceComparison comparison;
  const std::vector<Figure> of_a = figures_of(a.together, a.ranks.size()),
                            of_b = figures_of(b.together, b.ranks.size());
  for (std::size_t i = 0; i < of_a.size(); ++i)
    if (of_a[i].always || of_a[i].value || of_b[i].value)
      comparison.figures.push_back({of_a[i].name, of_a[i].unit, of_a[i].value, of_b[i].value});
  comparison.warnings = Warner(a, b).all();
  comparison.a = std::move(a);
  comparison.b = std::move(b);
  return comparison;
}

}  // namespace muonwalk::sim
