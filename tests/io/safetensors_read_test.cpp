#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "src/io/safetensors.hpp"
#include "tests/cases.hpp"
#include "tests/io/in_child.hpp"
#include "tests/io/random_file.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes;
}

// A file of that header and that many bytes of data.
std::string whole(const std::string& header, std::size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, 'x');
}

// One tensor's entry.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

bool contains(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

// What the reader is told about a file of these bytes; without the path, which differs from run to run.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("bad.safetensors");
  write_text(path, bytes);
  const std::string sentence = usage_error([&] { read_safetensors(path); });
  const std::string begin = "can't read \"" + path + "\": ";
  return sentence.find(begin) == 0 ? sentence.substr(begin.size()) : "(no path) " + sentence;
}

}  // namespace

TEST_CASE("read_safetensors: a path that is not a file") {
  const TemporaryFolder folder;
  const auto sentence = [&](const std::string& path) { return usage_error([&] { read_safetensors(path); }); };
  CHECK(sentence(folder.file("none")) ==
        "can't read \"" + folder.file("none") + "\": there is no such file; check the path");
  CHECK(sentence(folder.path()) == "can't read \"" + folder.path() + "\": it is a folder; name a .safetensors file");
  write_text(folder.file("plain"), "x");
  CHECK(contains(sentence(""), "there is no such file"));
  // A pipe that nobody writes to must not make us wait.
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(contains(sentence(folder.file("pipe")), "it is not a regular file"));
  CHECK(sentence("/dev/null") == "can't read \"/dev/null\": it is not a regular file; name a .safetensors file");
  CHECK(sentence(folder.file("plain/below")) ==
        "can't read \"" + folder.file("plain/below") + "\": Not a directory; check the path");
  const std::string left = folder.file(".muonwalk-4711-0.partial");
  write_text(left, "x");
  CHECK(sentence(left) ==
        "can't read \"" + left + "\": a run that was killed left it unfinished; name the file that it was to be");
  REQUIRE(chmod(folder.file("plain").c_str(), 0) == 0);
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  CHECK(in_child([&] {  // root may read anything, so somebody else asks
          if (geteuid() == 0 && setuid(65534) != 0) return 1;
          return sentence(folder.file("plain")) ==
                         "can't read \"" + folder.file("plain") + "\": permission denied; make it readable for you"
                     ? 42
                     : 2;
        }) == 42);
}

TEST_CASE("read_safetensors: a file that is empty, cut short, or too long") {
  const std::string good = whole("{" + entry("w", "F32", "[2,3]", "[0,24]") + "}", 24);
  CHECK(refusal("") == "it is empty; save or download it again");
  CHECK(refusal("1234567") == "it ends after 7 bytes, within the 8 of the header's length; save or download it again");
  CHECK(refusal(good.substr(0, 30)) ==
        "it ends after 30 bytes, within its header of 57 bytes; save or download it again");
  CHECK(refusal(good.substr(0, good.size() - 1)) ==
        "tensor \"w\" ends at byte 24 of the data, but the file has only 23; save or download it again");
  CHECK(refusal(good + "!!") == "2 bytes follow its last tensor; save or download it again");
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(contains(refusal(good.substr(0, length)), "(no path)"));
}

TEST_CASE("read_safetensors: a header length beyond the file, the format, or all memory allocates nothing") {
  CHECK(refusal(length_bytes(100) + "{}") ==
        "it ends after 10 bytes, within its header of 100 bytes; save or download it again");
  CHECK(refusal(length_bytes(100'000'000) + "{}") ==
        "it ends after 10 bytes, within its header of 100000000 bytes; save or download it again");
  CHECK(refusal(length_bytes(100'000'001) + "{}") ==
        "its header would be 100000001 bytes long, more than the 100 MB that are allowed; check that it is a "
        ".safetensors "
        "file");
  CHECK(contains(refusal(length_bytes(~std::uint64_t{0}) + "{}"), "18446744073709551615 bytes long"));
  CHECK(contains(refusal(length_bytes(std::uint64_t{1} << 63) + "{}"), "more than the 100 MB"));
  CHECK(contains(refusal(length_bytes(0)), "does not begin with '{'"));
}

TEST_CASE("read_safetensors: a header that is not the JSON of the format") {
  const auto of_header = [](const std::string& header, std::size_t data = 0) { return refusal(whole(header, data)); };
  CHECK(contains(of_header("PK\x03\x04"), "its header does not begin with '{'"));
  CHECK(contains(of_header("[]"), "its header does not begin with '{'"));
  CHECK(contains(of_header("3"), "its header does not begin with '{'"));
  CHECK(contains(of_header("{"), "its header is not JSON"));
  CHECK(contains(of_header("{} x"), "its header is not JSON"));
  CHECK(contains(of_header("{\"w\":}"), "its header is not JSON, as byte 6 of it shows"));
  CHECK(contains(of_header("{\"w\xff\":{}}"), "its header is not JSON"));
  CHECK(contains(of_header(std::string("{}\0 ", 4)), "it has a byte of zero"));
  CHECK(contains(of_header("{\"w\":5}"), "a value that does not belong under \"w\""));
  CHECK(contains(of_header("{\"w\":[]}"), "a value that does not belong under \"w\""));
  CHECK(contains(of_header("{\"w\":null}"), "a value that does not belong under \"w\""));
  CHECK(contains(of_header("{\"w\":{}}"), "gives tensor \"w\" no dtype, shape or data_offsets"));
  CHECK(contains(of_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}"), "no dtype, shape or data_offsets"));
  CHECK(contains(of_header("{\"w\":{\"dtype\":1}}"), "does not belong under \"dtype\" in tensor \"w\""));
  CHECK(contains(of_header("{\"w\":{\"dtype\":[\"F32\"]}}"), "does not belong under \"dtype\" in tensor \"w\""));
  CHECK(contains(of_header("{\"w\":{\"shape\":3}}"), "does not belong under \"shape\" in tensor \"w\""));
  CHECK(contains(of_header("{\"w\":{\"shape\":[1e999]}}"), "its header has a number that is too large for a double"));
  CHECK(contains(of_header("{\"w\":{\"shape\":{}}}"), "does not belong under \"shape\" in tensor \"w\""));
  CHECK(contains(of_header("{\"__metadata__\":{\"a\":1}}"), "its __metadata__ holds something other than strings"));
  CHECK(contains(of_header("{\"__metadata__\":{\"a\":{}}}"), "its __metadata__ holds something other than strings"));
  CHECK(contains(of_header("{\"__metadata__\":{\"a\":[]}}"), "its __metadata__ holds something other than strings"));
  CHECK(contains(of_header("{\"__metadata__\":\"a\"}"), "does not belong under \"__metadata__\""));
  // A tower of brackets must not use up the stack.
  CHECK(contains(of_header("{\"w\":{\"x\":" + std::string(1'000'000, '[')), "its header is not JSON"));
  const std::string tower = std::string(200'000, '[') + std::string(200'000, ']');
  CHECK(contains(of_header("{\"w\":{\"x\":" + tower + "}}"), "no dtype, shape or data_offsets"));
}

TEST_CASE("read_safetensors: a name that stands twice") {
  const std::string w = entry("w", "U8", "[1]", "[0,1]");
  CHECK(contains(refusal(whole("{" + w + "," + entry("w", "U8", "[1]", "[1,2]") + "}", 2)), "names \"w\" twice"));
  CHECK(contains(refusal(whole("{" + entry("v", "U8", "[1]", "[1,2]") + "," + w + "," + w + "}", 2)),
                 "names \"w\" twice"));
  CHECK(contains(refusal(whole("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1)),
                 "names \"dtype\" twice in tensor \"w\""));
  CHECK(contains(refusal(whole("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0)), "names \"a\" twice"));
  CHECK(contains(refusal(whole("{\"__metadata__\":{},\"__metadata__\":{}}", 0)), "names \"__metadata__\" twice"));
}

TEST_CASE("read_safetensors: types, shapes and offsets that can't be") {
  const auto of_tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets,
                            std::size_t data) {
    return refusal(whole("{" + entry("w", dtype, shape, offsets) + "}", data));
  };
  CHECK(of_tensor("F7", "[1]", "[0,1]", 1) ==
        "tensor \"w\" has the type \"F7\", which is unknown; save it as F32, BF16 or F16");
  CHECK(contains(of_tensor("f32", "[1]", "[0,4]", 4), "which is unknown"));
  CHECK(contains(of_tensor("U8", "[-1]", "[0,1]", 1), "has a negative length in its shape"));
  CHECK(contains(of_tensor("U8", "[-1,-1]", "[0,1]", 1), "has a negative length in its shape"));
  CHECK(contains(of_tensor("U8", "[4294967296,4294967296]", "[0,0]", 0), "more elements than can be"));
  CHECK(contains(of_tensor("F64", "[2305843009213693952]", "[0,0]", 0), "more elements than can be"));
  CHECK(contains(of_tensor("U8", "[9223372036854775807,3,0]", "[0,0]", 0), "more elements than can be"));
  CHECK(contains(of_tensor("U8", "[9223372036854775808]", "[0,0]", 0), "too large for a size or an offset"));
  CHECK(contains(of_tensor("U8", "[1e3]", "[0,1000]", 1000), "something other than an integer in the shape of tensor"));
  CHECK(contains(of_tensor("U8", "[\"1\"]", "[0,1]", 1), "something other than an integer in the shape"));
  CHECK(contains(of_tensor("U8", "[[1]]", "[0,1]", 1), "something other than an integer in the shape"));
  CHECK(contains(of_tensor("U8", "[{}]", "[0,1]", 1), "something other than an integer in the shape"));
  CHECK(contains(of_tensor("U8", "[1]", "[0.0,1]", 1), "something other than an integer in the data_offsets"));
  CHECK(contains(of_tensor("U8", "[1]", "[0,null]", 1), "something other than an integer in the data_offsets"));
  CHECK(contains(of_tensor("U8", "[1]", "[0,99999999999999999999]", 1), "something other than an integer"));
  CHECK(contains(of_tensor("U8", "[1]", "[0]", 1), "gives tensor \"w\" 1 data_offsets instead of 2"));
  CHECK(contains(of_tensor("U8", "[1]", "[0,1,2]", 1), "gives tensor \"w\" 3 data_offsets instead of 2"));
  CHECK(contains(of_tensor("U8", "[1]", "[-1,0]", 1), "the offsets of tensor \"w\", -1 and 0, are not a range"));
  CHECK(contains(of_tensor("U8", "[1]", "[1,0]", 1), "are not a range"));
  CHECK(contains(of_tensor("U8", "[1]", "[0,9223372036854775807]", 1), "but the file has only 1"));
  CHECK(of_tensor("F32", "[2,3]", "[0,20]", 20) ==
        "the offsets of tensor \"w\" leave it 20 bytes, but its shape and type take 24; save or download it again");
}

TEST_CASE("read_safetensors: tensors that overlap, leave a hole, or leave bytes at the begin or end") {
  const auto of_two = [](const std::string& first, const std::string& second, std::size_t data) {
    return refusal(whole("{" + entry("a", "U8", "[4]", first) + "," + entry("b", "U8", "[4]", second) + "}", data));
  };
  CHECK(of_two("[0,4]", "[4,8]", 8) == "(no path) (no UsageError)");
  CHECK(of_two("[4,8]", "[0,4]", 8) == "(no path) (no UsageError)");
  CHECK(of_two("[0,4]", "[3,7]", 7) == "tensor \"b\" overlaps the one before it; save or download it again");
  CHECK(contains(of_two("[0,4]", "[0,4]", 4), "tensor \"b\" overlaps"));
  CHECK(of_two("[0,4]", "[5,9]", 9) == "a hole of 1 byte lies before tensor \"b\"; save or download it again");
  CHECK(contains(of_two("[1,5]", "[5,9]", 9), "a hole of 1 byte lies before tensor \"a\""));
  CHECK(contains(of_two("[0,4]", "[4,8]", 11), "3 bytes follow its last tensor"));
  CHECK(contains(refusal(whole("{}", 1)), "1 byte follows its last tensor"));
}

TEST_CASE("read_safetensors: an odd name can't break the sentence") {
  const std::string sentence = refusal(whole("{" + entry("one\\nline\\u001b[0m", "F7", "[1]", "[0,1]") + "}", 1));
  CHECK(contains(sentence, "tensor \"one\\nline\\x1b[0m\" has"));
  const std::string long_name(100000, 'n');
  CHECK(refusal(whole("{" + entry(long_name, "F7", "[1]", "[0,1]") + "}", 1)).size() < 300);
}

namespace {

using Random = std::mt19937;

int between(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

// One thing that can happen to a file.
void corrupt(std::string& bytes, Random& random) {
  const auto anywhere = [&] {
    return static_cast<std::size_t>(between(random, 0, static_cast<int>(bytes.size()) - 1));
  };
  switch (between(random, 0, 6)) {
    case 0:  // a bit flips
      bytes[anywhere()] ^= static_cast<char>(1 << between(random, 0, 7));
      break;
    case 1:  // a byte of the header changes
      bytes[std::min(bytes.size() - 1, static_cast<std::size_t>(between(random, 8, 200)))] =
          static_cast<char>(between(random, 0, 255));
      break;
    case 2:
      bytes.resize(anywhere());
      break;
    case 3:
      bytes +=
          std::string(static_cast<std::size_t>(between(random, 1, 100)), static_cast<char>(between(random, 0, 255)));
      break;
    case 4:  // the header's length
      bytes[static_cast<std::size_t>(between(random, 0, 7)) % bytes.size()] =
          static_cast<char>(between(random, 0, 255));
      break;
    case 5: {  // two runs change places, such as two offsets
      const std::size_t a = anywhere();
      const std::size_t b = anywhere();
      for (std::size_t i = 0; i < 4 && std::max(a, b) + i < bytes.size(); ++i) std::swap(bytes[a + i], bytes[b + i]);
      break;
    }
    default: {  // a digit of the header becomes another
      const std::size_t at = bytes.find_first_of("0123456789", anywhere());
      if (at != std::string::npos) bytes[at] = static_cast<char>('0' + between(random, 0, 9));
    }
  }
}

}  // namespace

TEST_CASE("read_safetensors: 2000 random corruptions: each file reads, or is refused in one sentence with its name") {
  const TemporaryFolder folder;
  const std::string path = folder.file("corrupt.safetensors");
  std::vector<std::string> good;
  for (unsigned seed = 0; seed < testing::cases(20u); ++seed) {
    write_safetensors(path, random_file(seed));
    good.push_back(read_text(path));
  }
  int refused = 0;
  int read = 0;
  for (unsigned seed = 0; seed < testing::cases(2000u); ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::string bytes = good[seed % good.size()];
    const int times = between(random, 1, 3);
    for (int i = 0; i < times && !bytes.empty(); ++i) corrupt(bytes, random);
    write_text(path, bytes);
    try {
      const SafetensorsFile file = read_safetensors(path);
      ++read;
      for (const StoredTensor& tensor : file.tensors) {
        CHECK(tensor.bytes.size() <= bytes.size());
        if (tensor.shape.size() == 2 && tensor.can_be_trained()) CHECK(tensor.matrix().size() == tensor.elements());
      }
    } catch (const UsageError& error) {  // any other exception fails the test
      ++refused;
      const std::string sentence = error.what();
      CHECK(contains(sentence, path));
      CHECK(sentence.find('\n') == std::string::npos);
      CHECK(sentence.size() < path.size() + 600);
    }
  }
  MESSAGE(refused << " files were refused, " << read << " read");
  CHECK(refused > testing::cases(500));
  CHECK(read > testing::cases(50));
}

TEST_CASE(
    "read_safetensors: a tensor says its type, its shape and where it lies, in any order, and each of them once") {
  const std::vector<std::string> members = {R"("dtype":"F32")", R"("shape":[])", R"("data_offsets":[0,4])"};
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    for (std::size_t left_out = 0; left_out <= 3; ++left_out)
      for (std::size_t twice = 0; twice <= 3; ++twice) {
        std::vector<std::string> said;
        for (const std::size_t which : order)
          for (int times = which == left_out ? 0 : which == twice ? 2 : 1; times > 0; --times)
            said.push_back(members[which]);
        std::string header = "{\"w\":{";
        for (const std::string& member : said) header += (header.back() == '{' ? "" : ",") + member;
        header += "}}";
        CAPTURE(header);
        const bool good = left_out == 3 && twice == 3;
        if (good) {
          const TemporaryFolder folder;
          write_text(folder.file("good"), whole(header, 4));
          CHECK(read_safetensors(folder.file("good")).tensors.size() == 1);
        } else {
          const std::string sentence = refusal(whole(header, 4));
          CHECK(contains(sentence, "\"w\""));
          CHECK(!contains(sentence, "\n"));
        }
      }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE(
    "read_safetensors: what a later version adds to a tensor is passed over, whatever it is; what is not, is not") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  std::vector<std::string> additions = {"null",
                                        "true",
                                        "-7",
                                        "7",
                                        "18446744073709551615",
                                        "1.5e300",
                                        "\"dtype\"",
                                        "[]",
                                        "{}",
                                        "[[1,\"a\",null,true,-1,1.5,{}],{\"shape\":[]}]",
                                        R"({"dtype":"F32","dtype":"F64","shape":{"shape":[7]},"data_offsets":[9]})"};
  for (const std::string& value : additions) {
    CAPTURE(value);
    const std::string x = "\"x\":" + value, y = "\"y\":" + value;
    write_text(path, whole("{\"__metadata__\":{\"dtype\":\"m\"},\"w\":{" + x + ",\"dtype\":\"U16\"," + y +
                               ",\"shape\":[2,1],\"z\":" + value + ",\"data_offsets\":[1,5],\"a\":" + value +
                               "},\"v\":{\"data_offsets\":[0,1],\"dtype\":\"I8\"," + x + ",\"shape\":[]}}",
                           5));
    const SafetensorsFile file = read_safetensors(path);
    REQUIRE(file.tensors.size() == 2);
    CHECK(file.tensors[0].name == "v");
    CHECK(file.tensors[0].dtype == "I8");
    CHECK(file.tensors[0].shape.empty());
    CHECK(file.tensors[1].name == "w");
    CHECK(file.tensors[1].dtype == "U16");
    CHECK(file.tensors[1].shape == std::vector<std::int64_t>{2, 1});
    CHECK(file.tensors[1].bytes.size() == 4);
    REQUIRE(file.metadata.size() == 1);
    CHECK(file.metadata[0] == std::pair<std::string, std::string>{"dtype", "m"});
  }
}

TEST_CASE("read_safetensors: tensors come in the order of their data, those without any in that of the header") {
  const TemporaryFolder folder;
  std::string header = "{" + entry("last", "U8", "[2]", "[4,6]") + "," + entry("first", "F32", "[]", "[0,4]");
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) {  // at the data's beginning, and named against the alphabet
    expected.push_back("empty " + std::to_string(99 - i));
    header += "," + entry(expected.back(), "F64", "[0,3]", "[0,0]");
  }
  header += "," + entry("between", "U8", "[0]", "[4,4]") + "," + entry("end", "U8", "[0]", "[6,6]") + "}";
  for (const char* name : {"first", "between", "last", "end"}) expected.emplace_back(name);
  write_text(folder.file("x"), whole(header, 0) + "abcdef");
  const SafetensorsFile file = read_safetensors(folder.file("x"));
  REQUIRE(file.tensors.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(file.tensors[i].name == expected[i]);
  CHECK(file.find("last")->bytes == std::vector<std::byte>{std::byte{'e'}, std::byte{'f'}});
  CHECK(file.find("first")->bytes[0] == std::byte{'a'});
}

#if !defined(__SANITIZE_ADDRESS__)  // which reserve terabytes for themselves
TEST_CASE("read_safetensors: a file that is larger than all memory is a sentence") {
  const TemporaryFolder folder;
  const std::string path = folder.file("large");
  const std::string header = "{" + entry("w", "U8", "[68719476736]", "[0,68719476736]") + "}";
  write_text(path, whole(header, 0));
  const off_t size = static_cast<off_t>(8 + header.size()) + 68719476736;
  if (truncate(path.c_str(), size) != 0) {
    MESSAGE("left out: this file system has no files of 64 GiB");
    return;
  }
  CHECK(in_child([&] {
          const rlimit limit{17179869184, 17179869184};
          if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
          return usage_error([&] { read_safetensors(path); }) ==
                         "can't read \"" + path +
                             "\": it takes more memory than there is; use a smaller file or a larger machine"
                     ? 42
                     : 2;
        }) == 42);
}
#endif
