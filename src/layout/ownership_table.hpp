#pragma once

#include <string>

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// Who owns what, as a table: a line a parameter with its bucket, its global range, and for every DP rank the elements
/// that it owns, counted from the begin of its shard (the `local_range`; "·" for none), and in words how many shards it
/// spans. At most `columns` characters wide, unless a single rank's column does not fit: where there is no room for all
/// DP ranks, the table comes in several parts below each other.
std::string ownership_table(const Layout& layout, int columns = 100);

}  // namespace muonwalk
