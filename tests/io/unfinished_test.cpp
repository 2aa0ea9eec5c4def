// What is left of files and folders that a program has begun and not finished, however it ends.

#include "src/io/unfinished.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "src/text/names.hpp"
#include "tests/io/in_child.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

using Names = std::vector<std::string>;

// While it lives, files have provisional names, as on a file system that has no others.
struct NamedFiles {
  NamedFiles() { setenv("MUONWALK_UNNAMED_FILES", "off", 1); }
  ~NamedFiles() { unsetenv("MUONWALK_UNNAMED_FILES"); }
};

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777u;
}

}  // namespace

TEST_CASE("unfinished: until it is whole, a file has no name, and SIGKILL leaves nothing") {
  const TemporaryFolder folder;
  if (!has_unnamed_files(folder)) {
    MESSAGE("left out: this file system has no unnamed files");
    return;
  }
  write_text(folder.file("old"), "before");
  for (const char* name : {"new", "old"}) {
    {
      FileBeside file(folder.file(name));
      file.write("half", 4);
      CHECK(folder.names() == Names{"old"});
    }
    const int end = in_child([&] {
      FileBeside file(folder.file(name));
      file.write("half", 4);
      kill(getpid(), SIGKILL);
    });
    CHECK(end == 128 + SIGKILL);
    CHECK(folder.names() == Names{"old"});
    CHECK(read_text(folder.file("old")) == "before");
  }
  FileBeside file(folder.file("old"));
  file.write("after", 5);
  file.commit();
  CHECK(folder.names() == Names{"old"});
  CHECK(read_text(folder.file("old")) == "after");
}

TEST_CASE("unfinished: with a provisional name, a file goes however the program ends, if that can be seen") {
  const TemporaryFolder folder;
  const NamedFiles named;
  {
    FileBeside file(folder.file("x"));
    REQUIRE(folder.names().size() == 1);
    CHECK(is_unfinished_name(folder.names()[0]));
    // A process that is forked has nothing to remove.
    CHECK(in_child([&] { std::exit(5); }) == 5);
    CHECK(in_child([&] {
            remove_unfinished();
            _exit(6);
          }) == 6);
    CHECK(folder.names().size() == 1);
    // Nor does it forget for its parent, which may be the one that removes it.
    Unfinished* mine = remember_unfinished(folder.file("mine"), false);
    write_text(folder.file("mine"), "x");
    CHECK(in_child([&] {
            forget_unfinished(mine);
            _exit(7);
          }) == 7);
    remove_unfinished();
    CHECK(folder.names().empty());
  }
  CHECK(in_child([&] {
          FileBeside file(folder.file("x"));
          std::exit(7);
        }) == 7);
  CHECK(folder.names().empty());
  CHECK(in_child([&] {
          FileBeside file(folder.file("x"));
          std::signal(SIGTERM, [](int) {
            remove_unfinished();
            _exit(8);
          });
          raise(SIGTERM);
        }) == 8);
  CHECK(folder.names().empty());
  FileBeside whole(folder.file("x"));
  whole.commit();
  remove_unfinished();
  CHECK(folder.names() == Names{"x"});
}

TEST_CASE(
    "unfinished: what a process has begun that was killed can be removed by the one that forked it, and no more") {
  const TemporaryFolder folder;
  const NamedFiles named;
  FileBeside mine(folder.file("x"));
  const Names before = folder.names();
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    make_folder("--save", folder.file("a/b"));
    FileBeside half(folder.file("a/b/y")), other(folder.file("z"));
    write_text(folder.file("whole"), "x");
    if (write(ends[1], "!", 1) != 1) _exit(1);
    while (true) pause();
  }
  char ready;
  REQUIRE(read(ends[0], &ready, 1) == 1);
  CHECK(folder.names().size() == before.size() + 3);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  remove_unfinished_of(child);
  CHECK(folder.names() == Names{before[0], "whole"});
  mine.commit();
}

TEST_CASE("unfinished: however many files come one after the other, each is remembered") {
  const TemporaryFolder folder;
  const NamedFiles named;
  CHECK(in_child([&] {
          for (int file = 0; file < 3000; ++file) forget_unfinished(remember_unfinished(folder.file("none"), false));
          FileBeside half(folder.file("x"));
          std::exit(folder.names().size() == 1 ? 7 : 1);
        }) == 7);
  CHECK(folder.names().empty());
}

TEST_CASE("unfinished: folders that were made go when nothing is in them, and stay otherwise") {
  const TemporaryFolder folder;
  CHECK(in_child([&] {
          make_folder("--save", folder.file("a/b/c/"));
          std::exit(0);
        }) == 0);
  CHECK(folder.names().empty());
  REQUIRE(mkdir(folder.file("mine").c_str(), 0777) == 0);
  CHECK(in_child([&] {
          make_folder("--save", folder.file("mine"));
          make_folder("--save", folder.file("mine/deeper"));
          make_folder("--save", folder.file("kept/more"));
          text_file_beside(folder.file("kept/file"), "x")->commit();
          std::exit(0);
        }) == 0);
  CHECK(folder.names() == Names{"kept", "mine"});
  CHECK_FALSE(std::filesystem::exists(folder.file("mine/deeper")));
  CHECK_FALSE(std::filesystem::exists(folder.file("kept/more")));
  write_text(folder.file("file"), "x");
  const auto refusal = [&](const std::string& path) { return usage_error([&] { make_folder("--save", path); }); };
  const auto sentence = [](const std::string& path, const std::string& why) {
    return "--save " + as_typed(path) + " can't be made a folder: " + why + "; choose another path";
  };
  for (const char* path : {"file", "file/x"})
    CHECK(refusal(folder.file(path)) == sentence(folder.file(path), "Not a directory"));
  const std::string long_name = folder.file(std::string(300, 'n'));
  CHECK(refusal(long_name) == sentence(long_name, "File name too long"));
  REQUIRE(symlink("round", folder.file("round").c_str()) == 0);
  for (const char* path : {"round", "round/x"})
    CHECK(refusal(folder.file(path)) == sentence(folder.file(path), "Too many levels of symbolic links"));
}

TEST_CASE("unfinished: a folder is made for whoever may have it, below a link too, and where the program stands") {
  const TemporaryFolder folder;
  REQUIRE(mkdir(folder.file("real").c_str(), 0700) == 0);
  REQUIRE(symlink("real", folder.file("link").c_str()) == 0);
  CHECK(in_child([&] {
          umask(0);
          if (chdir(folder.path().c_str()) != 0) _exit(1);
          make_folder("--save", "link/one//two/");
          make_folder("--save", "here");
          _exit(3);  // without what is done at exit
        }) == 3);
  CHECK(folder.names() == Names{"here", "link", "real"});
  for (const char* made : {"here", "real/one", "real/one/two"}) CHECK(mode_of(folder.file(made)) == 0777);
  CHECK(mode_of(folder.file("real")) == 0700);
}

TEST_CASE("unfinished: a link that somebody else put into a sticky folder is not followed") {
  const TemporaryFolder folder;
  const std::string sticky = folder.file("sticky"), link = sticky + "/link";
  write_text(folder.file("precious"), "mine");
  REQUIRE(mkdir(sticky.c_str(), 0777) == 0);
  REQUIRE(mkdir(folder.file("folder").c_str(), 0777) == 0);
  REQUIRE(symlink("../precious", link.c_str()) == 0);
  REQUIRE(symlink("../folder", (sticky + "/to folder").c_str()) == 0);
  REQUIRE(chmod(sticky.c_str(), 01777) == 0);
  text_file_beside(link, "my own link is followed")->commit();
  CHECK(read_text(folder.file("precious")) == "my own link is followed");
  if (geteuid() != 0) {
    MESSAGE("left out: only root can make a link of somebody else's");
    return;
  }
  REQUIRE(lchown(link.c_str(), 12345, 12345) == 0);
  REQUIRE(lchown((sticky + "/to folder").c_str(), 12345, 12345) == 0);
  for (const std::string& path : {link, sticky + "/to folder/x"}) {
    const std::string sentence = usage_error([&] { text_file_beside(path, "stolen")->commit(); });
    const std::string over = path == link ? link : sticky + "/to folder";
    CHECK(sentence == "can't write \"" + path + "\": it leads over the link \"" + over +
                          "\", which somebody else put where everybody may put one; name the file that you mean, "
                          "without links");
  }
  CHECK(usage_error([&] { make_folder("--save", sticky + "/to folder/y"); }).find("somebody else") !=
        std::string::npos);
  CHECK(in_child([&] {  // the same for a name alone, where the program stands
          if (chdir(sticky.c_str()) != 0) _exit(1);
          const std::string sentence = usage_error([] { text_file_beside("link", "stolen")->commit(); });
          _exit(
              sentence ==
                      "can't write \"link\": it leads over the link \"link\", which somebody else put where everybody "
                      "may put one; name the file that you mean, without links"
                  ? 42
                  : 2);
        }) == 42);
  REQUIRE(chmod(sticky.c_str(), 01757) == 0);  // its group may not write, but everybody else may
  CHECK(usage_error([&] { text_file_beside(link, "stolen")->commit(); }).find("somebody else") != std::string::npos);
  CHECK(usage_error([&] { make_folder("--save", link); }) ==
        "--save " + as_typed(link) + " can't be made a folder: it leads over the link \"" + link +
            "\", which somebody else put where everybody may put one; name the file that you mean, without links");
  CHECK(read_text(folder.file("precious")) == "my own link is followed");
  CHECK(std::filesystem::is_empty(folder.file("folder")));
  // Where not everybody may put a link, or anybody may take it away, or the folder is its owner's, it was put on
  // purpose.
  for (const mode_t mode : {0755u, 01755u, 01775u, 0777u, 01777u}) {
    CAPTURE(mode);
    REQUIRE(chown(sticky.c_str(), mode == 01777u ? 12345 : 0, 0) == 0);
    REQUIRE(chmod(sticky.c_str(), mode) == 0);
    text_file_beside(link, "followed " + std::to_string(mode))->commit();
    CHECK(read_text(folder.file("precious")) == "followed " + std::to_string(mode));
  }
}

TEST_CASE("unfinished: the name of an unfinished file, and others") {
  for (const char* name : {".muonwalk-1-0.partial", "a/b/.muonwalk-12-3.partial"}) CHECK(is_unfinished_name(name));
  for (const char* name : {"", "x", ".muonwalk-1-0.json", ".muonwalk-1-0.partial.json", "x.muonwalk-1-0.partial",
                           "muonwalk-1-0.partial", ".muonwalk-1.partial/x"})
    CHECK_FALSE(is_unfinished_name(name));
}

TEST_CASE("unfinished: removing it leaves the last error of the system as it was, and what is gone already alone") {
  const TemporaryFolder folder;
  CHECK(in_child([&] {
          make_folder("--save", folder.file("kept"));
          write_text(folder.file("kept/x"), "x");
          remember_unfinished(folder.file("gone"), false);
          remember_unfinished(folder.file("there"), false);
          Unfinished* finished = remember_unfinished(folder.file("finished"), false);
          write_text(folder.file("there"), "x");
          write_text(folder.file("finished"), "x");
          forget_unfinished(finished);
          forget_unfinished(nullptr);
          errno = 77;
          remove_unfinished();
          const int error = errno;
          write_text(folder.file("there"), "somebody else's");
          remove_unfinished();  // it has been removed once, and is not looked for again
          _exit(error == 77 ? 42 : 2);
        }) == 42);
  CHECK(folder.names() == Names{"finished", "kept", "there"});
}

TEST_CASE("unfinished: the folders of a path, and paths of which the folder is the root or none is named") {
  for (const auto& [path, above] : std::initializer_list<std::pair<const char*, const char*>>{
           {"x", "."}, {"/x", "/"}, {"a/x", "a"}, {"/a/x", "/a"}, {"a/b/x", "a/b"}, {"../x", ".."}, {"a/", "a"}})
    CHECK(folder_of(path) == above);
}

TEST_CASE("unfinished: links are followed in every part of a path, also to the root; slashes at the end stay") {
  const TemporaryFolder folder;
  REQUIRE(mkdir(folder.file("real").c_str(), 0777) == 0);
  REQUIRE(mkdir(folder.file("real/deep").c_str(), 0777) == 0);
  write_text(folder.file("real/plain"), "x");
  REQUIRE(symlink(folder.file("real").c_str(), folder.file("absolute").c_str()) == 0);
  REQUIRE(symlink("deep", folder.file("real/relative").c_str()) == 0);
  REQUIRE(symlink("/", folder.file("root").c_str()) == 0);
  REQUIRE(symlink("real/plain", folder.file("to plain").c_str()) == 0);
  const std::string here = std::filesystem::canonical(folder.path()).string();
  const auto leads = [&](const std::string& path) {
    const Destination destination = destination_of(path);
    CHECK(destination.why.empty());
    CHECK(destination.remedy.empty());
    return destination.path;
  };
  CHECK(leads(here + "/absolute/relative/new") == here + "/real/deep/new");
  CHECK(leads(here + "/absolute//relative//none/new/") == here + "/real/deep/none/new/");
  CHECK(leads(here + "/absolute/") == here + "/real/");
  CHECK(leads(here + "/absolute") == here + "/real");
  CHECK(leads(here + "/root" + here + "/absolute") == here + "/real");
  CHECK(leads("/") == "/");
  CHECK(leads("//") == "/");
  CHECK(leads("none/at/all") == "none/at/all");
  for (const char* plain : {"real/plain/", "to plain/"})
    CHECK(usage_error([&] { text_file_beside(folder.file(plain), "x")->commit(); }) ==
          "can't write \"" + folder.file(plain) + "\": Not a directory; create its folder first");
  CHECK(read_text(folder.file("real/plain")) == "x");
}

namespace {

// The signals that this thread does not get now.
std::vector<int> held_signals() {
  sigset_t now;
  REQUIRE(pthread_sigmask(SIG_BLOCK, nullptr, &now) == 0);
  std::vector<int> held;
  for (const int one : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGCHLD})
    if (sigismember(&now, one) == 1) held.push_back(one);
  return held;
}

}  // namespace

TEST_CASE("SignalHold: all signals, or those that are named, and then those that were held before") {
  using Signals = std::vector<int>;
  const Signals before = held_signals();
  REQUIRE(before.empty());
  {
    const SignalHold two{SIGUSR1, SIGALRM};
    CHECK(held_signals() == Signals{SIGUSR1, SIGALRM});
    {
      const SignalHold all;
      CHECK(held_signals().size() == 8);
      { const SignalHold one{SIGHUP}; }
      CHECK(held_signals().size() == 8);
    }
    CHECK(held_signals() == Signals{SIGUSR1, SIGALRM});
    { const SignalHold one{SIGHUP}; }
    CHECK(held_signals() == Signals{SIGUSR1, SIGALRM});
  }
  CHECK(held_signals().empty());
}

TEST_CASE("unfinished: a folder that may not be made is refused with the system's reason") {
  const TemporaryFolder folder;
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(mkdir(folder.file("closed").c_str(), 0555) == 0);
  const std::string path = folder.file("closed/below/deeper");
  CHECK(in_child([&] {
          if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
          _exit(usage_error([&] { make_folder("--save", path); }) ==
                        "--save " + as_typed(path) + " can't be made a folder: Permission denied; choose another path"
                    ? 42
                    : 2);
        }) == 42);
  CHECK(std::filesystem::is_empty(folder.file("closed")));
}
