// A file that takes its place at the end, with unnamed files and without: names, permissions, and what stays open.
#include "src/io/file_beside.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/io/file_identity.hpp"
#include "src/io/safetensors.hpp"
#include "src/io/unfinished.hpp"
#include "src/text/names.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

std::string refused_write(const std::string& path) {
  return usage_error([&] { text_file_beside(path, "text")->commit(); });
}

}  // namespace

TEST_CASE("FileBeside: what can't take its place at the end is not a success, and nothing is left of it") {
  for (const char* unnamed : {"on", "off"}) {
    CAPTURE(unnamed);
    setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
    const TemporaryFolder folder;
    const std::string path = folder.file("x");
    std::string sentence;
    {
      FileBeside file(path);
      file.write("text", 4);
      std::filesystem::create_directory(path);  // meanwhile somebody has made a folder of this name
      try {
        file.commit();
      } catch (const UsageError& error) {
        sentence = error.what();
      }
      CHECK(folder.names() == std::vector<std::string>{"x"});  // at once, and not only when the writer goes
    }
    CHECK(sentence == "can't write \"" + path + "\": Is a directory; choose another path");
    CHECK(folder.names() == std::vector<std::string>{"x"});
    CHECK(std::filesystem::is_directory(path));
  }
  unsetenv("MUONWALK_UNNAMED_FILES");
}

TEST_CASE("FileBeside: a provisional name that a killed run left behind is passed by, and stays") {
  const TemporaryFolder folder;
  const auto leave_next = [&folder] {  // the next three names that would be taken
    setenv("MUONWALK_UNNAMED_FILES", "off", 1);
    const std::vector<std::string> before = folder.names();
    const FileBeside file(folder.file("probe"));
    std::string name;
    for (const std::string& each : folder.names())
      if (std::find(before.begin(), before.end(), each) == before.end()) name = each;
    REQUIRE(is_unfinished_name(name));
    const std::size_t dash = name.rfind('-');
    for (int i = 1; i <= 3; ++i)
      write_text(
          folder.file(name.substr(0, dash + 1) + std::to_string(std::stoi(name.substr(dash + 1)) + i) + ".partial"),
          "left behind");
  };
  std::size_t left = 0;
  for (const char* unnamed : {"on", "off"})
    for (const char* text : {"one", "another"}) {
      CAPTURE(unnamed);
      leave_next();
      left += 3;
      setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
      text_file_beside(folder.file("x"), text)->commit();
      text_file_beside(folder.file("x"), std::string(text) + " again")->commit();  // in place of a file that is there
      CHECK(read_text(folder.file("x")) == std::string(text) + " again");
      CHECK(folder.names().size() == left + 1);
      for (const std::string& name : folder.names())
        if (name != "x") CHECK(read_text(folder.file(name)) == "left behind");
      if (std::string(unnamed) == "on") continue;
      std::filesystem::remove(folder.file("x"));
    }
  unsetenv("MUONWALK_UNNAMED_FILES");
}

TEST_CASE("files: whatever becomes of them, none stays open") {
  const TemporaryFolder folder;
  const auto lowest_free = [] {
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    close(file);
    return file;
  };
  std::filesystem::create_directory(folder.file("folder"));
  const int before = lowest_free();
  for (const char* unnamed : {"on", "off"}) {
    CAPTURE(unnamed);
    setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
    for (int times = 0; times < 2; ++times) text_file_beside(folder.file("x"), "text")->commit();
    CHECK(lowest_free() == before);
    { const FileBeside dropped(folder.file("x")); }
    CHECK(lowest_free() == before);
    for (const char* name : {"folder", "none/x", "x/y"}) CHECK(refused_write(folder.file(name)) != "(no UsageError)");
    CHECK(lowest_free() == before);
  }
  unsetenv("MUONWALK_UNNAMED_FILES");
  write_safetensors(folder.file("tensors"), {});
  CHECK(read_safetensors(folder.file("tensors")).tensors.empty());
  CHECK(lowest_free() == before);
  for (const char* name : {"folder", "none", "x"}) CHECK_THROWS_AS(read_safetensors(folder.file(name)), UsageError);
  CHECK(lowest_free() == before);
  require_distinct_files({{"--a", folder.path(), PathUse::reads}, {"--b", folder.file("new"), PathUse::writes}});
  CHECK(lowest_free() == before);
}

TEST_CASE("FileBeside: a new file has the usual permissions; of an old one owner and group stay, or nobody gets more") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  REQUIRE(chmod(folder.path().c_str(), 0777) == 0);
  const auto now = [&path] {
    struct stat status = {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    return status;
  };
  const mode_t before = umask(0);
  for (const char* unnamed : {"on", "off"}) {
    CAPTURE(unnamed);
    setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
    std::filesystem::remove(path);
    text_file_beside(path, "new")->commit();
    CHECK((now().st_mode & 0777u) == 0666u);
    if (geteuid() != 0) continue;  // only root can give files away
    REQUIRE(chown(path.c_str(), 12345, 54321) == 0);
    REQUIRE(chmod(path.c_str(), 0640) == 0);
    text_file_beside(path, "by root")->commit();
    CHECK(now().st_uid == 12345);
    CHECK(now().st_gid == 54321);
    CHECK((now().st_mode & 0777u) == 0640u);
    // Somebody else can't keep the owner; the group only where it is one of theirs, and else what it was allowed goes
    // but for what everybody is.
    for (const bool in_group : {true, false}) {
      REQUIRE(chown(path.c_str(), 12345, 54321) == 0);
      REQUIRE(chmod(path.c_str(), in_group ? 0660 : 0672) == 0);
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        const gid_t group = 54321;
        if (setgroups(in_group ? 1 : 0, &group) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
        _exit(refused_write(path) == "(no UsageError)" ? 42 : 2);
      }
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      CHECK(WEXITSTATUS(status) == 42);
      CHECK(now().st_uid == 65534);
      CHECK(now().st_gid == (in_group ? 54321 : 65534));
      CHECK((now().st_mode & 0777u) == (in_group ? 0660u : 0622u));
    }
  }
  unsetenv("MUONWALK_UNNAMED_FILES");
  umask(before);
}

TEST_CASE(
    "FileBeside: where its folder goes away meanwhile, a sentence, for a new file and for one in place of another") {
  for (const char* unnamed : {"on", "off"})
    for (const bool replaces : {false, true}) {
      CAPTURE(unnamed);
      CAPTURE(replaces);
      setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
      const TemporaryFolder folder;
      std::filesystem::create_directory(folder.file("below"));
      const std::string path = folder.file("below/x");
      if (replaces) write_text(path, "old");
      FileBeside file(path);
      file.write("text", 4);
      std::filesystem::remove_all(folder.file("below"));
      CHECK(usage_error([&] { file.commit(); }) ==
            "can't write \"" + path + "\": No such file or directory; create its folder first");
      CHECK(folder.names().empty());
    }
  unsetenv("MUONWALK_UNNAMED_FILES");
}

TEST_CASE("FileBeside: no program that is started meanwhile gets the file that is being written") {
  const TemporaryFolder folder;
  for (const char* unnamed : {"on", "off"})
    for (const char* name : {"new", "old"}) {
      CAPTURE(unnamed);
      setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
      write_text(folder.file("old"), "x");
      const int next = dup(2);
      REQUIRE(next >= 0);
      close(next);
      const FileBeside file(folder.file(name));
      const int flags = fcntl(next, F_GETFD);
      REQUIRE(flags >= 0);  // it is that one
      CHECK((flags & FD_CLOEXEC) != 0);
    }
  unsetenv("MUONWALK_UNNAMED_FILES");
}

TEST_CASE("commit_together: all files take their places, or none does that was not there before") {
  const TemporaryFolder folder;
  const auto beside = [&] {
    FilesBeside files;
    for (const char* name : {"a", "b", "c"}) files.push_back(text_file_beside(folder.file(name), name));
    return files;
  };
  {
    const FilesBeside files = beside();
    for (const std::string& name : folder.names()) CHECK(is_unfinished_name(name));
    REQUIRE(mkdir(folder.file("b").c_str(), 0777) == 0);  // somebody is quicker
    CHECK(usage_error([&] { FileBeside::commit_together(files); }).find("can't write " + in_quotes(folder.file("b"))) ==
          0);
  }
  CHECK(folder.names() == std::vector<std::string>{"b"});
  REQUIRE(rmdir(folder.file("b").c_str()) == 0);
  FileBeside::commit_together(beside());
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "c"});
  for (const char* name : {"a", "b", "c"}) CHECK(read_text(folder.file(name)) == name);
}
