#include "src/io/file_beside.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

// The name by which the system lets an open file be linked that has none.
std::string open_file_name(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// A name that a process or thread of ours can't have taken.
std::string provisional_name(const std::string& folder) {
  static std::atomic<unsigned> counter{0};
  return folder + "/" + kUnfinishedBegin + std::to_string(::getpid()) + "-" + std::to_string(counter++) +
         kUnfinishedEnd;
}

bool unnamed_files_wanted() {
  const char* wanted = std::getenv("MUONWALK_UNNAMED_FILES");
  return wanted == nullptr || std::string(wanted) != "off";
}

}  // namespace

FileBeside::FileBeside(const std::string& path) : path_(path), target_(path), owner_process_(::getpid()) {
  if (path.empty()) refuse("its name is empty", "name a file");
  const Destination destination = destination_of(path);
  if (!destination.why.empty()) refuse(destination.why, destination.remedy);
  target_ = destination.path;
  folder_ = folder_of(target_);

  struct stat status = {};
  if (::stat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) refuse("it is a folder", "name a file in it");
    // Renaming over a device or a pipe would put a plain file in its place.
    if (!S_ISREG(status.st_mode)) refuse("it is not a regular file", "choose another path");
    if (::access(target_.c_str(), W_OK) != 0) refuse(errno);
    replaces_ = true;
    mode_ = status.st_mode & 0777u;
    owner_ = status.st_uid;
    group_ = status.st_gid;
  } else if (errno != ENOENT) {
    refuse(errno);
  } else if (target_.back() == '/') {
    refuse("it names a folder", "name a file in it");
  }
  create();
  if (replaces_) keep_permissions();
}

FileBeside::~FileBeside() { discard(); }

void FileBeside::create() {
  // Before it has the permissions of the file that it replaces, it is for nobody else.
  const mode_t mode = replaces_ ? 0600 : 0666;
#ifdef O_TMPFILE
  if (unnamed_files_wanted()) {
    file_ = OpenFile(::open(folder_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
    if (file_ && ::access(open_file_name(file_.descriptor()).c_str(), F_OK) == 0) return;
    file_.close();  // without /proc it could not be given a name
  }
#endif
  do {
    const SignalHold hold;
    beside_ = provisional_name(folder_);
    unfinished_ = remember_unfinished(beside_, false);
    file_ = OpenFile(::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file_) forget_unfinished(unfinished_);
  } while (!file_ && (errno == EEXIST || errno == EINTR));  // one that a killed run left behind is passed by
  if (!file_) {
    const int error = errno;
    beside_.clear();
    refuse(error);
  }
}

void FileBeside::write(const void* bytes, std::size_t count) {
  if (!write_all(file_.descriptor(), bytes, count)) refuse(errno);
}

void FileBeside::keep_permissions() {
  // The owner first: changing it may clear permission bits. Only root may give a file away, and a copy of one's own is
  // not a failure; but then what the old group was allowed is not for the new one.
  if (::fchown(file_.descriptor(), owner_, group_) != 0 &&
      ::fchown(file_.descriptor(), static_cast<uid_t>(-1), group_) != 0)
    mode_ = (mode_ & 0707u) | (mode_ & (mode_ & 07u) << 3);
  if (::fchmod(file_.descriptor(), mode_) != 0) errno = 0;
}

// Gives the unnamed file its name. Where one is there, it takes a provisional one first: a link replaces nothing.
void FileBeside::link_to_target() {
  const std::string open_file = open_file_name(file_.descriptor());
  const auto linked = [&](const std::string& name) {
    return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (!replaces_ && linked(target_)) return;
  if (!replaces_ && errno != EEXIST) refuse(errno);
  bool named = false;
  do {
    forget_unfinished(unfinished_);
    beside_ = provisional_name(folder_);
    unfinished_ = remember_unfinished(beside_, false);
  } while (!(named = linked(beside_)) && errno == EEXIST);
  if (!named) refuse(errno);
}

void FileBeside::commit() {
  if (::fsync(file_.descriptor()) != 0) refuse(errno);
  const SignalHold hold;
  if (beside_.empty()) link_to_target();
  if (::close(file_.release()) != 0) refuse(errno);  // it is closed even when that complains
  if (!beside_.empty()) {
    if (::rename(beside_.c_str(), target_.c_str()) != 0) refuse(errno);
    forget_unfinished(unfinished_);
    unfinished_ = nullptr;
    beside_.clear();
  }
  // The new name reaches the disk with the folder. Some file systems can't flush one; the file itself is safe by now.
  const OpenFile folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.descriptor());
}

void FileBeside::discard() {
  file_.close();
  if (!beside_.empty() && owner_process_ == ::getpid()) ::unlink(beside_.c_str());
  beside_.clear();
  forget_unfinished(unfinished_);
  unfinished_ = nullptr;
}

void FileBeside::refuse(int error) { refuse(std::strerror(error), remedy_for(error)); }

void FileBeside::refuse(const std::string& why, const std::string& remedy) {
  discard();  // here, because a constructor that throws has no destructor
  throw UsageError("can't write " + in_quotes(path_) + ": " + why + "; " + remedy);
}

void FileBeside::commit_together(const FilesBeside& files) {
  for (const auto& file : files)  // here a disk may turn out to be full, and none has its place yet
    if (::fsync(file->file_.descriptor()) != 0) file->refuse(errno);
  std::size_t done = 0;
  try {
    for (; done < files.size(); ++done) files[done]->commit();
  } catch (const UsageError&) {
    while (done-- > 0)
      if (!files[done]->replaces_) ::unlink(files[done]->target_.c_str());
    throw;
  }
}

std::unique_ptr<FileBeside> text_file_beside(const std::string& path, const std::string& text) {
  auto file = std::make_unique<FileBeside>(path);
  file->write(text.data(), text.size());
  return file;
}

}  // namespace muonwalk
