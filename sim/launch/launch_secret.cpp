#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "sim/launch/launch.hpp"
#include "src/errors.hpp"
#include "src/io/open_file.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::size_t kLeastBytes = 16;
constexpr std::size_t kMostPrivateBytes = 4096;  // of a file that holds a secret
constexpr char kHowToMakeOne[] = "make one with: (umask 077; head -c 32 /dev/urandom | base64 > secret)";

// What is wrong with something open that has to be of this kind, and this user's alone: others may do nothing with it.
std::string complaint(int descriptor, mode_t kind, const char* of_another_kind, const char* others_may) {
  struct stat found = {};
  if (fstat(descriptor, &found) != 0) return std::strerror(errno);
  if ((found.st_mode & S_IFMT) != kind) return of_another_kind;
  if (found.st_uid != geteuid()) return "it belongs to another user";
  if ((found.st_mode & 077) != 0) return fmt::format("others may {} it (mode {:o})", others_may, found.st_mode & 0777);
  return "";
}

}  // namespace

Secret secret_from_text(const std::string& text, const std::string& from) {
  const char space[] = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(space);
  const std::string own =
      begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(space) + 1 - begin);
  const bool digits = std::all_of(own.begin(), own.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (own.size() < (digits ? 2 : 1) * kLeastBytes)
    throw UsageError(
        fmt::format("the secret in {} is too short to be one; it takes at least {} bytes, or {} hex digits; {}", from,
                    kLeastBytes, 2 * kLeastBytes, kHowToMakeOne));
  Secret secret;
  crypto_generichash(secret.data(), secret.size(), reinterpret_cast<const unsigned char*>(own.data()), own.size(),
                     nullptr, 0);
  return secret;
}

Secret secret_from_file(const std::string& path) {
  std::string text;
  std::string reason;
  const OpenFile file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file)
    reason = errno == ELOOP ? "it is a symbolic link" : std::strerror(errno);
  else
    reason = read_private_file(file.descriptor(), text);
  if (!reason.empty())
    throw UsageError(fmt::format(
        "--secret-file {} can't be the run's secret: {}; it takes a file of yours that nobody else may read; {}",
        as_typed(path), reason, kHowToMakeOne));
  return secret_from_text(text, "--secret-file " + as_typed(path));
}

Secret secret_of_run(const Secret& launch, const Challenge& run_number) {
  return proof_of(launch, "run", 0, 0, run_number, run_number);
}

std::string private_folder_complaint(int descriptor) {
  return complaint(descriptor, S_IFDIR, "it is not a folder", "enter");
}

std::string read_private_file(int descriptor, std::string& text) {
  if (const std::string wrong = complaint(descriptor, S_IFREG, "it is not a file", "read or write"); !wrong.empty())
    return wrong;
  std::array<char, kMostPrivateBytes + 1> bytes;
  std::size_t count = 0;
  for (ssize_t more = 1; more != 0 && count < bytes.size();) {
    more = read(descriptor, bytes.data() + count, bytes.size() - count);
    if (more < 0 && errno != EINTR) return std::strerror(errno);
    if (more > 0) count += static_cast<std::size_t>(more);
  }
  if (count > kMostPrivateBytes) return fmt::format("it is longer than {} bytes", kMostPrivateBytes);
  text.assign(bytes.data(), count);
  return "";
}

}  // namespace muonwalk::sim
