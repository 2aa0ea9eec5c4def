#pragma once

#include <functional>
#include <string>

namespace muonwalk::sim {

/// Reads a regular file of at most `most_mebibytes`. If that can't be done, it calls `refuse` with the reason ("it is a
/// folder"), which has to throw.
std::string read_small_file(const std::string& path, int most_mebibytes,
                            const std::function<void(const char* reason)>& refuse);

}  // namespace muonwalk::sim
