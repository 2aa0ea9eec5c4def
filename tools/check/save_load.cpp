#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/text/names.hpp"
#include "tools/check/dump_findings.hpp"

namespace muonwalk::check {
namespace {

// The elements of `whole` that a rank holds.
Flat taken(const Flat& whole, const Part& part) {
  Flat values;
  for (const auto& [begin, end] : part.ranges) values.insert(values.end(), whole.begin() + begin, whole.begin() + end);
  return values;
}

// How weights came to be others.
std::string how_changed(const Flat& was, Flat is) {
  for (const char* type : {"BF16", "F16"}) {
    Flat rounded = was;
    std::transform(was.begin(), was.end(), rounded.begin(), rounding_to(type));
    if (same_bits(rounded, is)) return fmt::format("were rounded to {}", type);
  }
  Flat sorted = was;
  std::sort(sorted.begin(), sorted.end());
  std::sort(is.begin(), is.end());
  return same_bits(sorted, is) ? "have changed their places" : "are others";
}

// What is wrong with a moment after a load: a finding without a sentence; nothing where it is as it was.
std::optional<Finding> lost_moment(const DumpedStep& saved, const DumpedParameter& parameter, const DumpedStep& loaded,
                                   const DumpedParameter& same, const std::string& tensor) {
  const std::string name = tensor + "/" + parameter.name;
  const Assembled was = saved.assembled(parameter, tensor, saved.holdings(parameter, Role::moments));
  if (!was.there() || all_zero(was.values())) return std::nullopt;
  const Holdings holdings = loaded.holdings(same, Role::moments);
  std::vector<int> right, zero, other;
  RankPairs right_and_wrong, taken_from;
  for (const Part& part : holdings.parts) {
    if (part.ranges.empty()) continue;
    const std::optional<Flat> is = loaded.part(name, part.rank, holdings);
    const Flat expected = taken(was.values(), part);
    if (is ? same_bits(*is, expected) : all_zero(expected)) {
      right.push_back(part.rank);
    } else if (!is || all_zero(*is)) {
      zero.push_back(part.rank);
    } else {
      other.push_back(part.rank);
      for (const Part& from : holdings.parts)
        if (from.ranges != part.ranges && same_bits(*is, taken(was.values(), from))) {
          taken_from.emplace_back(part.rank, from.rank);
          break;
        }
    }
  }
  if (zero.empty() && other.empty()) return std::nullopt;
  const auto found = [&](const char* kind, const RankPairs& pairs, const std::string& sentence) {
    return Finding{
        kind,
        axis_between(loaded, pairs),
        {parameter.name},
        fmt::format("\"{}/{}\" of step {}: {}", tensor, visible_name(parameter.name), loaded.step, sentence)};
  };
  if (!other.empty() && taken_from.size() == other.size())
    return found("moments_of_other_rank", taken_from,
                 fmt::format("{} {} loaded what rank {} has saved", ranks_list(other),
                             other.size() == 1 ? "has" : "have", taken_from.front().second));
  for (const std::vector<int>* wrong : {&zero, &other})
    for (const int rank : *wrong)
      for (const int of : right) right_and_wrong.emplace_back(of, rank);
  if (holdings.copies.size() > 1 && !right.empty() &&
      std::count_if(holdings.copies.begin(), holdings.copies.end(), [&](const std::vector<int>& copy) {
        return std::any_of(copy.begin(), copy.end(),
                           [&](int rank) { return std::count(right.begin(), right.end(), rank) > 0; });
      }) == 1)
    return found("moments_on_owner_only", right_and_wrong,
                 fmt::format("only {} {} what was saved", ranks_list(right), right.size() == 1 ? "has" : "have"));
  if (other.empty()) return found("momentum_lost", {}, fmt::format("it is zero or absent on {}", ranks_list(zero)));
  return found("", {}, fmt::format("it is another on {}", ranks_list(other)));
}

}  // namespace

void find_changed_by_load(const DumpedStep& saved, const DumpedParameter& parameter, const DumpedStep& loaded,
                          const DumpedParameter& same, std::vector<Finding>& findings) {
  {
    const Assembled was = saved.assembled(parameter, "after", saved.holdings(parameter, Role::weights));
    const Assembled is = loaded.assembled(same, "after", loaded.holdings(same, Role::weights));
    if (!was.there() || !is.there())
      throw UsageError(fmt::format("there is no {} in what was {}, and weights are what is compared; dump a step",
                                   in_quotes("after/" + parameter.name), was.there() ? "loaded" : "saved"));
    for (const Assembled::Version& version : is.versions)
      if (!same_bits(version.values, was.values())) {
        findings.push_back({"weights_changed_by_load",
                            "",
                            {parameter.name},
                            fmt::format("the weights of {} {} on {} after the load", visible_name(parameter.name),
                                        how_changed(was.values(), version.values), ranks_list(version.ranks))});
        break;
      }
  }
  const std::optional<Finding> momentum = lost_moment(saved, parameter, loaded, same, "momentum_after");
  std::optional<Finding> second = lost_moment(saved, parameter, loaded, same, "second_after");
  if (momentum) findings.push_back(*momentum);
  if (!second || (momentum && momentum->kind == second->kind)) return;
  if (second->kind == "momentum_lost") second->kind = "second_moment_lost";
  findings.push_back(*second);
}

}  // namespace muonwalk::check
