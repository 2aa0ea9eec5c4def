#include "tools/check/dump_findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>

#include "src/io/float16.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/text/names.hpp"

namespace muonwalk::check {
namespace {

// ‖a − b‖ / ‖b‖; infinite where lengths differ.
double relative_distance(const Flat& a, const Flat& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double apart = 0, of = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    of += double{b[i]} * b[i];
  }
  return std::sqrt(apart / of);
}

// "ranks 0, 2 against rank 1": who has which version.
std::string versions_text(const Assembled& whole) {
  std::vector<std::string> texts;
  for (const Assembled::Version& version : whole.versions) texts.push_back(ranks_list(version.ranks));
  const bool many = texts.size() > 8;
  return fmt::format("{}{}", fmt::join(texts.begin(), many ? texts.begin() + 8 : texts.end(), " against "),
                     many ? " and more" : "");
}

// The one axis along which ranks with different versions lie.
std::string axis_of_versions(const DumpedStep& step, const Assembled& whole) {
  RankPairs pairs;
  for (const Assembled::Version& version : whole.versions)
    if (&version != &whole.versions.front())
      for (const int one : whole.versions.front().ranks)
        for (const int other : version.ranks) pairs.emplace_back(one, other);
  return axis_between(step, pairs);
}

// The first element in which the second version differs from the first.
std::string first_difference(const std::vector<std::int64_t>& shape, const Assembled& whole) {
  const Flat &a = whole.versions[0].values, &b = whole.versions[1].values;
  std::size_t i = 0;
  while (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) ++i;
  return fmt::format("first in {}: {} against {}", element_text(shape, static_cast<std::int64_t>(i)), a[i], b[i]);
}

// Copies of a tensor that differ.
Finding split_finding(const DumpedStep& step, const DumpedParameter& parameter, const char* tensor,
                      const Assembled& whole) {
  return {"replicas_differ",
          axis_of_versions(step, whole),
          {parameter.name},
          fmt::format("copies of \"{}/{}\" differ in step {}: {}, {}", tensor, visible_name(parameter.name), step.step,
                      versions_text(whole), first_difference(parameter.shape, whole))};
}

// Weights against masters of the same step: `before` is what the weights were.
void find_unlike_masters(const DumpedStep& step, const DumpedParameter& parameter, const Assembled& before,
                         const Assembled& after, const Flat& master_before, const Flat& master_after,
                         const std::vector<const std::vector<Part>*>& cuts, std::vector<Finding>& findings) {
  for (const auto& [weights, master, when] :
       {std::tuple{&before, &master_before, "before"}, std::tuple{&after, &master_after, "after"}}) {
    // Stochastic rounding and holdings off are within one unit in the last place.
    const float unit = weights->dtype == "BF16" ? 1.0f / 128 : weights->dtype == "F16" ? 1.0f / 1024 : 0;
    const float least = weights->dtype == "F16" ? 6.2e-5f : 0;
    const Rounding nearest = rounding_to(weights->dtype);
    for (const Assembled::Version& version : weights->versions) {
      // Parts that still have the weights from before the step, though their masters moved on.
      std::vector<int> stale;
      bool all_stale = true;
      for (const std::vector<Part>* parts : cuts) {
        for (const Part& part : *parts) {
          if (parts == cuts[0] && std::count(version.ranks.begin(), version.ranks.end(), part.rank) == 0) continue;
          std::int64_t moved = 0, differ = 0;
          for (const auto& [begin, end] : part.ranges)
            for (std::int64_t i = begin; i < end; ++i) {
              moved += nearest((*master)[i]) != version.values[i];
              differ += version.values[i] != before.values()[i];
            }
          if (moved > 0 && differ == 0) stale.push_back(part.rank);
          all_stale = all_stale && (part.ranges.empty() || (moved > 0 && differ == 0));
        }
      }
      if (weights == &after && !stale.empty() && (!all_stale || after.versions.size() > 1)) {
        findings.push_back({"stale_shard",
                            axis_of_versions(step, after),
                            {parameter.name},
                            fmt::format("the part of {} in \"after/{}\" still has the weights from before step {}, "
                                        "though its masters have moved",
                                        ranks_list(stale), visible_name(parameter.name), step.step)});
        if (findings.back().axis.empty() && step.mesh.size() == 1) findings.back().axis = step.mesh[0].first;
        return;
      }
      if (weights->versions.size() > 1) continue;  // that copies differ says more
      for (std::int64_t i = 0; i < parameter.elements; ++i)
        if (std::abs(version.values[i] - (*master)[i]) > unit * std::abs((*master)[i]) + least) {
          findings.push_back(
              {"",
               "",
               {parameter.name},
               fmt::format("{} in \"{}/{}\" of {} is {}, but its master is {}", element_text(parameter.shape, i), when,
                           visible_name(parameter.name), ranks_list(version.ranks), version.values[i], (*master)[i])});
          return;
        }
    }
  }
}

}  // namespace

Rounding rounding_to(const std::string& dtype) {
  if (dtype == "BF16") return [](float value) { return static_cast<float>(bfloat16(value)); };
  if (dtype == "F16") return [](float value) { return float16_to_float(float_to_float16(value)); };
  return [](float value) { return value; };
}

std::string ranks_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const bool many = ranks.size() > 8;
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks.begin(), many ? ranks.begin() + 8 : ranks.end(), ", "), many ? " and more" : "");
}

bool all_zero(const Flat& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

std::string axis_between(const DumpedStep& step, const RankPairs& pairs) {
  std::set<std::string> axes;
  for (const auto& [one, other] : pairs) {
    std::set<std::string> apart;
    int stride = step.world();
    for (const auto& [name, size] : step.mesh) {
      const int above = stride;
      stride /= size;
      if (one % above / stride != other % above / stride) apart.insert(name);
    }
    if (apart.size() == 1) axes.merge(apart);
  }
  return axes.size() == 1 ? *axes.begin() : "";
}

void find_raw(const DumpedStep& step, const DumpedParameter& parameter, const Holdings& weights,
              const Holdings& masters, ReadParameter& read) {
  const ParameterCase& whole = read.parameter;
  Assembled before, after;
  if (whole.of_masters) {
    before = step.assembled(parameter, "before", weights);
    after = step.assembled(parameter, "after", weights);
    find_unlike_masters(step, parameter, before, after, whole.before.values(), whole.after.values(),
                        {&weights.parts, &masters.parts}, read.findings);
  }
  if (!read.findings.empty() || whole.grad.versions.size() > 1) return;
  for (const CaseTensor& tensor : kCaseTensors) {
    const Assembled& of = !whole.of_masters || tensor.role != Role::weights ? whole.*tensor.of
                          : tensor.given                                    ? before
                                                                            : after;
    if (of.versions.size() > 1) return read.findings.push_back(split_finding(step, parameter, tensor.name, of));
  }
}

std::optional<Finding> not_finite(const DumpedStep& step, const DumpedParameter& parameter, const std::string& tensor,
                                  const Assembled& whole) {
  for (const Assembled::Version& version : whole.versions) {
    const auto at =
        std::find_if(version.values.begin(), version.values.end(), [](float value) { return !std::isfinite(value); });
    if (at != version.values.end())
      return Finding{"not_finite",
                     "",
                     {parameter.name},
                     fmt::format("\"{}/{}\" of step {} has {} in {}", tensor, visible_name(parameter.name), step.step,
                                 std::isnan(*at) ? "NaN" : "infinity",
                                 element_text(parameter.shape, at - version.values.begin()))};
  }
  return std::nullopt;
}

std::optional<Finding> first_split(const DumpedStep& step, const DumpedParameter& parameter) {
  std::optional<Finding> gradient;
  for (const CaseTensor& tensor : kCaseTensors) {
    const Assembled whole = step.assembled(parameter, tensor.name, step.holdings(parameter, tensor.role));
    if (whole.versions.size() < 2) continue;
    if (gradient) return gradient;
    Finding finding = split_finding(step, parameter, tensor.name, whole);
    if (tensor.role != Role::grad) return finding;
    finding.kind = "gradient_not_reduced";
    gradient = finding;
  }
  return std::nullopt;
}

void find_lost_between(const DumpedStep& earlier, const ParameterCase& later, std::vector<Finding>& findings) {
  const DumpedParameter* parameter = earlier.find(later.name);
  if (parameter == nullptr || later.step != earlier.step + 1 || parameter->shape != later.shape) return;
  const Holdings holdings = earlier.holdings(*parameter, Role::moments);
  for (const auto& [kind, what, before, after] :
       {std::tuple{"momentum_lost", "momentum", &later.momentum_before, &later.momentum_after},
        std::tuple{"second_moment_lost", "second", &later.second_before, &later.second_after}}) {
    const Assembled left = earlier.assembled(*parameter, std::string(what) + "_after", holdings);
    if (!left.there() || all_zero(left.values()) || (!before->there() && !after->there())) continue;
    const bool absent = !before->there(), lost = absent || all_zero(before->values());
    // A moment that was stored in another type would differ, too, but by less.
    if (!lost && relative_distance(before->values(), left.values()) < 0.01) continue;
    findings.push_back({lost ? kind : "",
                        "",
                        {later.name},
                        fmt::format("\"{}_before/{}\" of step {} {}, after step {} has left it otherwise", what,
                                    visible_name(later.name), later.step,
                                    absent ? "is absent"
                                    : lost ? "is zero"
                                           : "is another",
                                    earlier.step)});
    return;
  }
}

}  // namespace muonwalk::check
