#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <string>

#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

std::string refusal(const std::string& path) {
  return usage_error([&] { write_text_file(path, "text"); });
}

}  // namespace

TEST_CASE("write_text_file: what is written is what is read, and a longer file is replaced") {
  const TemporaryFolder folder;
  const std::string path = folder.file("picture.svg");
  for (const std::string text : {"<svg>×</svg>\n<!-- longer -->\n", "short", ""}) {
    write_text_file(path, text);
    CHECK(read_text(path) == text);
  }
}

TEST_CASE("write_text_file: where nothing can be written, a sentence that names the path") {
  const TemporaryFolder folder;
  const std::string in_no_folder = folder.file("missing/picture.svg");
  CHECK(refusal(in_no_folder) ==
        "can't write \"" + in_no_folder + "\": No such file or directory; create its folder first");
  for (const std::string& path : {folder.path(), folder.file("")})
    CHECK(refusal(path) == "can't write \"" + path + "\": it is a folder; name a file in it");
  CHECK(refusal(folder.file("new/")) ==
        "can't write \"" + folder.file("new/") + "\": it names a folder; name a file in it");
  CHECK(refusal("") == "can't write \"\": its name is empty; name a file");
}

TEST_CASE("remedy_for: each error of the system has the remedy that can help, and no other") {
  const std::string folder = "create its folder first", rights = "choose a place where you may write",
                    room = "make room or choose another disk", other = "choose another path";
  const std::map<int, std::string> expected = {{ENOENT, folder}, {ENOTDIR, folder}, {EACCES, rights}, {EPERM, rights},
                                               {EROFS, rights},  {ENOSPC, room},    {EDQUOT, room},   {EFBIG, room}};
  for (int error = 0; error < 140; ++error) {
    CAPTURE(error);
    CHECK(remedy_for(error) == (expected.count(error) > 0 ? expected.at(error) : other));
  }
}
