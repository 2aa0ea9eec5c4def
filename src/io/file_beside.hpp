#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/io/open_file.hpp"
#include "src/io/unfinished.hpp"

namespace muonwalk {

class FileBeside;
/// Files that are written and take their places later.
using FilesBeside = std::vector<std::unique_ptr<FileBeside>>;

/// A new file in the folder of `path` that takes its place when it is whole, so that a reader of `path` finds either
/// what was there before or all of what is there now. Every function throws UsageError, one sentence that names `path`,
/// the system's reason and what would work.
///
/// Until then it has no name where the file system knows such files (O_TMPFILE): whatever ends the program, nothing of
/// it is left. Elsewhere, and with MUONWALK_UNNAMED_FILES=off in the environment, it has a provisional name that is
/// remembered as unfinished. It has the permissions (and, where allowed, the owner) of the file that it replaces before
/// the first byte is in it; a new one gets the usual ones.
class FileBeside {
 public:
  /// Creates the file beside. A symbolic link is followed, unless it is a trap (destination_of): what it points to is
  /// replaced, the link stays. Refuses a path that is a folder or a device, and a file that may not be written, though
  /// its folder would let us replace it.
  explicit FileBeside(const std::string& path);
  /// Removes the file beside, unless `commit` has renamed it.
  ~FileBeside();
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;

  void write(const void* bytes, std::size_t count);

  /// Flushes to the disk and takes the place of `path`.
  void commit();
  /// All of them take their places, or none does, where one can't; only what it has replaced before can't come back.
  static void commit_together(const FilesBeside& files);

 private:
  void create();
  void link_to_target();
  void keep_permissions();
  void discard();
  [[noreturn]] void refuse(int error);
  [[noreturn]] void refuse(const std::string& why, const std::string& remedy);

  std::string path_;    // as asked
  std::string target_;  // with links followed
  std::string folder_;
  std::string beside_;  // its provisional name; empty where it has none, and once it is gone
  Unfinished* unfinished_ = nullptr;
  int owner_process_;  // a forked process has a copy of this, and no file
  OpenFile file_;
  bool replaces_ = false;
  unsigned mode_ = 0;
  unsigned owner_ = 0;
  unsigned group_ = 0;
};

/// A file with this text in it that takes its place later.
std::unique_ptr<FileBeside> text_file_beside(const std::string& path, const std::string& text);

}  // namespace muonwalk
