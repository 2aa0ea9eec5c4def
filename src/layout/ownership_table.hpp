#pragma once

#include <string>

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// Who owns what, as a table: a line per parameter with its bucket, its global range, and for every DP rank the
/// elements that it owns, counted from the beginning of its shard (the `local_range`; "·" for none), and in words how
/// many shards it spans. At most `columns` characters wide, unless a single rank's column does not fit: where there is
/// no room for all DP ranks, the table comes in several parts below each other.
std::string ownership_table(const Layout& layout, int columns = 100);

/// How many ranks of a pipeline stage need each parameter of the first buffer whole, because they own an element of it:
/// its owners in dp, times tp. "w0 2 ranks, w1 2, w3 8", in at most `columns` characters; "…" stands for those that do
/// not fit.
std::string holders_text(const Layout& layout, int columns);

}  // namespace muonwalk
