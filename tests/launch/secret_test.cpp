#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "sim/launch/launch.hpp"
#include "sim/launch/rendezvous.hpp"
#include "tests/launch/refusal.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using testing::expect_refused;

namespace {

namespace fs = std::filesystem;

// A folder of this user's alone that goes with the test.
struct Folder {
  Folder() {
    std::string name = fs::temp_directory_path() / "muonwalk-launch-XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string whole = path + '/' + name;
    std::ofstream(whole) << text;
    chmod(whole.c_str(), mode);
    return whole;
  }
  std::string path;
};

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
  CHECK((secret == secret_from_text(std::string("\n ") + kText + "\r\n", "test")));
  CHECK((secret != secret_from_text("correct horse battery stapler", "test")));
  CHECK((secret_from_text("0123456789abcdef0123456789abcdef", "test") != secret));
  CHECK_NOTHROW(secret_from_text("sixteen letters!", "test"));
  for (const char* weak : {"", " \n", "fifteen letters", "0123456789abcdef", "0123456789abcdef0123456789abcde"})
    expect_refused([&] { secret_from_text(weak, "MUONWALK_SECRET"); }, {"MUONWALK_SECRET", "16 bytes", "urandom"});
  // A run's own secret comes from the launch's and its number, and is neither.
  Challenge one = {}, two = {};
  two[31] = 1;
  const std::set<Secret> all = {secret, one, two, secret_of_run(secret, one), secret_of_run(secret, two)};
  CHECK(all.size() == 5);
}

TEST_CASE("a secret file that somebody else could read, write or put there is refused") {
  const Folder folder;
  const std::string good = folder.file("good", std::string(kText) + '\n');
  CHECK((secret_from_file(good) == secret_from_text(kText, "test")));
  CHECK_NOTHROW(secret_from_file(folder.file("read_only", kText, 0400)));
  const auto refused = [](const std::string& path, const std::string& why) {
    expect_refused([&] { secret_from_file(path); }, {"--secret-file " + path, why});
  };
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0644, 0666, 0777})
    refused(folder.file("mode", kText, mode), "others may read or write it");
  refused(folder.file("short", "fifteen letters"), "too short");
  refused(folder.file("empty", ""), "too short");
  refused(folder.file("long", std::string(5000, 'x')), "longer than 4096 bytes");
  refused(folder.path + "/missing", "No such file");
  refused(folder.path, "not a file");
  fs::create_symlink(good, folder.path + "/link");
  refused(folder.path + "/link", "symbolic link");
  const std::string pipe = folder.path + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  refused(pipe, "not a file");  // and nobody waits for a writer
  if (geteuid() == 0) {
    const std::string foreign = folder.file("foreign", kText);
    REQUIRE(chown(foreign.c_str(), 12345, 12345) == 0);
    refused(foreign, "another user");
  } else {
    MESSAGE("left out: only root can give a file to another user");
  }
}

TEST_CASE("in a launcher's own folder rank 0 leaves word for the others, and takes it away when all are there") {
  const Folder folder;
  const std::string file = folder.path + "/muonwalk-1";
  // What a run that was killed may have left.
  folder.file("muonwalk-1", "muonwalk 1 " + std::string(64, 'a') + "\n");
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
  CHECK(fs::is_empty(folder.path));
  // The second run in the same folder has another secret.
  Rendezvous second(in_session(file, 0));
  CHECK((second.secret() != meeting.secret()));
}

TEST_CASE("a launcher's folder that others may enter, a link, and a file that is not rank 0's are not trusted") {
  const Folder folder;
  const std::string file = folder.path + "/muonwalk-1";
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
    folder.file("muonwalk-1", text);
    not_found(file, "does not hold what rank 0 writes");
  }
  folder.file("muonwalk-1", good, 0644);
  not_found(file, "others may read");
  fs::rename(file, folder.path + "/target");
  chmod((folder.path + "/target").c_str(), 0600);
  fs::create_symlink(folder.path + "/target", file);
  not_found(file, "symbolic links");
  // Rank 0 puts its file in the link's place and does not follow it.
  {
    const Rendezvous meeting(in_session(file, 0));
    CHECK(fs::is_regular_file(fs::symlink_status(file)));
  }
  std::string untouched;
  std::getline(std::ifstream(folder.path + "/target"), untouched);
  CHECK(untouched + '\n' == good);

  chmod(folder.path.c_str(), 0750);
  not_found(file, "others may enter");
  expect_refused([&] { Rendezvous meeting(in_session(file, 0)); }, {"Open MPI", "others may enter", "--rendezvous"});
  chmod(folder.path.c_str(), 0700);
  fs::create_directory_symlink(folder.path, folder.path + "/door");
  expect_refused([&] { Rendezvous meeting(in_session(folder.path + "/door/muonwalk-1", 0)); }, {"Open MPI"});
}
