#include "tools/check/check_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "src/text/names.hpp"
#include "tools/check/dump_findings.hpp"
#include "tools/check/judge.hpp"

namespace muonwalk::check {
namespace {

bool names_parameter(const Finding& finding, const std::string& name) {
  return std::find(finding.parameters.begin(), finding.parameters.end(), name) != finding.parameters.end();
}

// Adds a finding of one parameter. One that only says that copies differ, or that a number isn't finite, gives way to
// one that says why; one without a kind to any other.
void add_finding(const Finding& found, DumpVerdict& verdict) {
  const std::string& name = found.parameters.front();
  const bool weak = found.kind.empty() || found.kind == "replicas_differ" || found.kind == "not_finite";
  Finding* same = nullptr;
  for (Finding& finding : verdict.findings) {
    if (weak && !finding.kind.empty() && finding.kind != found.kind && names_parameter(finding, name)) return;
    if (finding.kind == found.kind && finding.axis == found.axis && !found.kind.empty()) same = &finding;
    if (finding.kind.empty() && !found.kind.empty())
      finding.parameters.erase(std::remove(finding.parameters.begin(), finding.parameters.end(), name),
                               finding.parameters.end());
  }
  if (same == nullptr)
    verdict.findings.push_back(found);
  else if (!names_parameter(*same, name))
    same->parameters.push_back(name);
  verdict.findings.erase(std::remove_if(verdict.findings.begin(), verdict.findings.end(),
                                        [](const Finding& finding) { return finding.parameters.empty(); }),
                         verdict.findings.end());
  verdict.verdict = Verdict::differs;
  for (ParameterVerdict& parameter : verdict.parameters)
    if (parameter.name == name && parameter.verdict != Verdict::differs) {
      parameter.verdict = Verdict::differs;
      parameter.reason = found.sentence;
    }
}

// A verdict in which nothing was found of any parameter yet.
DumpVerdict clean_of(const DumpedStep& step) {
  DumpVerdict verdict;
  verdict.verdict = Verdict::clean;
  for (const DumpedParameter& parameter : step.parameters) {
    verdict.parameters.emplace_back().name = parameter.name;
    verdict.parameters.back().verdict = Verdict::clean;
  }
  return verdict;
}

}  // namespace

DumpVerdict check_steps(const std::vector<DumpedStep>& steps, int threads, const Progress& progress) {
  Judge judge(threads);
  std::vector<Finding> found;
  std::size_t done = 0, of = 0;
  for (const DumpedStep& step : steps) of += step.parameters.size();
  try {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::vector<const DumpedParameter*> parameters;
      for (const DumpedParameter& parameter : steps[i].parameters)
        if (parameter.elements > 0) parameters.push_back(&parameter);
      std::stable_sort(parameters.begin(), parameters.end(),
                       [](const auto* a, const auto* b) { return a->elements < b->elements; });
      for (const DumpedParameter* parameter : parameters) {
        const ReadParameter read = steps[i].read(*parameter);
        found.insert(found.end(), read.findings.begin(), read.findings.end());
        if (i > 0) find_lost_between(steps[i - 1], read.parameter, found);
        judge.add(read.parameter);
        progress(++done, of);
      }
    }
  } catch (const NotFiniteError&) {  // no wonder where a step before it left some
    if (std::none_of(found.begin(), found.end(), [](const Finding& one) { return one.kind == "not_finite"; })) throw;
  }
  DumpVerdict verdict = judge.verdict();
  for (const Finding& finding : found) add_finding(finding, verdict);
  std::map<std::string, std::size_t> order;  // as the program listed them
  for (std::size_t i = 0; i < steps[0].parameters.size(); ++i) order.emplace(steps[0].parameters[i].name, i);
  std::stable_sort(verdict.parameters.begin(), verdict.parameters.end(),
                   [&](const auto& a, const auto& b) { return order[a.name] < order[b.name]; });
  return verdict;
}

DumpVerdict check_replicas(const std::vector<DumpedStep>& steps) {
  DumpVerdict verdict = clean_of(steps.front());
  std::set<std::string> split;
  for (const DumpedStep& step : steps)
    for (const DumpedParameter& parameter : step.parameters) {
      if (split.count(parameter.name) > 0 || parameter.elements == 0) continue;
      if (const std::optional<Finding> finding = first_split(step, parameter)) {
        split.insert(parameter.name);
        add_finding(*finding, verdict);
      }
    }
  return verdict;
}

DumpVerdict check_loaded(const DumpedStep& saved, const DumpedStep& loaded) {
  if (saved.step != loaded.step)
    throw UsageError(fmt::format("step {} was saved and step {} loaded, which can't be compared; dump the same step",
                                 saved.step, loaded.step));
  DumpVerdict verdict = clean_of(saved);
  for (const DumpedParameter& parameter : saved.parameters) {
    const DumpedParameter* same = loaded.find(parameter.name);
    if (same == nullptr || same->shape != parameter.shape)
      throw UsageError(fmt::format("{} was saved, but is {} what was loaded; dump the same model",
                                   in_quotes(parameter.name),
                                   same == nullptr ? "missing from" : "of another shape in"));
    if (parameter.elements == 0) continue;
    std::vector<Finding> found;
    find_changed_by_load(saved, parameter, loaded, *same, found);
    for (const Finding& finding : found) add_finding(finding, verdict);
  }
  return verdict;
}

}  // namespace muonwalk::check
