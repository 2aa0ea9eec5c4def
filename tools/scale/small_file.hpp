#pragma once

#include <functional>
#include <string>

namespace muonwalk::sim {

/// The text of a regular file of at most `most_mebibytes`. Where there is none, `refuse` is called with the reason,
/// "it is a folder", and has to throw.
std::string read_small_file(const std::string& path, int most_mebibytes,
                            const std::function<void(const char* reason)>& refuse);

}  // namespace muonwalk::sim
