#include "src/io/safetensors.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <stdexcept>

#include "tests/io/random_file.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

void check_equal(const SafetensorsFile& got, const SafetensorsFile& expected) {
  CHECK(got.metadata == expected.metadata);
  REQUIRE(got.tensors.size() == expected.tensors.size());
  for (std::size_t i = 0; i < got.tensors.size(); ++i) {
    CHECK(got.tensors[i].name == expected.tensors[i].name);
    CHECK(got.tensors[i].dtype == expected.tensors[i].dtype);
    CHECK(got.tensors[i].type == expected.tensors[i].type);
    CHECK(got.tensors[i].shape == expected.tensors[i].shape);
    CHECK(got.tensors[i].bytes == expected.tensors[i].bytes);
  }
}

StoredTensor tensor(const std::string& dtype, std::vector<std::int64_t> shape) {
  StoredTensor made;
  made.name = "w";
  made.dtype = dtype;
  made.type = find_dtype(dtype)->type;
  made.shape = std::move(shape);
  made.bytes.resize(static_cast<std::size_t>(stored_bytes(*find_dtype(dtype), made.shape)));
  return made;
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

}  // namespace

TEST_CASE("safetensors: any file: what is written is read back, order and metadata kept") {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("random_file(" << seed << ")");
    const SafetensorsFile file = random_file(seed);
    const std::string path = folder.file("any.safetensors");
    write_safetensors(path, file);
    check_equal(read_safetensors(path), file);
    // Written again, it is the same file to the last byte, so nothing of it depends on the run.
    const std::string first = read_text(path);
    write_safetensors(path, read_safetensors(path));
    CHECK(read_text(path) == first);
    for (const StoredTensor& expected : file.tensors) {
      const StoredTensor* found = file.find(expected.name);
      CHECK(muonwalk::TensorIndex(file).find(expected.name) == found);
      CHECK(muonwalk::TensorIndex(file).find(expected.name + "?") == nullptr);
      REQUIRE(found != nullptr);
      CHECK(found->name == expected.name);
    }
    CHECK(file.find("no such tensor") == nullptr);
  }
}

TEST_CASE("safetensors: the bytes of a written file, worked out by hand") {
  const TemporaryFolder folder;
  SafetensorsFile file;
  file.metadata = {{"format", "pt"}};
  file.tensors = {tensor("F32", {1, 2}), tensor("U8", {})};
  file.tensors[0].bytes = bytes({0, 0, 128, 63, 0, 0, 0, 192});  // 1 and −2
  file.tensors[1].name = "b";
  file.tensors[1].bytes = bytes({7});
  const std::string path = folder.file("x");
  write_safetensors(path, file);
  const std::string json = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
  const std::size_t padded = (json.size() + 7) / 8 * 8;
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(padded);
  expected += json + std::string(padded - json.size(), ' ');
  expected += std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0\x07", 9);
  REQUIRE(padded < 256);
  CHECK(read_text(path) == expected);
  CHECK(read_safetensors(path).tensors[0].matrix()(0, 1) == -2.0f);
}

TEST_CASE("safetensors: data begin at the next multiple of 8 bytes, and no later, however long the header is") {
  const TemporaryFolder folder;
  for (std::size_t letters = 1; letters <= 17; ++letters) {
    CAPTURE(letters);
    SafetensorsFile file;
    file.tensors = {tensor("U8", {})};
    file.tensors[0].name = std::string(letters, 'n');
    file.tensors[0].bytes = bytes({7});
    write_safetensors(folder.file("x"), file);
    const std::string whole = read_text(folder.file("x"));
    const std::size_t header = whole.size() - 8 - 1;
    CHECK(header % 8 == 0);
    CHECK(header - 1 - whole.substr(8, header).rfind('}') < 8);
  }
}

TEST_CASE("safetensors: the size of an element of each type, and shapes of more bytes than can be counted") {
  const std::vector<std::pair<std::vector<const char*>, int>> sizes = {{{"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"}, 1},
                                                                       {{"I16", "U16", "F16", "BF16"}, 2},
                                                                       {{"I32", "U32", "F32"}, 4},
                                                                       {{"F64", "I64", "U64"}, 8}};
  for (const auto& [names, bytes] : sizes)
    for (const std::string name : names) {
      CAPTURE(name);
      const Dtype* dtype = find_dtype(name);
      REQUIRE(dtype != nullptr);
      CHECK(name == dtype->name);
      CHECK(dtype->bytes == bytes);
      CHECK(dtype->type == (name == "F32"    ? StoredType::f32
                            : name == "BF16" ? StoredType::bf16
                            : name == "F16"  ? StoredType::f16
                                             : StoredType::other));
      CHECK(stored_bytes(*dtype, {}) == bytes);
      CHECK(stored_bytes(*dtype, {3, 0, 5}) == 0);
      CHECK(stored_bytes(*dtype, {3, 1, 5}) == 15 * bytes);
      const std::int64_t most = std::numeric_limits<std::int64_t>::max() / bytes;
      CHECK(stored_bytes(*dtype, {most}) == most * bytes);
      CHECK(stored_bytes(*dtype, {most / 2 + 1, 2}) == -1);
      CHECK(stored_bytes(*dtype, {0, -1}) == -1);
    }
  CHECK(find_dtype("F") == nullptr);
}

TEST_CASE("StoredTensor: matrix and store are opposites in every type Muon steps") {
  // 1, −2, the largest half, a tie that rounds to even in each type.
  Matrix values(2, 2);
  values(0, 0) = 1.0f;
  values(0, 1) = -2.0f;
  values(1, 0) = 65504.0f;
  values(1, 1) = 0.25f;
  for (const char* dtype : {"F32", "F16"}) {
    StoredTensor stored = tensor(dtype, {2, 2});
    stored.store(values);
    CHECK(same_bits(stored.matrix(), values));
  }
  StoredTensor half = tensor("BF16", {2, 2});
  half.store(values);
  const Matrix rounded = half.matrix();
  CHECK(rounded(0, 0) == 1.0f);
  CHECK(rounded(0, 1) == -2.0f);
  CHECK(rounded(1, 0) == 65536.0f);  // 7 bits of mantissa: the nearest to 65504
  CHECK(rounded(1, 1) == 0.25f);
}

TEST_CASE("StoredTensor: the bytes of 1 and −2 in each type, and rounding to nearest even") {
  Matrix values(1, 2);
  values(0, 0) = 1.0f;
  values(0, 1) = -2.0f;
  StoredTensor f32 = tensor("F32", {1, 2});
  f32.store(values);
  CHECK(f32.bytes == bytes({0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}));
  StoredTensor bf16 = tensor("BF16", {1, 2});
  bf16.store(values);
  CHECK(bf16.bytes == bytes({0x80, 0x3F, 0, 0xC0}));
  StoredTensor f16 = tensor("F16", {1, 2});
  f16.store(values);
  CHECK(f16.bytes == bytes({0, 0x3C, 0, 0xC0}));
  values(0, 0) = 1.0f + 0x1p-8f;      // between 1 and 1 + 2^-7 of bfloat16: to the even 1
  values(0, 1) = 1.0f + 3 * 0x1p-8f;  // between 1 + 2^-7 and 1 + 2^-6: to the even 1 + 2^-6
  bf16.store(values);
  CHECK(bf16.bytes == bytes({0x80, 0x3F, 0x82, 0x3F}));
}

TEST_CASE("StoredTensor: what can be trained has at most two dimensions, and is of F32, BF16 or F16") {
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{2, 3}, {6}, {}, {0}, {0, 3}})
      CHECK(tensor(dtype, shape).can_be_trained());
    CHECK_FALSE(tensor(dtype, {1, 2, 3}).can_be_trained());
  }
  for (const char* dtype : {"F64", "I32", "BOOL", "F8_E4M3"}) CHECK_FALSE(tensor(dtype, {6}).can_be_trained());
  CHECK(tensor("F32", {}).elements() == 1);
  CHECK(tensor("F32", {4, 0, 2}).elements() == 0);
  CHECK(tensor("F32", {4, 3}).elements() == 12);
  CHECK(usage_error([] {
          tensor("I64", {2, 3}).matrix();
        }) ==
        "tensor \"w\" has 2 dimensions and type I64, but what is trained has at most 2 dimensions and is of F32, BF16 "
        "or F16");
  CHECK(usage_error([] { tensor("I64", {3}).store(Matrix(1, 3)); }).find("tensor \"w\" has 1 dimension and") == 0);
  CHECK(usage_error([] { tensor("F32", {1, 2, 3}).matrix(); }).find("tensor \"w\" has 3 dimensions and") == 0);
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{3}, {}}) {
    StoredTensor row = tensor("F32", shape);  // a vector, or a single number, is one row
    const Matrix values = Matrix(1, row.elements(), Flat(static_cast<std::size_t>(row.elements()), 1.5f));
    row.store(values);
    CHECK(same_bits(row.matrix(), values));
    CHECK_THROWS_AS(row.store(Matrix(row.elements(), 2)), std::invalid_argument);
  }
  CHECK_THROWS_AS(tensor("F32", {2, 3}).store(Matrix(3, 2)), std::invalid_argument);
  StoredTensor short_one = tensor("F32", {2, 3});
  short_one.bytes.pop_back();
  CHECK_THROWS_WITH_AS(short_one.matrix(), "tensor \"w\" holds 23 bytes, not 24", std::invalid_argument);
  CHECK_THROWS_WITH_AS(tensor("BF16", {2, 3}).store(Matrix(3, 2)), "tensor \"w\" is 2 × 3 and can't store 3 × 2",
                       std::invalid_argument);
}
