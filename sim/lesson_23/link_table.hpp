#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/lesson_23/link_use.hpp"

namespace muonwalk::sim {

/// A link with the name of its column: "1 Gbit/s".
using NamedLink = std::pair<std::string, Link>;

/// What is put on the link, and what it takes at least over each of `links`: a line per phase of each of `uses`, under
/// its name, and one for all of them; without `by_phase`, a line for each. At most 100 columns.
std::string link_table(const std::string& of_what, const std::vector<std::pair<std::string, LinkUse>>& uses,
                       const std::vector<NamedLink>& links, bool by_phase);

}  // namespace muonwalk::sim
