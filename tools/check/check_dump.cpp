#include "tools/check/check_dump.hpp"

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

Finding finding(const char* kind, const std::string& axis, const Described& of, const std::string& tensor,
                const std::string& what) {
  return {kind, axis, {of.name}, fmt::format("\"{}/{}\" of step {} {}", tensor, visible_name(of.name), of.step, what)};
}

// The first NaN or infinity in what goes into the step, or else in what comes out of it.
Found not_finite(const ParameterCase& whole, bool given) {
  for (const CaseTensor& tensor : kCaseTensors)
    for (const Assembled::Version& version : (whole.*tensor.of).versions)
      for (std::size_t i = 0; i < version.values.size() && tensor.given == given; ++i)
        if (!std::isfinite(version.values[i]))
          return finding("not_finite", "", whole, tensor.name,
                         fmt::format("has {} in {}", std::isnan(version.values[i]) ? "NaN" : "infinity",
                                     element_text(whole.shape, static_cast<std::int64_t>(i))));
  return std::nullopt;
}

// The first tensor in which ranks that repeat it differ. Where it is the gradient, what comes of it has to differ, too.
Found split(const ReadParameter& read) {
  Found gradient;
  for (const CaseTensor& tensor : kCaseTensors) {
    const bool beside = read.whole.of_masters && tensor.beside_masters != nullptr;
    const Assembled& of = beside ? read.*tensor.beside_masters : read.whole.*tensor.of;
    if (of.versions.size() < 2) continue;
    if (gradient) return gradient;
    std::vector<int> others;
    for (std::size_t version = 1; version < of.versions.size(); ++version)
      others.insert(others.end(), of.versions[version].ranks.begin(), of.versions[version].ranks.end());
    gradient = finding(
        tensor.role == grad ? "gradient_not_reduced" : "replicas_differ",
        axis_between(read.whole.mesh, of.versions[0].ranks, others), read.whole, tensor.name,
        fmt::format("is not the same on all ranks: {} against {}, {}", ranks_list(of.versions[0].ranks),
                    ranks_list(others), difference(read.whole.shape, of.versions[0].values, of.versions[1].values)));
    if (tensor.role != grad) return gradient;
  }
  return std::nullopt;
}

// Weights that aren't their masters, rounded: a part of them is as it was before the step, or something else.
Found unlike_masters(const ReadParameter& read) {
  const ParameterCase& whole = read.whole;
  const std::string& dtype = read.weights_after.dtype;
  // Stochastic rounding is within one unit in the last place.
  const float unit = dtype == "BF16" ? 1.0f / 128 : dtype == "F16" ? 1.0f / 1024 : 0;
  for (const Assembled::Version& version : read.weights_after.versions) {
    std::vector<int> stale, fresh;
    std::int64_t off = -1;
    for (const std::vector<Part>* parts : {&whole.parts, &whole.moment_parts})
      for (const Part& part : *parts) {
        if (parts == &whole.parts && std::count(version.ranks.begin(), version.ranks.end(), part.rank) == 0) continue;
        bool moved = false, same = true;
        for (const auto& [begin, end] : part.ranges)
          for (std::int64_t i = begin; i < end; ++i) {
            const float is = version.values[i], master = whole.after.values()[i];
            moved = moved || rounded(master, dtype) != is;
            same = same && is == read.weights_before.values()[i];
            if (std::abs(is - master) > unit * std::abs(master) + (dtype == "F16" ? 6.2e-5f : 0)) off = i;
          }
        if (!part.ranges.empty()) (moved && same ? stale : fresh).push_back(part.rank);
      }
    const bool copies = read.weights_after.versions.size() > 1;
    if (!stale.empty() && (copies || !fresh.empty()))
      return finding("stale_shard", axis_between(whole.mesh, stale, fresh), whole, "after",
                     "still has the weights from before it in the part of " + ranks_list(stale) +
                         ", though its masters have moved");
    if (off >= 0 && !copies)  // that copies differ says more
      return finding("", "", whole, "after",
                     fmt::format("is {} in {}, but its master is {}", version.values[off],
                                 element_text(whole.shape, off), whole.after.values()[off]));
  }
  return std::nullopt;
}

// ── What is lost between two steps, or by a checkpoint.

// What an earlier step has left in the one tensor, and a later one, or the same loaded again, hasn't in the other.
struct Passage {
  const char *left, *taken;
  Role role;
  const char* lost;  // the kind where it is lost
  bool exact;        // else it may have been rounded
};
constexpr Passage kBetweenSteps[] = {{"momentum_after", "momentum_before", moments, "momentum_lost", false},
                                     {"second_after", "second_before", moments, "second_moment_lost", false}};
constexpr Passage kThroughCheckpoint[] = {{"after", "after", weights, "weights_changed_by_load", true},
                                          {"momentum_after", "momentum_after", moments, "momentum_lost", true},
                                          {"second_after", "second_after", moments, "second_moment_lost", true}};

Found lost(const Passage& passage, const DumpedStep& left, const DumpedParameter& parameter, const DumpedStep& taken,
           const DumpedParameter& same) {
  const Assembled was = left.assembled(parameter, passage.left, left.holdings(parameter, passage.role));
  if (!was.there() || (passage.role == moments && all_zero(was.values()))) return std::nullopt;
  const Holdings holdings = taken.holdings(same, passage.role);
  std::vector<int> right, zero, other, owners;
  std::string how;
  for (const Part& part : holdings.parts) {
    if (part.ranges.empty()) continue;
    const auto stored = taken.part(passage.taken + ("/" + parameter.name), part.rank, holdings);
    const auto expected = [&](const Part& of) {
      Flat values;
      for (const auto& [begin, end] : of.ranges)
        for (std::int64_t i = begin; i < end; ++i)
          values.push_back(passage.exact || !stored ? was.values()[i] : rounded(was.values()[i], stored->dtype));
      return values;
    };
    const Flat is = stored ? stored->values() : Flat(expected(part).size());
    if (same_bits(is, expected(part))) {
      right.push_back(part.rank);
    } else if (all_zero(is)) {
      zero.push_back(part.rank);
    } else {
      other.push_back(part.rank);
      if (how.empty()) how = difference({static_cast<std::int64_t>(is.size())}, expected(part), is);
      for (const Part& from : holdings.parts)
        if (other.size() == 1 && from.ranges != part.ranges && same_bits(is, expected(from)))
          owners.push_back(from.rank);
    }
  }
  if (zero.empty() && other.empty()) return std::nullopt;
  std::vector<int> wrong = zero;
  wrong.insert(wrong.end(), other.begin(), other.end());
  const auto found = [&](const char* kind, const std::string& axis, const std::string& what) {
    return finding(passage.role == weights ? passage.lost : kind, axis, same, passage.taken, what);
  };
  const auto copies_right = std::count_if(holdings.copies.begin(), holdings.copies.end(), [&](const auto& copy) {
    return std::find_first_of(copy.begin(), copy.end(), right.begin(), right.end()) != copy.end();
  });
  if (!owners.empty())
    return found("moments_of_other_rank", axis_between(taken.mesh, {other[0]}, owners),
                 fmt::format("is on rank {} what rank {} should have", other[0], owners[0]));
  if (passage.role == moments && holdings.copies.size() > 1 && copies_right == 1)
    return found("moments_on_owner_only", axis_between(taken.mesh, right, wrong),
                 "is what it was only on " + ranks_list(right));
  if (!other.empty()) return found("", "", fmt::format("is another on {} than it was, {}", ranks_list(other), how));
  return found(passage.lost, "", "is zero or absent on " + ranks_list(zero));
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
      const ReadParameter read = steps[i].read(*parameter);
      if (progress) progress(++done, of);
      if (question == Question::replicas) {
        if (!noted("", parameter->name)) note(split(read));
        continue;
      }
      if (const Found bad = not_finite(read.whole, true))
        throw UsageError("can't judge what follows: " + bad->sentence);
      if (!note(not_finite(read.whole, false)) && !note(unlike_masters(read)) && read.whole.grad.versions.size() < 2)
        note(split(read));
      const DumpedParameter* before = i > 0 ? steps[i - 1].find(parameter->name) : nullptr;
      if (before != nullptr && before->shape == parameter->shape && steps[i].step == steps[i - 1].step + 1)
        for (const Passage& passage : kBetweenSteps)  // a dump without a moment says nothing of it
          if (steps[i].has(passage.taken + ("/" + before->name)) || steps[i].has(passage.left + ("/" + before->name)))
            if (note(lost(passage, steps[i - 1], *before, steps[i], *parameter))) break;
      judge.add(read.whole);
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
    const std::string weights = "after/" + parameter.name;
    if (parameter.elements == 0) continue;
    if (!saved.has(weights) || !loaded.has(weights))
      throw UsageError(fmt::format("there is no {} in what was {}, and weights are what is compared; dump a step",
                                   in_quotes(weights), saved.has(weights) ? "loaded" : "saved"));
    for (const Passage& passage : kThroughCheckpoint) {
      const Found found = lost(passage, saved, parameter, loaded, *same);
      if (found) add(*found, verdict);
      if (found && passage.role == moments) break;  // the first moment that is lost
    }
  }
  return verdict;
}

}  // namespace muonwalk::check
