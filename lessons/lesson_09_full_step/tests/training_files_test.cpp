// The reader's own gradients: one file at a time, and the same as at the start.
#include "lessons/lesson_09_full_step/training_files.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

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
    const FileTraining training(files.names, 1);
    REQUIRE(training.steps() == steps);
    const auto weights = training.first_weights();
    for (int step = 0; step < steps; ++step) training.all_leaves(step, 2, weights);
    return meter.peak();
  };
  CHECK(most_held(60) == most_held(3));
}

TEST_CASE("FileTraining: each step has the gradients of its file, in the slices that the asker holds") {
  const Files files(3);
  const FileTraining training(files.names, 1);
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
      CHECK(usage_error([&] { FileTraining(files.names, 1); }) ==
            "\"" + path + "\": tensor \"b\" holds " + word + " at row 3, column 5; a step needs finite numbers");
    }
}

TEST_CASE("FileTraining: what is missing, of another shape or type, or named and not there, each in a sentence") {
  using Change = std::function<void(Files&)>;
  const auto refusal = [](const Files& files) { return usage_error([&] { FileTraining(files.names, 2); }); };
  const auto changed = [](const std::string& path, const std::function<void(SafetensorsFile&)>& change) {
    SafetensorsFile file = read_safetensors(path);
    change(file);
    write_safetensors(path, file);
  };
  const auto vector_of = [](StoredTensor& tensor) {
    tensor.shape = {5};
    tensor.bytes.resize(20);
    tensor.store(Matrix(1, 5, Flat(5, 0.5f)));
  };
  const auto of_type = [](StoredTensor& tensor, const char* dtype) {  // of as many bytes
    tensor.dtype = dtype;
    tensor.type = StoredType::other;
  };
  const Files right(2);
  CHECK(refusal(right) == "(no UsageError)");
  const std::string params = "\"" + right.names.params + "\"";
  // Each with what is said of it, where P, G0 and G1 stand for the files.
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](Files& f) { f.names.grads.clear(); },
       "--params P was given without --grads; give one file of gradients for each step"},
      {[](Files& f) { f.names.out.clear(); },
       "--params P was given without --out; name the file that the new weights go to"},
      {[](Files& f) {
         f.names.frozen = {"a", "c*"};
       },
       "--frozen \"c*\" names no tensor of \"P\""},
      {[&](Files& f) { changed(f.names.params, [](SafetensorsFile& file) {
                         file.tensors[0].shape = {30, 2, 4, 5};
                       }); },
       "\"P\": tensor \"a\" is [30, 2, 4, 5], but only vectors, matrices and stacks of matrices are trained; with "
       "--frozen a it is written unchanged"},
      {[](Files& f) { f.names.split = {"a"}; },
       "--split a says of no tensor how it is split; it takes PATTERN=HOW, for example '*qkv*=qkv:32:8'"},
      {[](Files& f) { f.names.split = {"c=gate-up"}; }, "--split c=gate-up names no matrix of \"P\""},
      {[](Files& f) { f.names.split = {"a=heads:4"}; },
       "--split …=heads:4 shares rows out to 4 parts, which does not divide the 30 rows of the matrix; give the "
       "numbers "
       "of heads that it has"},
      {[](Files& f) { f.names.split = {"a=qkv:0:1"}; },
       "--split …=qkv:0:1 is not known; it takes qkv:HEADS:KV_HEADS, qkv-heads:HEADS:KV_HEADS, the same with megatron- "
       "before it, heads:HEADS or gate-up, for example qkv-heads:32:8"},
      {[&](Files& f) {
         f.names.momentum_in = f.names.grads[0];
         changed(f.names.grads[0], [](SafetensorsFile& file) { file.tensors[1].shape = {40, 30}; });
         f.names.grads = {f.names.grads[1]};
       },
       "\"G0\": tensor \"b\" is [40, 30] here but [30, 40] in \"P\"; a momentum has the shape of its weights"},
      {[](Files& f) { f.names.frozen = {"*"}; },
       "\"P\": there is no tensor of type F32, BF16 or F16 in it that could be trained"},
      {[&](Files& f) { changed(f.names.grads[1], [](SafetensorsFile& file) { file.tensors[1].name = "c"; }); },
       "\"G1\": tensor \"c\" has no weights in \"P\"; both files must name the same tensors"},
      {[&](Files& f) { changed(f.names.grads[0], [](SafetensorsFile& file) {
                         file.tensors[1].shape = {40, 30};
                       }); },
       "\"G0\": tensor \"b\" is [40, 30] here but [30, 40] in \"P\"; a gradient has the shape of its weights"},
      {[&](Files& f) { changed(f.names.grads[1], [](SafetensorsFile& file) { file.tensors.pop_back(); }); },
       "\"G1\": there is no gradient for matrix \"b\" of \"P\"; each file of gradients must hold all of them, but for "
       "what is named with --frozen"},
      {[&](Files& f) { changed(f.names.grads[0], [&](SafetensorsFile& file) { of_type(file.tensors[0], "I32"); }); },
       "\"G0\": the gradient \"a\" is of type I32; it must be F32, BF16 or F16"},
      {[&](Files& f) {
         changed(f.names.params, [&](SafetensorsFile& file) { vector_of(file.tensors[1]); });
         for (const std::string& path : f.names.grads)
           changed(path, [](SafetensorsFile& file) { file.tensors.pop_back(); });
       },
       "\"G0\": there is no gradient for vector \"b\" of \"P\"; each file of gradients must hold all of them, but for "
       "what is named with --frozen"},
      {[&](Files& f) {
         for (const std::string& path : {f.names.params, f.names.grads[0], f.names.grads[1]})
           changed(path, [&](SafetensorsFile& file) {
             vector_of(file.tensors[1]);
             Matrix values = file.tensors[1].matrix();
             if (path == f.names.grads[1]) values(0, 3) = std::numeric_limits<float>::quiet_NaN();
             file.tensors[1].store(values);
           });
       },
       "\"G1\": tensor \"b\" holds a NaN at element 3; a step needs finite numbers"}};
  for (const auto& [change, sentence] : cases) {
    CAPTURE(sentence);
    Files files(2);
    change(files);
    std::string said = refusal(files);
    for (const std::string name : {"P", "G0", "G1"})
      for (std::size_t at = said.find(files.folder.file(name)); at != std::string::npos;
           at = said.find(files.folder.file(name)))
        said.replace(at, files.folder.file(name).size(), name);
    CHECK(said == sentence);
  }

  Files nowhere(1);
  nowhere.names.out = nowhere.folder.file("none/O");
  CHECK(refusal(nowhere) ==
        "can't write \"" + nowhere.names.out + "\": No such file or directory; create its folder first");
}

TEST_CASE("split_rows: together the pieces are all rows, each once; heads are as long as one another") {
  for (const std::string how :
       {"qkv:4:2", "qkv-heads:4:2", "megatron-qkv:4:2", "megatron-qkv-heads:4:2", "heads:8", "gate-up"}) {
    CAPTURE(how);
    const std::vector<Piece> pieces = split_rows(how, 48);
    std::vector<int> seen(48);
    for (const Piece& piece : pieces)
      for (const Range& range : piece.rows)
        for (Index row = range.begin; row < range.end; ++row) ++seen[static_cast<std::size_t>(row)];
    CHECK(seen == std::vector<int>(48, 1));
    const std::size_t expected = how == "gate-up" ? 2 : how.find("heads") != std::string::npos ? 8 : 3;
    CHECK(pieces.size() == expected);
    if (expected == 8)
      for (const Piece& piece : pieces) CHECK(piece.count() == 6);
  }
  CHECK(split_rows("qkv:4:2", 48)[1].rows == std::vector<Range>{{24, 36}});
  CHECK(split_rows("megatron-qkv:4:2", 48)[1].rows == std::vector<Range>{{12, 18}, {36, 42}});
  for (const char* wrong :
       {"", "qkv", "qkv:4", "qkv:4:2:1", "qkv:4:x", "heads", "heads:2:2", "gate-up:2", "megatron-heads:2", "qkv:-4:2"})
    CHECK_THROWS_AS(split_rows(wrong, 48), UsageError);
}

TEST_CASE("FileTraining: the momentum has to be that of what Muon steps, with a second moment where one is kept") {
  Files files(1);
  files.names.momentum_in = files.names.grads[0];
  files.names.momentum_out = files.folder.file("M");
  const FileTraining training(files.names, 1);
  const SecondMoment none, used{true};
  const auto error = [&](const std::vector<std::string>& parameters, const SecondMoment& means) {
    std::string said = usage_error([&] { training.require_kept(parameters, means); });
    return said.find(": ") == std::string::npos ? said : said.substr(said.find(": "));
  };
  CHECK(error({"a", "b"}, none) == "(no UsageError)");
  CHECK(error({"a"}, none) == ": \"b\" has a momentum here, but Muon doesn't step it; leave it out");
  CHECK(error({"a", "b", "c"}, none) ==
        ": \"c\" has no momentum here; the file must hold that of every matrix that Muon steps");
  CHECK(error({"a", "b"}, used) ==
        ": \"a\" needs a vector of 30 numbers called a.second_moment here, because this recipe keeps a second moment");

  // Written and read again.
  MuonMemory kept = training.kept();
  for (const char* name : {"a", "b"}) kept.second_moments[name] = Flat(30, 0.25f);
  training.write_kept(kept);
  TrainingFileNames again = files.names;
  again.momentum_in = files.names.momentum_out;
  const FileTraining read(again, 1);
  CHECK(read.kept().second_moments == kept.second_moments);
  for (const char* name : {"a", "b"}) CHECK(read.kept().momentum.at(name).flat() == kept.momentum.at(name).flat());
  read.require_kept({"a", "b"}, used);
  CHECK(usage_error([&] {
          read.require_kept({"a", "b"}, none);
        }).find("has a second moment here, which this recipe doesn't keep") != std::string::npos);
}

TEST_CASE("FileTraining: writes each tensor in its own type, and what is frozen or of another type as it was") {
  Files files(1);
  SafetensorsFile params = read_safetensors(files.names.params);
  params.metadata = {{"format", "pt"}, {"by", "somebody"}};
  params.tensors.insert(params.tensors.begin() + 1, {"ids", "I64", StoredType::other, {2}, std::vector<std::byte>(16)});
  params.tensors.push_back({"half", "BF16", StoredType::bf16, {3}, std::vector<std::byte>(6)});
  params.tensors.push_back({"rope", "F32", StoredType::f32, {2, 2, 1}, std::vector<std::byte>(16, std::byte{7})});
  params.tensors.push_back({"none", "F32", StoredType::f32, {0, 4}, {}});
  write_safetensors(files.names.params, params);
  SafetensorsFile gradients = read_safetensors(files.names.grads[0]);
  gradients.tensors.push_back(params.tensors[3]);
  write_safetensors(files.names.grads[0], gradients);
  files.names.frozen = {"ro*"};
  const FileTraining training(files.names, 1);
  CHECK(training.unchanged() == std::vector<std::string>{"ids", "rope", "none"});
  REQUIRE(training.parameters().size() == 3);
  CHECK(training.parameters()[0].dims == 2);
  CHECK(training.parameters()[2].dims == 1);
  CHECK(training.parameters()[2].shape == Shape{1, 3});
  CHECK(training.leaves_per_rank(4) == 1);

  std::vector<Matrix> weights;
  for (int p = 0; p < 3; ++p) {
    weights.push_back(training.weights(p));
    for (float& value : weights.back().flat()) value = 1.00390625f + static_cast<float>(p);  // 1 + 2⁻⁸
  }
  training.write(weights);
  const SafetensorsFile written = read_safetensors(files.names.out);
  CHECK(written.metadata == params.metadata);
  REQUIRE(written.tensors.size() == params.tensors.size());
  for (std::size_t t = 0; t < written.tensors.size(); ++t) {
    const StoredTensor &is = written.tensors[t], &was = params.tensors[t];
    CAPTURE(is.name);
    CHECK(is.name == was.name);
    CHECK(is.dtype == was.dtype);
    CHECK(is.shape == was.shape);
    const bool trained = is.name == "a" || is.name == "b" || is.name == "half";
    CHECK((is.bytes == was.bytes) == !trained);
  }
  CHECK(same_bits(written.find("b")->matrix(), weights[1]));
  CHECK(written.find("half")->matrix()(0, 1) == 3.0f);  // of 8 bits, to the even one
}

TEST_CASE("FileTraining: TP cuts the rows where it divides them, else the columns, else nothing") {
  const Files files(1);
  const SafetensorsFile stored = read_safetensors(files.names.params);
  for (int tp = 1; tp <= 12; ++tp) {
    const FileTraining training(files.names, tp);
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
  const FileTraining training(files.names, 1);
  const auto weights = training.first_weights();
  const auto sentence = [&] { return run_error([&] { training.gradients(1, 0, weights); }); };
  CHECK(sentence() == "");
  const std::string path = files.names.grads[1];

  write_safetensors(path, file_of(7));
  const std::string others =
      "\"" + path + "\" holds other gradients than at the start; leave the files as they are until the run has ended";
  CHECK(sentence() == others);
  std::filesystem::resize_file(path, 500);
  CHECK(sentence().find("step 2 can't take its gradients, which were there at the start: can't read \"" + path) == 0);
  std::filesystem::remove(path);
  CHECK(sentence() == "step 2 can't take its gradients, which were there at the start: can't read \"" + path +
                          "\": there is no such file; check the path");

  // One bit of one element of any tensor is another gradient.
  for (std::size_t tensor : {0, 1})
    for (std::size_t byte : {0, 2400, 4799}) {
      SafetensorsFile changed = file_of(2);
      changed.tensors[tensor].bytes[byte] ^= std::byte{1};
      write_safetensors(path, changed);
      CHECK(sentence() == others);
    }

  write_safetensors(path, file_of(2));  // back as it was
  CHECK(sentence() == "");
}
