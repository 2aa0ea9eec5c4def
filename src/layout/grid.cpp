#include "src/layout/grid.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>

#include "src/errors.hpp"

namespace muonwalk {
namespace {

// Sets one dimension and refuses what can't be a grid. `others` is the product of the two other dimensions.
void set_dimension(int& dimension, GroupKind kind, int size, std::int64_t others) {
  const std::string option = std::string("--") + group_name(kind);
  if (size < 1) {
    throw UsageError(option + " " + std::to_string(size) +
                     " is less than 1, but a grid has at least one rank along every dimension; try " + option + " 1");
  }
  if (others * size > std::numeric_limits<int>::max()) {
    throw UsageError(option + " " + std::to_string(size) + " makes a grid of " + std::to_string(others * size) +
                     " ranks, more than can be numbered; try a smaller one");
  }
  dimension = size;
}

void require_coordinate(const char* name, int value, int size) {
  if (value < 0 || value >= size) {
    throw std::out_of_range(std::string(name) + " " + std::to_string(value) + " is not in 0.." +
                            std::to_string(size - 1));
  }
}

}  // namespace

const char* group_name(GroupKind kind) {
  switch (kind) {
    case GroupKind::dp:
      return "dp";
    case GroupKind::tp:
      return "tp";
    case GroupKind::pp:
      return "pp";
  }
  throw std::invalid_argument("unknown kind of group");
}

Grid& Grid::dp(int size) {
  set_dimension(dp_, GroupKind::dp, size, std::int64_t{tp_} * pp_);
  return *this;
}

Grid& Grid::tp(int size) {
  set_dimension(tp_, GroupKind::tp, size, std::int64_t{dp_} * pp_);
  return *this;
}

Grid& Grid::pp(int size) {
  set_dimension(pp_, GroupKind::pp, size, std::int64_t{dp_} * tp_);
  return *this;
}

int Grid::size(GroupKind kind) const {
  switch (kind) {
    case GroupKind::dp:
      return dp_;
    case GroupKind::tp:
      return tp_;
    case GroupKind::pp:
      return pp_;
  }
  throw std::invalid_argument("unknown kind of group");
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

std::vector<int> Grid::group(GroupKind kind, int rank) const {
  const Place mine = place(rank);
  std::vector<int> members;
  members.reserve(size(kind));
  for (int i = 0; i < size(kind); ++i) {
    const int dp = kind == GroupKind::dp ? i : mine.dp;
    const int tp = kind == GroupKind::tp ? i : mine.tp;
    const int pp = kind == GroupKind::pp ? i : mine.pp;
    members.push_back(this->rank(dp, tp, pp));
  }
  return members;
}

std::vector<std::vector<int>> Grid::groups(GroupKind kind) const {
  std::vector<std::vector<int>> all;
  for (int rank = 0; rank < size(); ++rank) {
    std::vector<int> members = group(kind, rank);
    // A group is listed once, when its lowest rank comes by; that also puts the groups in order.
    if (members.front() == rank) all.push_back(std::move(members));
  }
  return all;
}

std::string Grid::text() const {
  std::string text = "dp " + std::to_string(dp_) + " × tp " + std::to_string(tp_);
  if (pp_ > 1) text += " × pp " + std::to_string(pp_);
  return text;
}

std::string rank_label(const Grid& grid, int rank) {
  const Place place = grid.place(rank);
  std::string coordinates;
  if (grid.dp() > 1) coordinates += " dp " + std::to_string(place.dp);
  if (grid.tp() > 1) coordinates += " tp " + std::to_string(place.tp);
  if (grid.pp() > 1) coordinates += " pp " + std::to_string(place.pp);
  return "rank " + std::to_string(rank) + (coordinates.empty() ? "" : " " + coordinates);
}

}  // namespace muonwalk
