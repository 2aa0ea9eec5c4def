#include "lessons/lesson_10_bug_hunt/hunt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

struct Mystery {
  const char* bug;
  const char* story;  // what it was, and what betrays it
};

// In the order of their numbers: not that of --list-bugs, where the suspects stand.
const std::vector<Mystery>& mysteries() {
  static const std::vector<Mystery> all = {
      {"flat_matrix",
       "The tutorial gathered the bucket, took out the numbers of one matrix, and forgot to view them as "
       "dist_meta.shape. Newton–Schulz transposes, so it needs rows and columns, and a tensor of one dimension has "
       "none: the program ended in the first step. Bugs that crash are the kind ones."},
      {"stale_parameter_list",
       "The tutorial's update loop used the name `params`, which an earlier loop over the groups had left behind. In "
       "Python such a name lives on, so the last group was updated once per group, and all others never moved. The "
       "loss falls, because one group learns, twice in every step. Evidence: the bits of group 0 are those from the "
       "start, and Newton–Schulz is called for group 1 only, twice as often as it should be."},
      {"spawn_in_notebook",
       "The tutorial forked its workers from a notebook. The kernel of a notebook has threads that hold locks. The "
       "forked process has copies of the locks, but not the threads that would free them, so it waits forever. Nothing "
       "is wrong with the optimizer: it never got its turn."},
      {"inverted_split_dim",
       "Where the proof of concept was built into Megatron-LM, the condition that asks whether TP cuts a matrix was "
       "the wrong way round. Every TP rank took its slice for the whole matrix and orthogonalized that: a block-wise "
       "Muon, which trains, but is not the Muon that was asked for. Evidence: no byte travels over tp, and "
       "Newton–Schulz sees slices."},
      {"second_moment_zeros",
       "The proof of concept's checkpoint held zeros in place of AdamW's second moment. After the pause AdamW divides "
       "by the root of a mean that has forgotten its past, so its steps are too long for a while. Then the loss "
       "recovers, and nobody looks again. Evidence: only what AdamW trains differs, and only after a resume. Bytes and "
       "calls of Newton–Schulz are as they should be."},
      {"hard_wired_device",
       "The tutorial's code said cuda:RANK in several places, and so asked every machine for as many GPUs as it has "
       "ranks. Mending the first of these places only moved the crash to the second. Ask the machine, and ask it "
       "once."},
      {"reset_dist_metas",
       "The proof of concept made its table of dist_metas anew for each parameter group, inside the loop over the "
       "groups. In the end the table held the last group alone, and the optimizer passed over what it did not find. A "
       "part of the model learns, and the loss falls. Evidence: the bits of group 0 are those from the start, and "
       "calls are missing, over dp and over tp."},
      {"hard_wired_nccl",
       "PyTorch's examples say `init_process_group(backend=\"nccl\")`. NCCL moves the memory of GPUs; on a laptop it "
       "ends the program before the first step. Ask the machine which backend to take."}};
  return all;
}

// What can be asked for with --evidence.
const std::vector<std::string> kEvidenceKinds = {"bits", "bytes", "resume", "newton-schulz-calls"};

std::string quantity(const std::string& kind) {
  if (kind == "bits") return "bits: elements that differ from the serial reference in the end, on all ranks";
  if (kind == "bytes") return "bytes: what all ranks sent, and what the plan says";
  if (kind == "resume") return "resume: elements that differ between a run with a checkpoint and one without a pause";
  return "newton-schulz-calls: on all ranks, by the shape that was orthogonalized";
}

// Throws UsageError for a number that no mystery has.
const Mystery& mystery_of(const std::string& number) {
  const std::vector<Mystery>& all = mysteries();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (number == std::to_string(i + 1)) return all[i];
  throw UsageError(
      fmt::format("--mystery {} is not known; the mysteries have the numbers 1 to {}", as_typed(number), all.size()));
}

const Bug& bug_of(const LessonInfo& info, const std::string& name) {
  return *std::find_if(info.bugs.begin(), info.bugs.end(), [&name](const Bug& bug) { return bug.name == name; });
}

std::vector<std::string> symptoms(const Findings& findings) {
  if (!findings.ended.empty())
    return wrap_text("symptoms  it does not come to its end; the last words of rank 0: " + findings.ended, 10);
  return {"symptoms  none: it trains to the end, without a message", "          " + loss_text(findings.losses)};
}

std::vector<std::string> table(const std::string& kind, const Findings& findings) {
  std::vector<std::string> lines = wrap_text("evidence  " + quantity(kind), 10);
  const auto rows_of = findings.evidence.find(kind);
  if (rows_of == findings.evidence.end()) {
    lines.push_back("          there is none: the program ended before it could train");
    return lines;
  }
  Table rows({{"          "}, {"should be"}, {"is"}, {""}});
  for (const EvidenceRow& row : rows_of->second)
    rows.row({"          " + row.what, row.should, row.is, row.suspicious() ? "✘" : ""});
  append(lines, rows.lines());
  return lines;
}

// Why it can't have been the suspect, who did not do it.
std::string refutation(const std::string& suspect, const Findings& findings, const Findings& of_suspect) {
  if (findings.ended != of_suspect.ended)
    return of_suspect.ended.empty()
               ? fmt::format("no: with {} the program would have trained to the end without a message", suspect)
               : fmt::format("no: with {} the last words would have been: {}", suspect, of_suspect.ended);
  if (findings.evidence == of_suspect.evidence)  // none, where both ended early
    return fmt::format("no, although nothing that can be asked for tells {} from it", suspect);
  const std::string& kind = *std::find_if(kEvidenceKinds.begin(), kEvidenceKinds.end(), [&](const std::string& each) {
    return findings.evidence.at(each) != of_suspect.evidence.at(each);
  });
  const std::vector<EvidenceRow>& shown = of_suspect.evidence.at(kind);
  const auto there = std::count_if(shown.begin(), shown.end(), [](const auto& row) { return row.suspicious(); });
  return fmt::format("no: with {} the loss falls as well, but --evidence {} looks different; {} would be wrong",
                     suspect, kind, there == 0 ? "nothing" : fmt::format("{} of {} lines", there, shown.size()));
}

// For each matrix, how many elements differ from what they should be, over all ranks. Of one that is wrong also whether
// it is as it was at first.
std::vector<EvidenceRow> differing_elements(const HeldMatrices& held, const HeldMatrices& expected,
                                            const HeldMatrices& first) {
  struct Count {
    long long elements = 0, different = 0;
    bool moved = false;
  };
  std::vector<std::string> names;
  std::map<std::string, Count> counts;
  for (std::size_t rank = 0; rank < held.size(); ++rank)
    for (std::size_t i = 0; i < held[rank].size(); ++i) {
      const NamedMatrix& here = held[rank][i];
      if (counts.count(here.name) == 0) names.push_back(here.name);
      Count& count = counts[here.name];
      count.elements += here.matrix.size();
      const float* should = expected.at(rank).at(i).matrix.data();
      for (Index at = 0; at < here.matrix.size(); ++at)
        count.different += std::memcmp(here.matrix.data() + at, should + at, sizeof(float)) != 0;
      count.moved |= !same_bits(here.matrix, first.at(rank).at(i).matrix);
    }
  std::vector<EvidenceRow> rows;
  for (const std::string& name : names) {
    const Count& count = counts[name];
    const std::string of = number_text(count.elements);
    rows.push_back({name, fmt::format("0 of {} differ", of),
                    fmt::format("{} of {} differ{}", number_text(count.different), of,
                                count.moved || count.different == 0 ? "" : ": as at the start")});
  }
  return rows;
}

// What all diaries count together.
Amounts counted(const HeldMatrices& diaries) {
  Amounts amounts;
  for (const auto& diary : diaries)
    for (const NamedMatrix& each : diary) {
      if (each.matrix.cols() == 1) amounts.newton_schulz[each.name] += std::llround(each.matrix(0, 0));
      if (each.matrix.cols() != 2) continue;
      auto& [calls, bytes] = amounts.traffic[each.name];
      calls += std::llround(each.matrix(0, 0));
      bytes += std::llround(each.matrix(0, 1));
    }
  return amounts;
}

// A row for each name of either map.
template <class Value, class Text>
std::vector<EvidenceRow> rows_of(const std::map<std::string, Value>& should, const std::map<std::string, Value>& is,
                                 const Text& text) {
  std::map<std::string, std::pair<Value, Value>> both;
  for (const auto& [name, value] : should) both[name].first = value;
  for (const auto& [name, value] : is) both[name].second = value;
  std::vector<EvidenceRow> rows;
  for (const auto& [name, values] : both) rows.push_back({name, text(values.first), text(values.second)});
  return rows;
}

}  // namespace

std::string line_name(const LedgerLine& line) {
  return fmt::format("{} over {}", collective_name(line.kind), line.group);
}

std::string call_name(const std::string& parameter, Shape shape) {
  return fmt::format("{} as {}", parameter, shape_text(shape.rows, shape.cols));
}

void Amounts::add(const Ledger& ledger) {
  for (const LedgerLine& line : ledger.lines()) {
    auto& [calls, bytes] = traffic[line_name(line)];
    calls += line.calls;
    bytes += line.traffic.bytes_sent;
  }
}

void Amounts::add(const Plan& plan, const std::vector<Parameter>& parameters, int steps) {
  for (const Operation& operation : plan.operations) {
    const Work* work = std::get_if<Work>(&operation);
    if (work != nullptr && work->phase == phases::orthogonalize)
      newton_schulz[call_name(parameters.at(static_cast<std::size_t>(work->parameter)).name, work->shape)] += steps;
  }
}

Findings findings_of(const Observed& with_pause, const Observed& without_pause, const HeldMatrices& expected,
                     const Amounts& planned) {
  Findings findings;
  findings.ended = with_pause.diaries.at(0).at(0).name;
  if (!findings.ended.empty()) return findings;
  findings.losses = with_pause.losses;
  const Amounts is = counted(with_pause.diaries);
  findings.evidence["bits"] = differing_elements(with_pause.last, expected, with_pause.first);
  findings.evidence["resume"] = differing_elements(with_pause.last, without_pause.last, with_pause.first);
  findings.evidence["bytes"] =
      rows_of(planned.traffic, is.traffic, [](const std::pair<std::int64_t, std::int64_t>& amount) {
        return fmt::format("{}, {}", count_text(amount.first, "call"), bytes_text(amount.second));
      });
  findings.evidence["newton-schulz-calls"] =
      rows_of(planned.newton_schulz, is.newton_schulz, [](std::int64_t calls) { return count_text(calls, "call"); });
  return findings;
}

std::string loss_text(const std::vector<double>& losses) {
  if (losses.empty()) return "";
  std::string text = "loss ";
  for (std::size_t i = 0; i < losses.size(); ++i) text += fmt::format("{}{:.2f}", i > 0 ? " → " : "", losses[i]);
  const bool falls =
      losses.size() > 1 && std::adjacent_find(losses.begin(), losses.end(), std::less_equal<double>()) == losses.end();
  return text + (falls ? ": it falls in every step" : "");
}

std::vector<LessonOption> Hunt::options() {
  return {{"--mystery", fmt::format("1 to {}: a training with a bug in it; shows the symptoms", mysteries().size()),
           &mystery},
          {"--evidence", "with --mystery: bits, bytes, resume or newton-schulz-calls", &asked},
          {"--suspect", "with --mystery: the bug that you suspect, one of --list-bugs", &suspect},
          {"--reveal", "with --mystery: which bug it was", &reveal}};
}

void Hunt::require_sensible(const LessonInfo& info, const Options& options) {
  if (asked.size() > 1)
    throw UsageError(fmt::format("--evidence shows one kind at a time, and {} were asked for; try --evidence {} alone",
                                 asked.size(), as_typed(asked[0])));
  evidence = asked.empty() ? "" : asked[0];
  if (!on()) {
    const std::string without = !suspect.empty()    ? "--suspect " + as_typed(suspect)
                                : !evidence.empty() ? "--evidence " + as_typed(evidence)
                                : reveal            ? "--reveal"
                                                    : "";
    if (!without.empty())
      throw UsageError(
          fmt::format("{} goes with --mystery, which was not given; add --mystery 1, or any other up to {}", without,
                      mysteries().size()));
    return;
  }
  mystery_of(mystery);
  const auto is_suspect = [this](const Bug& bug) { return bug.name == suspect; };
  if (!suspect.empty() && std::none_of(info.bugs.begin(), info.bugs.end(), is_suspect))
    throw UsageError(fmt::format("--suspect {} is not a bug of this lesson; --list-bugs names the {} suspects",
                                 as_typed(suspect), info.bugs.size()));
  if (!evidence.empty() && std::find(kEvidenceKinds.begin(), kEvidenceKinds.end(), evidence) == kEvidenceKinds.end())
    throw UsageError(fmt::format("--evidence {} is not known; it is bits, bytes, resume or newton-schulz-calls",
                                 as_typed(evidence)));
  if (!options.bug.empty())
    throw UsageError(fmt::format(
        "--bug {} switches on a bug that you know, and --mystery {} one that you don't; leave out one of them",
        options.bug, mystery));
  if (options.grid_given)
    throw UsageError(
        fmt::format("--mystery {} happened on {}; leave out --dp, --tp and --pp", mystery, Grid().dp(2).tp(2).text()));
  if (options.recording() || options.tracing())
    throw UsageError(fmt::format("--mystery {} is not recorded; leave out --record and --trace", mystery));
}

std::string Hunt::bug() const { return mystery_of(mystery).bug; }

std::vector<std::string> Hunt::report(const LessonInfo& info, const Options& options, const Findings& findings,
                                      const Findings& of_suspect) const {
  const bool solved = !suspect.empty() && right();
  const std::string last = fmt::format("{}: mystery {} {}", info.name, mystery,
                                       solved     ? "is solved"
                                       : !right() ? "is not solved: it was somebody else"
                                       : reveal   ? "is revealed"
                                                  : "is open");
  if (options.verbose == 0) return {last};
  std::vector<std::string> lines = {
      left_and_right(fmt::format("Lesson 10 · Bug hunt · mystery {} of {}", mystery, mysteries().size()),
                     fmt::format("{} · {} ranks", options.grid.text(), options.grid.size())),
      ""};
  append(lines, symptoms(findings));
  if (!evidence.empty()) append(lines, table(evidence, findings));
  if (!right()) append(lines, wrap_text("suspect   " + refutation(suspect, findings, of_suspect), 10));
  if (solved) lines.push_back(fmt::format("suspect   yes, it was {}", suspect));
  if (reveal || solved) {
    append(lines, wrap_text(fmt::format("reveal    {}: {}", bug(), bug_of(info, bug()).what), 10));
    append(lines, paragraph(mystery_of(mystery).story, 10, 10));
    lines.push_back(fmt::format("try       --bug {}: what the check says of it", bug()));
  } else {
    std::vector<std::string> more;
    for (const std::string& kind : kEvidenceKinds)
      if (kind != evidence) more.push_back("--evidence " + kind);
    more.push_back("--suspect NAME");
    more.push_back("--reveal");
    append(lines, wrap_items("next      ", more));
    const std::size_t first = lines.size();
    for (const Bug& bug : info.bugs)
      if (bug.name != suspect) append(lines, paragraph(fmt::format("{}: {}", bug.name, bug.what), 10, 12));
    lines[first].replace(0, 10, "suspects  ");
  }
  lines.push_back(last);
  return lines;
}

}  // namespace muonwalk::sim
