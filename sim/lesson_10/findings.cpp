#include "sim/lesson_10/findings.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <set>

#include "sim/lesson_10/diary.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

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
  std::set<std::string> names;
  for (const auto& [name, value] : should) names.insert(name);
  for (const auto& [name, value] : is) names.insert(name);
  const auto value_of = [](const std::map<std::string, Value>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? Value() : found->second;
  };
  std::vector<EvidenceRow> rows;
  for (const std::string& name : names) rows.push_back({name, text(value_of(should, name)), text(value_of(is, name))});
  return rows;
}

}  // namespace

const std::vector<std::string>& evidence_kinds() {
  static const std::vector<std::string> kinds = {"bits", "bytes", "resume", "newton-schulz-calls"};
  return kinds;
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

}  // namespace muonwalk::sim
