#include "src/io/file_beside.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "src/errors.hpp"
#include "src/io/safetensors_format.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr int kMostLinks = 40;  // as Linux follows them

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a link at `path` points to; empty when `path` is no link.
std::string link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  if (length <= 0) return "";
  const std::string text(target, static_cast<std::size_t>(length));
  return text[0] == '/' ? text : folder_of(path) + "/" + text;
}

const char* remedy_for(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "create its folder first";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a place where you may write";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "make room or choose another disk";
    default:
      return "choose another path";
  }
}

}  // namespace

FileBeside::FileBeside(const std::string& path) : path_(path), target_(path) {
  if (path.empty()) refuse("its name is empty", "name a file");
  int links = 0;
  for (std::string next = link_target(target_); !next.empty(); next = link_target(target_)) {
    if (++links > kMostLinks) refuse(ELOOP);
    target_ = next;
  }
  folder_ = folder_of(target_);

  struct stat status = {};
  if (::stat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) refuse("it is a folder", "name a file in it");
    // Renaming over a device or a pipe would put a plain file in its place.
    if (!S_ISREG(status.st_mode)) refuse("it is no regular file", "choose another path");
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
}

FileBeside::~FileBeside() { discard(); }

void FileBeside::create() {
  static std::atomic<unsigned> counter{0};
  // A name that a process or thread of ours can't have taken; one that a killed run left behind is passed by.
  do {
    beside_ = folder_ + "/.muonwalk-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".partial";
    fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd_ < 0 && (errno == EEXIST || errno == EINTR));
  if (fd_ < 0) {
    const int error = errno;
    beside_.clear();
    refuse(error);
  }
}

void FileBeside::write(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(fd_, from, std::min(count, std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(errno);
    from += written;
    count -= static_cast<std::size_t>(written);
  }
}

void FileBeside::keep_permissions() {
  // The owner first: changing it may clear permission bits. Only root may do so, and a copy of one's own is no failure.
  if (::fchown(fd_, owner_, group_) != 0) errno = 0;
  if (::fchmod(fd_, mode_) != 0) errno = 0;
}

void FileBeside::commit() {
  if (replaces_) keep_permissions();
  if (::fsync(fd_) != 0) refuse(errno);
  const int fd = fd_;
  fd_ = -1;  // closed even when close complains
  if (::close(fd) != 0) refuse(errno);
  if (::rename(beside_.c_str(), target_.c_str()) != 0) refuse(errno);
  beside_.clear();
  // The new name reaches the disk with the folder. Some file systems can't flush one; the file itself is safe by now.
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

void FileBeside::discard() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!beside_.empty()) ::unlink(beside_.c_str());
  beside_.clear();
}

void FileBeside::refuse(int error) { refuse(std::strerror(error), remedy_for(error)); }

void FileBeside::refuse(const std::string& why, const std::string& remedy) {
  discard();  // here, because a constructor that throws has no destructor
  throw UsageError("can't write " + in_quotes(path_) + ": " + why + "; " + remedy);
}

void write_text_file(const std::string& path, const std::string& text) {
  FileBeside file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace muonwalk
