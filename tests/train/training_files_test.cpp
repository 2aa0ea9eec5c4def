// The reader's own gradients: one file at a time, and the same as at the start.
#include "src/train/training_files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>

#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

SafetensorsFile file_of(std::uint64_t seed) {
  SafetensorsFile file;
  for (const std::string name : {"a", "b"}) {
    StoredTensor tensor;
    tensor.name = name;
    tensor.dtype = "F32";
    tensor.type = StoredType::f32;
    tensor.shape = {30, 40};
    tensor.bytes.resize(30 * 40 * 4);
    tensor.store(random_matrix({seed, name == "a" ? 1u : 2u}, 30, 40));
    file.tensors.push_back(tensor);
  }
  return file;
}

// Weights and the gradients of some steps.
struct Files {
  TemporaryFolder folder;
  TrainingFileNames names;
  explicit Files(int steps) {
    names = {folder.file("P"), {}, folder.file("O")};
    write_safetensors(names.params, file_of(0));
    for (int step = 0; step < steps; ++step) {
      names.grads.push_back(folder.file("G" + std::to_string(step)));
      write_safetensors(names.grads.back(), file_of(1 + static_cast<std::uint64_t>(step)));
    }
  }
};

std::string run_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("FileTraining: holds as much with 60 files of gradients as with 3, whenever one looks") {
  const auto most_held = [](int steps) {
    const Files files(steps);
    MemoryMeter meter;
    const MeterScope scope(meter);
    const FileTraining training(files.names, 1, {});
    REQUIRE(training.steps() == steps);
    const auto weights = training.first_weights();
    for (int step = 0; step < steps; ++step) training.all_leaves(step, 2, weights);
    return meter.peak();
  };
  CHECK(most_held(60) == most_held(3));
}

TEST_CASE("FileTraining: each step has the gradients of its file, in the slices that the asker holds") {
  const Files files(3);
  const FileTraining training(files.names, 1, {});
  for (const int step : {0, 2, 1, 1}) {
    const Matrix whole = random_matrix({1 + static_cast<std::uint64_t>(step), 2}, 30, 40);
    const auto part = training.gradients(step, 0, {{"b", Matrix(2, 3), 5, 7}});
    CHECK(part[0].rows() == 2);
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < 3; ++j) CHECK(part[0](i, j) == whole(5 + i, 7 + j));
    CHECK(same_bits(training.gradients(step, 1, {{"b", Matrix(2, 3), 5, 7}})[0], Matrix(2, 3)));
  }
}

TEST_CASE(
    "FileTraining: a NaN or an infinity of either sign, in the weights or in a gradient, is refused by its place") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [value, word] : {std::pair(infinity, "an infinity"), std::pair(-infinity, "an infinity"),
                                    std::pair(std::numeric_limits<float>::quiet_NaN(), "a NaN")})
    for (const bool in_weights : {true, false}) {
      const Files files(2);
      const std::string path = in_weights ? files.names.params : files.names.grads[1];
      SafetensorsFile file = read_safetensors(path);
      Matrix values = file.tensors[1].matrix();
      values(3, 5) = value;
      file.tensors[1].store(values);
      write_safetensors(path, file);
      CHECK(usage_error([&] { FileTraining(files.names, 1, {}); }) ==
            "\"" + path + "\": tensor \"b\" holds " + word + " at row 3, column 5; a step needs finite numbers");
    }
}

TEST_CASE("parse_tp_dims: a name may hold an equals sign; what has another form, or comes twice, is refused") {
  using Dims = std::map<std::string, SplitDim>;
  CHECK(parse_tp_dims({}).empty());
  CHECK(parse_tp_dims({"a=rows", "b=columns", "c=d=none"}) ==
        Dims{{"a", SplitDim::rows}, {"b", SplitDim::columns}, {"c=d", SplitDim::none}});
  const auto refusal = [](const std::vector<std::string>& entries) {
    return usage_error([&] { parse_tp_dims(entries); });
  };
  for (const std::string entry : {"a", "", "=rows"})
    CHECK(refusal({entry}) == "--tp-dim " + (entry.empty() ? "''" : entry) +
                                  " is not of the form NAME=DIM, with DIM rows, columns or none");
  for (const std::string word : {"", "row", "Rows"})
    CHECK(refusal({"a=" + word}).find("asks for the dimension \"" + word + "\"; it takes") != std::string::npos);
  CHECK(refusal({"a=rows", "b=rows", "a=rows"}) == "--tp-dim names \"a\" twice; give each matrix one dimension");
}

TEST_CASE("FileTraining: a dimension that tp does not divide is refused before any rank starts") {
  const Files files(1);
  CHECK(usage_error([&] {
          FileTraining(files.names, 4, {{"a", SplitDim::rows}});
        }) == "--tp 4 does not divide the 30 rows of parameter \"a\"; try --tp 2, 3, 5 or 6");
  CHECK(usage_error([&] { FileTraining(files.names, 4, {}); }) == "(no UsageError)");  // by its 40 columns
}

TEST_CASE("FileTraining: without --tp-dim, TP cuts the rows where it divides them, else the columns, else nothing") {
  const Files files(1);
  const SafetensorsFile stored = read_safetensors(files.names.params);
  for (int tp = 1; tp <= 12; ++tp) {
    const FileTraining training(files.names, tp, {});
    for (const Parameter& parameter : training.parameters()) {
      CAPTURE(tp);
      const std::vector<std::int64_t>& shape = stored.find(parameter.name)->shape;
      CHECK(parameter.tp_split_dim == (tp == 1              ? SplitDim::none
                                       : shape[0] % tp == 0 ? SplitDim::rows
                                       : shape[1] % tp == 0 ? SplitDim::columns
                                                            : SplitDim::none));
    }
  }
}

TEST_CASE("FileTraining: a file that vanishes, changes or is cut in the middle of a run is one sentence") {
  const Files files(2);
  const FileTraining training(files.names, 1, {});
  const auto weights = training.first_weights();
  const auto sentence = [&] { return run_error([&] { training.gradients(1, 0, weights); }); };
  CHECK(sentence() == "");
  const std::string path = files.names.grads[1];

  write_safetensors(path, file_of(7));
  CHECK(sentence().find("\"" + path + "\" holds other gradients than at the start") == 0);
  std::filesystem::resize_file(path, 500);
  CHECK(sentence().find("step 2 can't take its gradients, which were there at the start") == 0);
  std::filesystem::remove(path);
  CHECK(sentence().find("there is no such file") != std::string::npos);
  CHECK(sentence().find(path) != std::string::npos);
  CHECK(sentence().find('\n') == std::string::npos);

  // One bit of one element of any tensor is another gradient.
  for (std::size_t tensor : {0, 1})
    for (std::size_t byte : {0, 2400, 4799}) {
      SafetensorsFile changed = file_of(2);
      changed.tensors[tensor].bytes[byte] ^= std::byte{1};
      write_safetensors(path, changed);
      CHECK(sentence().find("\"" + path + "\" holds other gradients than at the start") == 0);
    }

  write_safetensors(path, file_of(2));  // back as it was
  CHECK(sentence() == "");
}
