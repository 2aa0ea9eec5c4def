#pragma once

#include <string>
#include <vector>

#include "sim/pictures/strip.hpp"

namespace muonwalk::sim {

/// Where a rank's row stands in a strip.
struct RankRow {
  double top = 0;                                     ///< its upper edge
  double height = 0;                                  ///< downwards
  double middle() const { return top + height / 2; }  ///< where what it sends begins
};

/// How wide the room between before and after is: the longest of the words about what is sent, and the arrows.
double gutter_width(const Strip& strip);

/// Arrows for what travels, dashed ones for what a rank makes of what it has; words and arrows stand between `left` and
/// `right`. Where three or more ranks all send to each other, one line takes from all of them and gives to all of them,
/// in place of an arrow for each pair.
std::string arrows_svg(const Strip& strip, const std::vector<RankRow>& rows, double left, double right);

}  // namespace muonwalk::sim
