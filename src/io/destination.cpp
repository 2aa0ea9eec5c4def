#include "src/io/destination.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "src/errors.hpp"
#include "src/io/unfinished.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr int kMostLinks = 40;  // as Linux follows them

// Takes the first component off a path, without slashes.
std::string take_component(std::string& rest) {
  const std::size_t begin = std::min(rest.find_first_not_of('/'), rest.size());
  const std::size_t end = std::min(rest.find('/', begin), rest.size());
  const std::string component = rest.substr(begin, end - begin);
  rest.erase(0, end);
  return component;
}

bool is_strangers_trap(const std::string& folder, const struct stat& link) {
  struct stat status = {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &status) != 0) return false;
  const bool everybody_may_link = (status.st_mode & S_ISVTX) != 0 && (status.st_mode & S_IWOTH) != 0;
  return everybody_may_link && link.st_uid != ::geteuid() && link.st_uid != status.st_uid;
}

}  // namespace

Destination destination_of(const std::string& path) {
  std::string done = path[0] == '/' ? "/" : "";
  std::string rest = path;
  for (int links = 0; rest.find_first_not_of('/') != std::string::npos;) {
    const std::string component = take_component(rest);
    const std::string next = done + (done.empty() || done.back() == '/' ? "" : "/") + component;
    struct stat status = {};
    // What is not there has no links below it; what can't be looked at will say so when it is opened.
    if (::lstat(next.c_str(), &status) != 0) return {next + rest, "", ""};
    if (!S_ISLNK(status.st_mode)) {
      done = next;
      continue;
    }
    if (is_strangers_trap(done, status))
      return {next,
              "it leads over the link " + in_quotes(next) + ", which somebody else put where everybody may put one",
              "name the file that you mean, without links"};
    char target[PATH_MAX];
    const ssize_t length = ::readlink(next.c_str(), target, sizeof target);
    if (++links > kMostLinks || length <= 0) return {next, std::strerror(ELOOP), remedy_for(ELOOP)};
    rest = std::string(target, static_cast<std::size_t>(length)) + rest;
    if (target[0] == '/') done = "/";
  }
  return {done + (rest.empty() || done == "/" ? "" : "/"), "", ""};
}

void make_folder(const std::string& option, const std::string& path) {
  const auto refuse = [&](const std::string& why, const std::string& remedy) {
    throw UsageError(option + " " + as_typed(path) + " can't be made a folder: " + why + "; " + remedy);
  };
  const Destination destination = destination_of(path);
  if (!destination.why.empty()) refuse(destination.why, destination.remedy);
  std::string done = destination.path[0] == '/' ? "/" : "";
  for (std::string rest = destination.path; rest.find_first_not_of('/') != std::string::npos;) {
    const std::string component = take_component(rest);
    done += (done.empty() || done.back() == '/' ? "" : "/") + component;
    const SignalHold hold;
    if (::mkdir(done.c_str(), 0777) == 0) {
      remember_unfinished(done, true);
      continue;
    }
    const int error = errno;
    struct stat status = {};
    if (::stat(done.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
    refuse(std::strerror(error == EEXIST ? ENOTDIR : error), "choose another path");
  }
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

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace muonwalk
