#include "src/layout/grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

// Sets one dimension and refuses what can't be a grid. `others` is the product of the two other dimensions.
void set_dimension(int& dimension, const std::string& name, int size, std::int64_t others) {
  const std::string option = "--" + name;
  if (size < 1)
    throw UsageError(
        fmt::format("{} {} is less than 1, but a grid has at least one rank along every dimension; try {} 1", option,
                    size, option));
  if (others * size > std::numeric_limits<int>::max()) {
    throw UsageError(fmt::format("{} {} makes a grid of {} ranks, more than can be numbered; try a smaller one", option,
                                 size, others * size));
  }
  dimension = size;
}

void require_coordinate(const char* name, int value, int size) {
  if (value < 0 || value >= size) throw std::out_of_range(fmt::format("{} {} is not in 0..{}", name, value, size - 1));
}

// In which coordinates the ranks of a group differ.
struct Differ {
  bool dp = false, tp = false, pp = false;
  bool ends_only = false;  // of pp, the first and the last
  int ep = 0;              // of dp, those of one EP group of this size; 0: all
  bool across_ep = false;  // and not those, but the ones with the same place in theirs
};

Differ differ_in(const std::string& name) {
  Differ differ;
  if (name == "world") return {true, true, true, false};
  if (name == "first and last stage") return {false, false, true, true};
  for (const std::string prefix : {"ep ", "dp / ep "})
    if (name.rfind(prefix, 0) == 0)
      if (const std::optional<int> ep = number_from<int>(name.substr(prefix.size())); ep && *ep > 0)
        return {true, false, false, false, *ep, prefix != "ep "};
  const std::string times = " × ";
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find(times, begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    bool* known = part == "dp" ? &differ.dp : part == "tp" ? &differ.tp : part == "pp" ? &differ.pp : nullptr;
    if (known == nullptr || *known)
      throw UsageError("a grid has no groups named " + in_quotes(name) +
                       "; it has dp, tp, pp, products of them such as \"dp × pp\", world, first and last stage, \"ep "
                       "2\" and \"dp / ep 2\"");
    *known = true;
    begin = end + times.size();
  }
  return differ;
}

}  // namespace

int Group::number_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

Grid& Grid::dp(int size) {
  set_dimension(dp_, "dp", size, std::int64_t{tp_} * pp_);
  return *this;
}

Grid& Grid::tp(int size) {
  set_dimension(tp_, "tp", size, std::int64_t{dp_} * pp_);
  return *this;
}

Grid& Grid::pp(int size) {
  set_dimension(pp_, "pp", size, std::int64_t{dp_} * tp_);
  return *this;
}

Place Grid::place(int rank) const {
  require_coordinate("rank", rank, size());
  Place place;
  place.rank = rank;
  place.tp = rank % tp_;
  place.dp = rank / tp_ % dp_;
  place.pp = rank / tp_ / dp_;
  return place;
}

int Grid::rank(int dp, int tp, int pp) const {
  require_coordinate("dp", dp, dp_);
  require_coordinate("tp", tp, tp_);
  require_coordinate("pp", pp, pp_);
  return tp + tp_ * (dp + dp_ * pp);
}

Group Grid::group(const std::string& name, int rank) const {
  const Differ differ = differ_in(name);
  const Place mine = place(rank);
  Group group{name, {}};
  if (differ.ep > 0 && dp_ % differ.ep != 0)
    throw UsageError(
        fmt::format("--ep {} does not divide --dp {}, but EP groups lie within the data-parallel ranks; try --ep 1 or "
                    "--ep {}",
                    differ.ep, dp_, dp_));
  if (differ.ends_only && mine.pp != 0 && mine.pp != pp_ - 1) return group;
  for (int pp = 0; pp < pp_; ++pp) {
    if (differ.pp ? differ.ends_only && pp != 0 && pp != pp_ - 1 : pp != mine.pp) continue;
    for (int dp = differ.dp ? 0 : mine.dp; dp < (differ.dp ? dp_ : mine.dp + 1); ++dp) {
      if (differ.ep > 0 &&
          (differ.across_ep ? dp % differ.ep != mine.dp % differ.ep : dp / differ.ep != mine.dp / differ.ep))
        continue;
      for (int tp = differ.tp ? 0 : mine.tp; tp < (differ.tp ? tp_ : mine.tp + 1); ++tp)
        group.ranks.push_back(this->rank(dp, tp, pp));
    }
  }
  return group;
}

std::vector<Group> Grid::groups(const std::string& name) const {
  std::vector<Group> all;
  for (int rank = 0; rank < size(); ++rank) {
    Group its_group = group(name, rank);
    // A group is listed once, when its lowest rank comes by; that also puts the groups in order.
    if (its_group.size() > 0 && its_group.ranks.front() == rank) all.push_back(std::move(its_group));
  }
  return all;
}

int Grid::size(const std::string& name) const { return group(name, 0).size(); }

std::string Grid::text() const {
  std::string text = "dp " + std::to_string(dp_) + " × tp " + std::to_string(tp_);
  if (pp_ > 1) text += " × pp " + std::to_string(pp_);
  return text;
}

std::string ranks_label(const Grid& grid, const std::vector<int>& ranks) {
  std::string shared;
  const auto share = [&](const char* name, int size, int Place::*coordinate) {
    const int mine = grid.place(ranks.front()).*coordinate;
    if (size > 1 &&
        std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return grid.place(rank).*coordinate == mine; }))
      shared += fmt::format(" {} {}", name, mine);
  };
  share("dp", grid.dp(), &Place::dp);
  share("tp", grid.tp(), &Place::tp);
  share("pp", grid.pp(), &Place::pp);
  const int many = static_cast<int>(ranks.size()), last = ranks.back();
  const std::string who = many == 1                          ? fmt::format("rank {}", last)
                          : many == grid.size()              ? "every rank"
                          : last - ranks.front() + 1 == many ? fmt::format("ranks {}–{}", ranks.front(), last)
                          : many <= 4                        ? fmt::format("ranks {}", fmt::join(ranks, ", "))
                                      : fmt::format("ranks {}, {}, …, {}", ranks[0], ranks[1], last);
  return shared.empty() ? who : who + " " + shared;
}

}  // namespace muonwalk
