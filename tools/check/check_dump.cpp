#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "src/errors.hpp"
#include "src/io/float16.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/text/names.hpp"
#include "tools/check/dump.hpp"
#include "tools/check/judge.hpp"

namespace muonwalk::check {
namespace {

using Found = std::optional<Finding>;

// Rounds to a type, "BF16", "F16" or "F32": to nearest, ties to even.
float rounded(float value, const std::string& dtype) {
  return dtype == "BF16"  ? static_cast<float>(bfloat16(value))
         : dtype == "F16" ? float16_to_float(float_to_float16(value))
                          : value;
}

// The one axis along which ranks of one list lie apart from those of another; empty where there is none, or several.
std::string axis_between(const Mesh& mesh, const std::vector<int>& ones, const std::vector<int>& others) {
  std::set<std::string> axes;
  for (const int one : ones)
    for (const int other : others) {
      const std::vector<int> a = coordinates(mesh, one), b = coordinates(mesh, other);
      std::set<std::string> apart;
      for (std::size_t axis = 0; axis < mesh.size(); ++axis)
        if (a[axis] != b[axis]) apart.insert(mesh[axis].first);
      if (apart.size() == 1) axes.merge(apart);
    }
  return axes.size() == 1 ? *axes.begin() : "";
}

// "first in [0, 3]: 1.5 against 1.25": where two versions of a tensor differ; empty where they don't.
std::string difference(const std::vector<std::int64_t>& shape, const Flat& a, const Flat& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return fmt::format("first in {}: {} against {}", element_text(shape, static_cast<std::int64_t>(i)), a[i], b[i]);
  return "";
}

// ── What the bits of a step say by themselves, whatever the recipe.

Finding finding(const std::string& kind, const std::string& axis, const Described& of, const std::string& tensor,
                const std::string& what) {
  return {kind, axis, {of.name}, fmt::format("\"{}/{}\" of step {} {}", tensor, visible_name(of.name), of.step, what)};
}

// The first NaN or infinity in what goes into the step, or else in what comes out of it.
Found not_finite(const ParameterCase& whole, bool given) {
  for (std::size_t tensor = given ? 0 : kGiven; tensor < (given ? kGiven : std::size(kCaseTensors)); ++tensor)
    for (const Assembled::Version& version : (whole.*kCaseTensors[tensor].of).versions)
      for (std::size_t i = 0; i < version.values.size(); ++i)
        if (!std::isfinite(version.values[i]))
          return finding("not_finite", "", whole, kCaseTensors[tensor].name,
                         fmt::format("has {} in {}", std::isnan(version.values[i]) ? "NaN" : "infinity",
                                     element_text(whole.shape, static_cast<std::int64_t>(i))));
  return std::nullopt;
}

// Whether `is` differs from `other` only where it is still as before the step.
bool still(const Flat& is, const Flat& other, const Flat& before) {
  for (std::size_t i = 0; i < is.size(); ++i)
    if (is[i] != other[i] && is[i] != before[i]) return false;
  return true;
}

// The first tensor in which ranks that repeat it differ. Where it is the gradient, what comes of it has to differ, too.
Found split(const ParameterCase& whole) {
  Found found;
  for (const CaseTensor& tensor : kCaseTensors) {
    const Assembled& of = whole.*tensor.of;
    if (of.versions.size() < 2) continue;
    if (found) return found;
    std::vector<int> others;
    for (std::size_t version = 1; version < of.versions.size(); ++version)
      others.insert(others.end(), of.versions[version].ranks.begin(), of.versions[version].ranks.end());
    const bool gradient = tensor.of == &ParameterCase::grad;
    const Flat &a = of.versions[0].values, &b = of.versions[1].values, &before = whole.before.values();
    const bool stale = tensor.of == &ParameterCase::after && (still(a, b, before) || still(b, a, before));
    found = finding(
        gradient ? "gradient_not_reduced"
        : stale  ? "stale_shard"
                 : "replicas_differ",
        axis_between(whole.mesh, of.versions[0].ranks, others), whole, tensor.name,
        fmt::format("is {}: {} against {}, {}", stale ? "still as before on some ranks" : "not the same on all ranks",
                    ranks_list(of.versions[0].ranks), ranks_list(others), difference(whole.shape, a, b)));
    if (!gradient) return found;
  }
  return std::nullopt;
}

// ── What should have passed from one tensor to another: by rounding, to the next step, or through a checkpoint.

struct Passage {
  const char *left, *taken;
  const char *lost, *another;  // the kinds where it is zero or absent, and where it is something else
  enum { exact, rounded, within_a_unit } how;
};
constexpr Passage kFromMasters[] = {{"master_after", "after", "", "", Passage::within_a_unit}};
constexpr Passage kBetweenSteps[] = {{"momentum_after", "momentum_before", "momentum_lost", "", Passage::rounded},
                                     {"second_after", "second_before", "second_moment_lost", "", Passage::rounded}};
constexpr Passage kThroughCheckpoint[] = {
    {"after", "after", "weights_changed_by_load", "weights_changed_by_load", Passage::exact},
    {"momentum_after", "momentum_after", "momentum_lost", "", Passage::exact},
    {"second_after", "second_after", "second_moment_lost", "", Passage::exact}};

// Whether a part is what it should be. Stochastic rounding is within one unit in the last place.
bool passed(const Flat& is, const Flat& should, const std::string& dtype, const Passage& passage) {
  const float unit = passage.how != Passage::within_a_unit || dtype == "F32" ? 0
                     : dtype == "F16"                                        ? 1.0f / 1024
                                                                             : 1.0f / 128;
  if (is.size() != should.size()) return false;
  for (std::size_t i = 0; i < is.size(); ++i) {
    const float expected = passage.how == Passage::exact ? should[i] : rounded(should[i], dtype);
    if (std::memcmp(&is[i], &expected, sizeof(float)) != 0 &&
        !(std::abs(is[i] - expected) <= unit * (std::abs(expected) + 6.2e-5f)))
      return false;
  }
  return true;
}

Found lost(const Passage& passage, const DumpedStep& left, const DumpedParameter& parameter, const DumpedStep& taken,
           const DumpedParameter& same) {
  const Assembled was = left.assembled(parameter, passage.left);
  const bool of_weights = passage.taken == std::string("after");
  if (!was.there() || (!of_weights && all_zero(was.values()))) return std::nullopt;
  const Holdings holdings = taken.holdings(same, passage.taken);
  std::vector<int> right, wrong, zero, owners;
  std::string how;
  bool stale = true;  // of weights: what is wrong is as it was before the step
  for (const Part& part : holdings.parts) {
    if (part.ranges.empty()) continue;
    const auto elements_of = [&](const Part& of) {
      Flat values;
      for (const auto& [begin, end] : of.ranges)
        values.insert(values.end(), was.values().begin() + begin, was.values().begin() + end);
      return values;
    };
    const auto stored = taken.part(passage.taken + ("/" + parameter.name), part.rank, holdings);
    const Flat should = elements_of(part), is = stored ? stored->values() : Flat(should.size());
    const std::string dtype = stored ? stored->dtype : was.dtype;
    if (passed(is, should, dtype, passage)) {
      right.push_back(part.rank);
      continue;
    }
    wrong.push_back(part.rank);
    if (all_zero(is)) zero.push_back(part.rank);
    if (how.empty() && !all_zero(is)) how = ", " + difference({static_cast<std::int64_t>(is.size())}, should, is);
    const auto before = of_weights ? taken.part("before/" + parameter.name, part.rank, holdings) : std::nullopt;
    stale = stale && before && same_bits(before->values(), is);
    for (const Part& from : holdings.parts)
      if (wrong.size() == 1 && from.ranges != part.ranges && passed(is, elements_of(from), dtype, passage))
        owners.push_back(from.rank);
  }
  if (wrong.empty()) return std::nullopt;
  const std::string axis = axis_between(taken.mesh, right, wrong);
  const auto found = [&](const std::string& kind, const std::string& on, const std::string& what) {
    return finding(kind, on, same, passage.taken, what);
  };
  if (of_weights && passage.how != Passage::exact && !right.empty())
    return found(
        stale ? "stale_shard" : "replicas_differ", axis,
        (stale ? "still has the weights from before it on " : "is not what its masters say on ") + ranks_list(wrong));
  if (!of_weights && !owners.empty() && zero.empty())
    return found("moments_of_other_rank", axis_between(taken.mesh, {wrong[0]}, owners),
                 fmt::format("is on rank {} what rank {} should have", wrong[0], owners[0]));
  const auto copies_right = std::count_if(holdings.copies.begin(), holdings.copies.end(), [&](const auto& copy) {
    return std::find_first_of(copy.begin(), copy.end(), right.begin(), right.end()) != copy.end();
  });
  if (!of_weights && holdings.copies.size() > 1 && copies_right == 1)
    return found("moments_on_owner_only", axis, "is what it was only on " + ranks_list(right));
  if (zero.size() == wrong.size()) return found(passage.lost, "", "is zero or absent on " + ranks_list(zero));
  return found(passage.another, "", fmt::format("is another on {} than it should be{}", ranks_list(wrong), how));
}

// Adds a finding of one parameter. One that only says that copies differ, or that a number isn't finite, gives way to
// one that says why; one without a kind to any other.
void add(const Finding& found, DumpVerdict& verdict) {
  const std::string& name = found.parameters.front();
  const bool weak = found.kind.empty() || found.kind == "replicas_differ" || found.kind == "not_finite";
  Finding* same = nullptr;
  for (Finding& finding : verdict.findings) {
    auto& names = finding.parameters;
    const auto at = std::find(names.begin(), names.end(), name);
    if (weak && at != names.end() && !finding.kind.empty() && finding.kind != found.kind) return;
    if (!found.kind.empty() && finding.kind.empty() && at != names.end()) names.erase(at);
    if (!found.kind.empty() && finding.kind == found.kind && finding.axis == found.axis) same = &finding;
  }
  if (same == nullptr)
    verdict.findings.push_back(found);
  else if (std::count(same->parameters.begin(), same->parameters.end(), name) == 0)
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

DumpVerdict check_steps(const std::vector<DumpedStep>& steps, Question question, int threads,
                        const std::function<void(std::size_t, std::size_t)>& progress) {
  Judge judge(threads);
  std::size_t done = 0, of = 0;
  for (const DumpedStep& step : steps) of += step.parameters.size();
  std::vector<Finding> found;
  const auto note = [&](const Found& one) {
    if (one) found.push_back(*one);
    return one.has_value();
  };
  const auto noted = [&](const std::string& kind, const std::string& parameter) {
    return std::any_of(found.begin(), found.end(), [&](const Finding& one) {
      return (kind.empty() || one.kind == kind) && (parameter.empty() || one.parameters[0] == parameter);
    });
  };
  for (std::size_t i = 0; i < steps.size() && !(i > 0 && noted("not_finite", "")); ++i) {
    std::vector<const DumpedParameter*> parameters;
    for (const DumpedParameter& parameter : steps[i].parameters)
      if (parameter.elements > 0) parameters.push_back(&parameter);
    std::stable_sort(parameters.begin(), parameters.end(),
                     [](const auto* a, const auto* b) { return a->elements < b->elements; });
    for (const DumpedParameter* parameter : parameters) {
      const ParameterCase whole = steps[i].read(*parameter);
      const std::string name = "/" + parameter->name;
      if (progress) progress(++done, of);
      const auto passes = [&](const auto& passages, const DumpedStep& left, const DumpedParameter& before) {
        for (const Passage& passage : passages)  // a dump without a moment says nothing of it
          if (steps[i].has(passage.taken + name) || steps[i].has(passage.left + name))
            if (note(lost(passage, left, before, steps[i], *parameter))) return false;
        return true;
      };
      if (question == Question::replicas) {
        if (!noted("", parameter->name)) note(split(whole));
        continue;
      }
      if (const Found bad = not_finite(whole, true)) throw UsageError("can't judge what follows: " + bad->sentence);
      if (!note(not_finite(whole, false)) && passes(kFromMasters, steps[i], *parameter) &&
          whole.grad.versions.size() < 2)
        note(split(whole));
      const DumpedParameter* before = i > 0 ? steps[i - 1].find(parameter->name) : nullptr;
      if (before != nullptr && before->shape == parameter->shape && steps[i].step == steps[i - 1].step + 1)
        passes(kBetweenSteps, steps[i - 1], *before);
      judge.add(whole);
    }
  }
  DumpVerdict verdict = question == Question::replicas ? clean_of(steps[0]) : judge.verdict();
  for (const Finding& finding : found) add(finding, verdict);
  std::map<std::string, std::size_t> order;  // as the program listed them
  for (const DumpedParameter& parameter : steps[0].parameters) order.emplace(parameter.name, order.size());
  std::stable_sort(verdict.parameters.begin(), verdict.parameters.end(),
                   [&](const auto& a, const auto& b) { return order[a.name] < order[b.name]; });
  return verdict;
}

DumpVerdict check_loaded(const DumpedStep& saved, const DumpedStep& loaded) {
  DumpVerdict verdict = clean_of(saved);
  for (const DumpedParameter& parameter : saved.parameters) {
    const DumpedParameter* same = loaded.find(parameter.name);
    const std::string weights = "after/" + parameter.name;
    if (parameter.elements == 0) continue;
    if (saved.step != loaded.step || same == nullptr || same->shape != parameter.shape || !saved.has(weights) ||
        !loaded.has(weights))
      throw UsageError(
          fmt::format("what was saved and what was loaded can't be compared: {} is not in step {} of both, "
                      "with one shape; dump the same step of the same model",
                      in_quotes(weights), saved.step));
    for (const Passage& passage : kThroughCheckpoint) {
      const Found found = lost(passage, saved, parameter, loaded, *same);
      if (found) add(*found, verdict);
      if (found && passage.taken != std::string("after")) break;  // the first moment that is lost
    }
  }
  return verdict;
}

}  // namespace muonwalk::check
