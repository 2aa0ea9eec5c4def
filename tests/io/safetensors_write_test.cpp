#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "src/io/safetensors.hpp"
#include "tests/io/in_child.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

using Names = std::vector<std::string>;

SafetensorsFile one_tensor(std::int64_t bytes) {
  SafetensorsFile file;
  StoredTensor tensor;
  tensor.name = "w";
  tensor.dtype = "U8";
  tensor.shape = {bytes};
  tensor.bytes.resize(static_cast<std::size_t>(bytes), std::byte{1});
  file.tensors.push_back(tensor);
  return file;
}

std::string refusal_to_write(const std::string& path) {
  const std::string probe = usage_error([&] { require_writable(path); });
  const std::string write = usage_error([&] { write_safetensors(path, one_tensor(4)); });
  CHECK(probe == write);
  return write;
}

bool says(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("require_writable: leaves everything as it was") {
  const TemporaryFolder folder;
  require_writable(folder.file("new"));
  CHECK(folder.names().empty());
  write_text(folder.file("old"), "what was there");
  require_writable(folder.file("old"));
  CHECK(folder.names() == Names{"old"});
  CHECK(read_text(folder.file("old")) == "what was there");
}

TEST_CASE("write_safetensors: paths that can't be written, each in a sentence, before and at the write") {
  const TemporaryFolder folder;
  write_text(folder.file("plain"), "x");
  CHECK(refusal_to_write(folder.path()) == "can't write \"" + folder.path() + "\": it is a folder; name a file in it");
  CHECK(refusal_to_write(folder.file("none/x")) ==
        "can't write \"" + folder.file("none/x") + "\": No such file or directory; create its folder first");
  CHECK(refusal_to_write(folder.file("plain/x")) ==
        "can't write \"" + folder.file("plain/x") + "\": Not a directory; create its folder first");
  CHECK(says(refusal_to_write(folder.file("new/")), "it names a folder"));
  CHECK(says(refusal_to_write(""), "its name is empty"));
  // A pipe stands for everything that is not a regular file: were this check lost, a device would be replaced for the
  // whole machine.
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(says(refusal_to_write(folder.file("pipe")), "it is not a regular file"));
  CHECK(says(refusal_to_write(folder.file(std::string(300, 'n'))), "File name too long"));
  struct stat status = {};
  REQUIRE(stat(folder.file("pipe").c_str(), &status) == 0);
  CHECK(S_ISFIFO(status.st_mode));
  CHECK(folder.names() == Names{"pipe", "plain"});
}

TEST_CASE("write_safetensors: a folder or a file that may not be written is respected") {
  const TemporaryFolder folder;
  write_text(folder.file("read-only"), "what was there");
  REQUIRE(chmod(folder.file("read-only").c_str(), 0444) == 0);
  const auto asked = [&](const std::string& name, mode_t of_folder) {
    REQUIRE(chmod(folder.path().c_str(), of_folder) == 0);
    CHECK(in_child([&] {  // root may write anywhere, so somebody else asks
            if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 1;
            return says(refusal_to_write(folder.file(name)), "Permission denied; choose a place where you may write")
                       ? 42
                       : 2;
          }) == 42);
  };
  asked("x", 0555);
  asked("read-only", 0777);
  CHECK(folder.names() == Names{"read-only"});
  CHECK(read_text(folder.file("read-only")) == "what was there");
}

TEST_CASE("write_safetensors: a symbolic link stays, what it points to is replaced") {
  const TemporaryFolder folder;
  REQUIRE(mkdir(folder.file("real").c_str(), 0755) == 0);
  write_text(folder.file("real/x"), "old");
  REQUIRE(symlink("real/x", folder.file("link").c_str()) == 0);
  REQUIRE(symlink(folder.file("link").c_str(), folder.file("link to link").c_str()) == 0);
  write_safetensors(folder.file("link to link"), one_tensor(5));
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  CHECK(std::filesystem::is_symlink(folder.file("link to link")));
  CHECK_FALSE(std::filesystem::is_symlink(folder.file("real/x")));
  CHECK(read_safetensors(folder.file("real/x")).tensors[0].bytes.size() == 5);

  REQUIRE(symlink("real/new", folder.file("to nothing yet").c_str()) == 0);
  write_safetensors(folder.file("to nothing yet"), one_tensor(6));
  CHECK(std::filesystem::is_symlink(folder.file("to nothing yet")));
  CHECK(read_safetensors(folder.file("real/new")).tensors[0].bytes.size() == 6);

  REQUIRE(symlink("round", folder.file("round").c_str()) == 0);
  CHECK(says(refusal_to_write(folder.file("round")), "Too many levels of symbolic links"));
}

TEST_CASE("write_safetensors: what is not a file of the format is told by the name of its tensor or key") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const auto said = [&](const auto& change) {
    SafetensorsFile file = one_tensor(3);
    file.tensors.insert(file.tensors.begin(), one_tensor(2).tensors[0]);
    file.tensors[0].name = "first";
    file.metadata = {{"key", "value"}, {"another", "value"}};
    change(file);
    try {
      write_safetensors(path, file);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("(nothing)");
  };
  const auto tensor = [](SafetensorsFile& file) -> StoredTensor& { return file.tensors[1]; };
  CHECK(said([&](SafetensorsFile& file) { tensor(file).name = "first"; }) ==
        "tensor name \"first\" stands twice or is reserved");
  CHECK(said([&](SafetensorsFile& file) { tensor(file).name = "__metadata__"; }) ==
        "tensor name \"__metadata__\" stands twice or is reserved");
  CHECK(said([&](SafetensorsFile& file) { tensor(file).dtype = "U9"; }) == "tensor \"w\" has an unknown type");
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{4}, {2}, {-3}, {}})
    CHECK(said([&](SafetensorsFile& file) { tensor(file).shape = shape; }) ==
          "tensor \"w\" holds 3 bytes, which its shape and type do not take");
  CHECK(said([&](SafetensorsFile& file) {
          file.metadata.push_back({"key", "other"});
        }) == "metadata \"key\" stands twice");
  CHECK(folder.names().empty());
  CHECK(said([](SafetensorsFile&) {}) == "(nothing)");
  // Metadata is text as names are, key and value.
  for (const bool value : {false, true}) {
    SafetensorsFile file = one_tensor(1);
    file.metadata = {{value ? "a" : "b\xff", value ? "c\xfe" : "d"}};
    CHECK(usage_error([&] { write_safetensors(path, file); }) == "can't write \"" + path + "\": \"" +
                                                                     (value ? "c\\xfe" : "b\\xff") +
                                                                     "\" is not UTF-8, as names have to be; rename it");
  }
  CHECK(read_safetensors(path).tensors.size() == 2);
}

TEST_CASE("write_safetensors: a header of 100 MB is the longest; a longer one is refused before anything is touched") {
  const TemporaryFolder folder;
  SafetensorsFile file;
  const std::string around = R"({"__metadata__":{"k":""}})";
  file.metadata = {{"k", std::string(100'000'000 - around.size(), 'v')}};
  const std::string path = folder.file("none/x");  // so that nothing has to be written
  CHECK(says(usage_error([&] { write_safetensors(path, file); }), "No such file or directory"));
  file.metadata[0].second += 'v';
  CHECK(usage_error([&] { write_safetensors(path, file); }) ==
        "can't write \"" + path +
            "\": its header would be 100000008 bytes long, more than the 100 MB that are allowed; "
            "shorten names or metadata");
}
