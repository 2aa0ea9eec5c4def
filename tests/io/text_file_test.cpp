#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <string>

#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace muonwalk;

TEST_CASE("FileBeside: what is written is what is read, and a longer file is replaced") {
  const TemporaryFolder folder;
  const std::string path = folder.file("picture.svg");
  for (const std::string text : {"<svg>×</svg>\n<!-- longer -->\n", "short", ""}) {
    text_file_beside(path, text)->commit();
    CHECK(read_text(path) == text);
  }
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
