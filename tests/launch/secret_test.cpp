#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "sim/launch/launch.hpp"
#include "sim/launch/listener.hpp"
#include "sim/launch/rendezvous.hpp"
#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/launch/refusal.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using testing::expect_refused;

namespace {

namespace fs = std::filesystem;

// A file of this name and mode in the folder.
std::string put(const TemporaryFolder& folder, const std::string& name, const std::string& text, mode_t mode = 0600) {
  write_text(folder.file(name), text);
  chmod(folder.file(name).c_str(), mode);
  return folder.file(name);
}

constexpr char kText[] = "correct horse battery staple";

Launch in_session(const std::string& file, int rank) {
  Launch launch;
  launch.rank = rank;
  launch.world_size = 2;
  launch.launcher = "Open MPI";
  launch.address = launch.rendezvous_host = "127.0.0.1";
  launch.session_file = file;
  return launch;
}

// Rank 0's side until somebody was let in, or for a while.
bool lets_somebody_in(Rendezvous& meeting) {
  for (int turn = 0; turn < 1000; ++turn) {
    if (meeting.listener().take()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace

TEST_CASE("a secret is 16 bytes of text or 32 hex digits, whatever white space is around it") {
  const Secret secret = secret_from_text(kText, "test");
  CHECK((secret == secret_from_text(std::string("\n\t ") + kText + "\r\n\n", "test")));
  CHECK((secret != secret_from_text("correct horse battery stapler", "test")));
  CHECK((secret_from_text("0123456789abcdef0123456789abcdef", "test") != secret));
  CHECK_NOTHROW(secret_from_text("sixteen letters!", "test"));
  for (const char* weak :
       {"", " \n", "fifteen letters", "0123456789abcdef", "0123456789abcdef0123456789abcde", "ABCDEF0123456789"})
    expect_refused([&] { secret_from_text(weak, "MUONWALK_SECRET"); }, {"MUONWALK_SECRET", "16 bytes", "urandom"});
  // Hex digits are digits however they are written, and one other letter makes text of them.
  CHECK_NOTHROW(secret_from_text("0123456789ABCDEFabcdef0123456789", "X"));
  CHECK_NOTHROW(secret_from_text("ABCDEF012345678g", "X"));
  // A run's own secret comes from the launch's and its number, and is neither.
  Challenge one = {}, two = {};
  two[31] = 1;
  const std::set<Secret> all = {secret, one, two, secret_of_run(secret, one), secret_of_run(secret, two)};
  CHECK(all.size() == 5);
}

TEST_CASE("a secret file that somebody else could read, write or put there is refused") {
  const TemporaryFolder folder;
  const std::string good = put(folder, "good", std::string(kText) + '\n');
  CHECK((secret_from_file(good) == secret_from_text(kText, "test")));
  CHECK_NOTHROW(secret_from_file(put(folder, "read_only", kText, 0400)));
  const auto refused = [](const std::string& path, const std::string& why) {
    expect_refused([&] { secret_from_file(path); }, {"--secret-file " + path, why});
  };
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0644, 0666, 0777})
    refused(put(folder, "mode", kText, mode), fmt::format("others may read or write it (mode {:o})", mode));
  refused(put(folder, "short", "fifteen letters"), "too short");
  refused(put(folder, "empty", ""), "too short");
  refused(put(folder, "long", std::string(4097, 'x')), "longer than 4096 bytes");
  CHECK((secret_from_file(put(folder, "longest", std::string(4096, 'x'))) ==
         secret_from_text(std::string(4096, 'x'), "test")));
  refused(folder.file("missing"), "No such file");
  refused(folder.path(), "not a file");
  fs::create_symlink(good, folder.file("link"));
  refused(folder.file("link"), "symbolic link");
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  refused(pipe, "not a file");  // and nobody waits for a writer
  if (geteuid() == 0) {
    const std::string foreign = put(folder, "foreign", kText);
    REQUIRE(chown(foreign.c_str(), 12345, 12345) == 0);
    refused(foreign, "another user");
  } else {
    MESSAGE("left out: only root can give a file to another user");
  }
}

TEST_CASE("in a launcher's own folder rank 0 leaves word for the others, and takes it away when all are there") {
  const TemporaryFolder folder;
  const std::string file = folder.file("muonwalk-1");
  // What a run that was killed may have left.
  put(folder, "muonwalk-1", "muonwalk 1 " + std::string(64, 'a') + "\n");
  Joined joined;
  std::thread other([&] { joined = join_rendezvous(in_session(file, 1), std::chrono::seconds(20)); });
  Rendezvous meeting(in_session(file, 0));
  struct stat found = {};
  REQUIRE(stat(file.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  CHECK(lets_somebody_in(meeting));
  other.join();
  CHECK(joined.socket);
  CHECK((joined.secret == meeting.secret()));
  meeting.close();
  CHECK(fs::is_empty(folder.path()));
  // The second run in the same folder has another secret.
  Rendezvous second(in_session(file, 0));
  CHECK((second.secret() != meeting.secret()));
}

TEST_CASE("a launcher's folder that others may enter, a link, and a file that is not rank 0's are not trusted") {
  const TemporaryFolder folder;
  const std::string file = folder.file("muonwalk-1");
  const std::string good = "muonwalk 1 " + std::string(64, 'a') + "\n";
  const auto not_found = [&](const std::string& at, const std::string& why) {
    std::string sentence;
    try {
      join_rendezvous(in_session(at, 1), std::chrono::milliseconds(50));
    } catch (const RunError& error) {
      sentence = error.what();
    }
    CAPTURE(sentence);
    CHECK(sentence.find("rank 1 found no word of rank 0") == 0);
    CHECK(sentence.find(why) != std::string::npos);
  };
  not_found(file, "No such file");
  for (const char* text : {"", "muonwalk\n", "muonwalk 1 aa\n", "something else entirely"}) {
    put(folder, "muonwalk-1", text);
    not_found(file, "does not hold what rank 0 writes");
  }
  put(folder, "muonwalk-1", good, 0644);
  not_found(file, "others may read");
  fs::rename(file, folder.file("target"));
  chmod((folder.file("target")).c_str(), 0600);
  fs::create_symlink(folder.file("target"), file);
  not_found(file, "symbolic links");
  // Rank 0 puts its file in the link's place and does not follow it.
  {
    const Rendezvous meeting(in_session(file, 0));
    CHECK(fs::is_regular_file(fs::symlink_status(file)));
  }
  CHECK(read_text(folder.file("target")) == good);

  chmod(folder.path().c_str(), 0750);
  not_found(file, "others may enter");
  expect_refused([&] { Rendezvous meeting(in_session(file, 0)); }, {"Open MPI", "others may enter", "--rendezvous"});
  chmod(folder.path().c_str(), 0700);
  fs::create_directory_symlink(folder.path(), folder.file("door"));
  expect_refused([&] { Rendezvous meeting(in_session(folder.file("door/muonwalk-1"), 0)); }, {"Open MPI"});
}

TEST_CASE("rank 0's word goes with rank 0, and not with a process that it has forked") {
  const TemporaryFolder folder;
  const std::string file = folder.file("muonwalk-1");
  {
    Rendezvous meeting(in_session(file, 0));
    const std::string word = read_text(file), beginning = fmt::format("muonwalk {} ", meeting.listener().port());
    CHECK(word.rfind(beginning, 0) == 0);
    CHECK(word.size() == beginning.size() + 64 + 1);
    const pid_t child = fork();
    if (child == 0) {
      meeting.close();
      _exit(0);
    }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(fs::exists(file));
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
    meeting.close();
    CHECK(!fs::exists(file));
    // A later run's word is no longer this one's to take away.
    put(folder, "muonwalk-1", "another run");
    meeting.close();
    CHECK(fs::exists(file));
  }
  CHECK(fs::exists(file));
}

TEST_CASE("where rank 0 never leaves word, or left it and is gone, the others say so when their time is over") {
  const TemporaryFolder folder;
  const std::string file = folder.file("muonwalk-1");
  const auto said = [&](int rank) -> std::string {
    try {
      join_rendezvous(in_session(file, rank), std::chrono::milliseconds(30));
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(said(7) ==
        "rank 7 found no word of rank 0 in \"" + file + "\": No such file or directory; see that rank 0 was started");
  int port = 0;
  {
    const Listener gone("127.0.0.1", 0, random_bytes());
    port = gone.port();
  }
  put(folder, "muonwalk-1", "muonwalk " + std::to_string(port) + " " + std::string(64, 'a') + "\n");
  const std::string left = said(2);
  CAPTURE(left);
  CHECK(left.find("rank 2 found no word of rank 0 in \"" + file +
                  "\": rank 0 was not found at 127.0.0.1:" + std::to_string(port) + ": Connection refused; ") == 0);
  Launch without = in_session("", 1);
  CHECK_THROWS_AS(join_rendezvous(without, std::chrono::milliseconds(30)), std::logic_error);
}

TEST_CASE("an address or a port that rank 0 can't listen at: a sentence that says which, and what else to give") {
  const Listener first("127.0.0.1", 0, random_bytes());
  const std::string port = std::to_string(first.port());
  const auto refused = [](const std::string& address, int number, const std::string& reason) {
    expect_refused([&] { Listener(address, number, random_bytes()); },
                   {"rank 0 can't listen at " + address + " port " + std::to_string(number) + " for the other ranks: " +
                    reason + "; choose another port with --rendezvous HOST:PORT, or another address with --interface"});
  };
  refused("127.0.0.1", first.port(), "Address already in use");
  refused("192.0.2.77", 0, "Cannot assign requested address");
  expect_refused([] { Listener("no address", 0, random_bytes()); },
                 {"rank 0 can't listen at", "no address", "port 0 for the other ranks: "});
}
