#include "sim/launch/rendezvous.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "src/errors.hpp"
#include "src/io/open_file.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenReads(20);
// How long rank 0 is tried at the port that the file says, before the file is read again: one of a run that was killed
// may have been left there.
constexpr milliseconds kOneTry(500);

struct Session {
  int port = 0;
  Secret secret = {};
};

std::string session_text(const Session& session) {
  return fmt::format("muonwalk {} {:02x}\n", session.port, fmt::join(session.secret, ""));
}

std::optional<Session> parse_session(const std::string& text) {
  Session session;
  char digits[2 * sizeof(Secret) + 1] = {};
  if (std::sscanf(text.c_str(), "muonwalk %d %64[0-9a-f]\n", &session.port, digits) != 2) return std::nullopt;
  if (sodium_hex2bin(session.secret.data(), sizeof(Secret), digits, std::strlen(digits), nullptr, nullptr, nullptr) !=
      0)
    return std::nullopt;
  return session_text(session) == text ? std::optional<Session>(session) : std::nullopt;
}

// Opens the folder of a session file, which has to be ours alone.
OpenFile open_folder(const std::string& file, std::string& reason) {
  const std::string folder = file.substr(0, file.rfind('/'));
  OpenFile opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  reason = opened ? private_folder_complaint(opened.descriptor()) : std::strerror(errno);
  if (!reason.empty()) opened.close();
  return opened;
}

std::string name_of(const std::string& file) { return file.substr(file.rfind('/') + 1); }

// Reads the session file; nothing where there is none yet, or none that we would trust.
std::optional<Session> read_session(const std::string& file, std::string& reason) {
  const OpenFile folder = open_folder(file, reason);
  if (!folder) return std::nullopt;
  const OpenFile opened(
      openat(folder.descriptor(), name_of(file).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  reason = opened ? read_private_file(opened.descriptor(), text) : std::strerror(errno);
  if (!reason.empty()) return std::nullopt;
  std::optional<Session> session = parse_session(text);
  if (!session) reason = "it does not hold what rank 0 writes there";
  return session;
}

}  // namespace

Rendezvous::Rendezvous(const Launch& launch)
    : secret_(launch.secret ? *launch.secret : random_bytes()),
      listener_(launch.address, launch.rendezvous_port, secret_),
      owner_process_(getpid()) {
  if (launch.session_file.empty()) return;
  const std::string text = session_text({listener_.port(), secret_});
  // With another name first, so that nobody finds half of it. Nobody else can do anything in this folder.
  const std::string beside = fmt::format("{}{}-0{}", kUnfinishedBegin, getpid(), kUnfinishedEnd);
  std::string reason;
  const OpenFile folder = open_folder(launch.session_file, reason);
  const SignalHold hold;
  if (folder) {
    const OpenFile file(
        openat(folder.descriptor(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const bool written =
        file && fchmod(file.descriptor(), 0600) == 0 &&
        write(file.descriptor(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        renameat(folder.descriptor(), beside.c_str(), folder.descriptor(), name_of(launch.session_file).c_str()) == 0;
    if (!written) {
      reason = std::strerror(errno);
      if (file) unlinkat(folder.descriptor(), beside.c_str(), 0);
    }
  }
  if (!reason.empty())
    throw UsageError(
        fmt::format("rank 0 can't leave word for the others in {}, the folder of {}: {}; give all ranks "
                    "--rendezvous HOST:PORT and --secret-file FILE",
                    in_quotes(launch.session_file.substr(0, launch.session_file.rfind('/'))), launch.launcher, reason));
  file_ = launch.session_file;
  unfinished_ = remember_unfinished(file_, false);
}

void Rendezvous::close() {
  listener_.close();
  if (file_.empty() || owner_process_ != getpid()) return;
  const SignalHold hold;
  unlink(file_.c_str());
  forget_unfinished(unfinished_);
  file_.clear();
}

Joined join_rendezvous(const Launch& launch, milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  if (launch.session_file.empty()) {
    if (!launch.secret) throw std::logic_error("a launch of several ranks without a secret");
    return {connect_to(launch.rendezvous_host, launch.rendezvous_port, launch.address, *launch.secret, deadline),
            *launch.secret};
  }
  std::string reason;
  for (; steady_clock::now() < deadline; std::this_thread::sleep_for(kBetweenReads)) {
    const std::optional<Session> session = read_session(launch.session_file, reason);
    if (!session) continue;
    try {
      return {connect_to(launch.address, session->port, launch.address, session->secret,
                         std::min(deadline, steady_clock::now() + kOneTry)),
              session->secret};
    } catch (const RunError& error) {
      reason = error.what();
    }
  }
  throw RunError(fmt::format("rank {} found no word of rank 0 in {}: {}; see that rank 0 was started", launch.rank,
                             in_quotes(launch.session_file), reason));
}

}  // namespace muonwalk::sim
