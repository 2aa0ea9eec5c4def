#pragma once

#include <string>
#include <vector>

namespace muonwalk {

/// What becomes of the path that an option takes.
enum class PathUse {
  none,         ///< The option takes no path.
  reads,        ///< It is a file that is read.
  writes,       ///< It is a file that is written, in place of what is there.
  writes_into,  ///< Files in this folder are written.
};

/// A path of the command line.
struct NamedPath {
  std::string option;  ///< "--record"
  std::string path;    ///< As it was given.
  PathUse use;
};

/// Throws UsageError, one sentence, where two paths that are written are one file, or one that is written is read, or
/// is where the standard output or error goes. Files are told apart by what they are and not by how they are spelled:
/// by device and inode where they exist, so that links count, and else by the folder that they would be in, and their
/// name there.
void require_distinct_files(const std::vector<NamedPath>& paths);

}  // namespace muonwalk
