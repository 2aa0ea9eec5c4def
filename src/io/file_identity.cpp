#include "src/io/file_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;  // then nothing in it will be read
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable))
    names.push_back(entry.path().filename().string());
  return names;
}

// Which file or folder a path means. One that is not there is a way from the nearest folder that is.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string way;  // "a/b"; empty: the thing itself

  bool same_start(const Identity& other) const { return device == other.device && inode == other.inode; }
  bool operator==(const Identity& other) const { return same_start(other) && way == other.way; }
  // The name in the folder that this is, if `other` would be there.
  std::string name_of(const Identity& other) const {
    const std::string begin = way.empty() ? "" : way + "/";
    if (!same_start(other) || other.way.rfind(begin, 0) != 0) return "";
    const std::string name = other.way.substr(begin.size());
    return name.find('/') == std::string::npos ? name : "";
  }
  // `other` would lie below what this is.
  bool above(const Identity& other) const {
    return same_start(other) && !way.empty() && other.way.rfind(way + "/", 0) == 0;
  }
};

Identity identity_of(const std::string& given) {
  std::string path = destination_of(given).path;
  Identity identity;
  struct stat status = {};
  while (::stat(path.c_str(), &status) != 0) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const std::string name = path.substr(path.rfind('/') + 1);
    const std::string folder = folder_of(path);
    if (folder == path) return identity;  // not even that can be looked at
    if (!name.empty() && name != ".") identity.way = name + (identity.way.empty() ? "" : "/" + identity.way);
    path = folder;
  }
  identity.device = status.st_dev;
  identity.inode = status.st_ino;
  return identity;
}

// A file that is to be read or written, with the option that says so.
struct Known {
  const NamedPath* of;
  std::string path;
  bool written;
  Identity identity;
};

// It is the folder that an option names, and not a file in it.
bool is_folder(const Known& known) { return known.of->use == PathUse::writes_into && known.path == known.of->path; }

std::string words(const Known& known) { return known.of->option + " " + as_typed(known.path); }

void refuse_pair(const Known& a, const Known& b) {
  if (!a.written) return refuse_pair(b, a);
  if (!b.written)
    throw UsageError(words(a) + " would replace the file that " + words(b) + " reads; name another file to be written");
  throw UsageError(words(a) + " and " + words(b) +
                   " are the same file, and both are to be written; give each a file of its own");
}

void add(std::vector<Known>& files, const NamedPath& path) {
  const bool folder = path.use == PathUse::writes_into;
  const bool written = path.use == PathUse::writes || folder;
  files.push_back({&path, path.path, written, identity_of(path.path)});
  if (!folder) return;
  for (const std::string& name : names_in(path.path)) {
    const std::string file = path.path + (path.path.back() == '/' ? "" : "/") + name;
    files.push_back({&path, file, written, identity_of(file)});
  }
}

// The standard output or error, where it goes to a file.
void require_not_standard(int descriptor, const char* name, const std::vector<Known>& files) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return;
  for (const Known& file : files)
    if (file.written && file.identity.way.empty() && file.identity.device == status.st_dev &&
        file.identity.inode == status.st_ino)
      throw UsageError(words(file) + " is the file that the " + name + " goes to; give each a file of its own");
}

}  // namespace

void require_distinct_files(const std::vector<NamedPath>& paths) {
  std::vector<Known> files;
  for (const NamedPath& path : paths)
    if (!path.path.empty() && path.use != PathUse::none) add(files, path);
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t k = 0; k < files.size(); ++k) {
      const Known &a = files[i], &b = files[k];
      if (a.of == b.of || (!a.written && !b.written)) continue;
      if (is_folder(a) && is_folder(b)) continue;                    // what is in them is asked one by one
      if (a.identity.inode == 0 || b.identity.inode == 0) continue;  // nothing is known of one
      const bool into_folder = a.written && is_folder(a);
      const std::string name = into_folder ? a.identity.name_of(b.identity) : "";
      const bool file_as_folder = a.of->use == PathUse::writes && a.identity.above(b.identity);
      if (a.identity == b.identity || file_as_folder || !name.empty()) refuse_pair(a, b);
    }
  }
  require_not_standard(STDOUT_FILENO, "standard output", files);
  require_not_standard(STDERR_FILENO, "standard error", files);
}

}  // namespace muonwalk
