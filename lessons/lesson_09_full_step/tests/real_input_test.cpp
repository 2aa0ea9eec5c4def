#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <sstream>

#include "src/io/safetensors.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/serial_muon.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

const std::string kLesson = LESSON_09;
const std::string kEmbedding = "model.embed_tokens.weight";

StoredTensor tensor(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
                    std::uint64_t number) {
  StoredTensor stored;
  stored.name = name;
  stored.dtype = dtype;
  stored.type = dtype == "F32"    ? StoredType::f32
                : dtype == "BF16" ? StoredType::bf16
                : dtype == "F16"  ? StoredType::f16
                                  : StoredType::other;
  stored.shape = shape;
  const std::int64_t size = dtype == "F32" ? 4 : dtype == "I64" ? 8 : 2;
  stored.bytes.resize(static_cast<std::size_t>(stored.elements() * size));
  if (stored.can_be_trained()) {
    const bool matrix = shape.size() == 2;
    stored.store(random_matrix({7, number}, matrix ? shape[0] : 1, matrix ? shape[1] : stored.elements()));
  } else {
    for (std::size_t i = 0; i < stored.bytes.size(); ++i) stored.bytes[i] = static_cast<std::byte>(i % 120);
  }
  return stored;
}

// Hidden matrices of every type that can be trained; an embedding, vectors and a single number; tensors that nothing
// trains.
SafetensorsFile weights() {
  SafetensorsFile file;
  file.tensors = {tensor("q", "F32", {12, 20}, 1),        tensor("norm", "F32", {20}, 2),
                  tensor("k", "BF16", {9, 16}, 3),        tensor("up", "F16", {30, 8}, 4),
                  tensor("tokens", "I64", {2, 3, 4}, 5),  tensor("odd", "F32", {7, 5}, 6),
                  tensor(kEmbedding, "BF16", {16, 6}, 7), tensor("up.bias", "F16", {30}, 8),
                  tensor("none", "F32", {0, 4}, 9),       tensor("scale", "F32", {}, 10)};
  file.metadata = {{"format", "pt"}};
  return file;
}

SafetensorsFile gradients(std::uint64_t step) {
  SafetensorsFile file;
  file.tensors = {tensor("odd", "F32", {7, 5}, 10 * step + 1),   tensor("q", "BF16", {12, 20}, 10 * step + 2),
                  tensor("up", "F32", {30, 8}, 10 * step + 3),   tensor("k", "F16", {9, 16}, 10 * step + 4),
                  tensor("norm", "F32", {20}, 10 * step + 5),    tensor("scale", "BF16", {}, 10 * step + 6),
                  tensor("up.bias", "F32", {30}, 10 * step + 7), tensor(kEmbedding, "F32", {16, 6}, 10 * step + 8)};
  return file;
}

using Names = std::vector<std::string>;

// Steps some tensors of the file with a serial optimizer in float32, and stores them back in their own types.
template <class Optimizer, class Settings>
void take_serial_steps(SafetensorsFile& file, const std::vector<SafetensorsFile>& grads, const Names& names,
                       const Settings& settings) {
  std::vector<NamedMatrix> parameters;
  for (const std::string& name : names) parameters.push_back({name, file.find(name)->matrix()});
  Optimizer optimizer(parameters, settings);
  for (const SafetensorsFile& grad : grads) {
    std::vector<Matrix> leaf;
    for (const std::string& name : names) leaf.push_back(grad.find(name)->matrix());
    optimizer.step({leaf});
  }
  for (const NamedMatrix& parameter : optimizer.parameters())
    for (StoredTensor& stored : file.tensors)
      if (stored.name == parameter.name) stored.store(parameter.matrix);
}

// Who steps what, unless asked for otherwise.
struct Routes {
  Names muon = {"q", "k", "up", "odd"};
  Names adamw = {kEmbedding};
  Names without_decay = {"norm", "up.bias", "scale"};
};

// What one process makes of the files.
SafetensorsFile serial_result(const std::vector<SafetensorsFile>& grads, const MuonSettings& settings,
                              AdamWSettings adamw = {}, const Routes& routes = {}, SafetensorsFile file = weights()) {
  take_serial_steps<SerialMuon>(file, grads, routes.muon, settings);
  take_serial_steps<SerialAdamW>(file, grads, routes.adamw, adamw);
  adamw.weight_decay = 0;
  take_serial_steps<SerialAdamW>(file, grads, routes.without_decay, adamw);
  return file;
}

struct Files {
  TemporaryFolder folder;
  Files() {
    write_safetensors(folder.file("P"), weights());
    write_safetensors(folder.file("G0"), gradients(1));
    write_safetensors(folder.file("G1"), gradients(2));
  }
  Outcome run(std::vector<std::string> more, const std::function<void()>& prepare = nullptr) const {
    std::vector<std::string> command = {kLesson,           "--params",        folder.file("P"), "--grads",
                                        folder.file("G0"), folder.file("G1"), "--out",          folder.file("O")};
    command.insert(command.end(), more.begin(), more.end());
    return run_program(command, 120, prepare);
  }
};

// The output of lesson 09 equals the serial result, tensor by tensor and byte by byte.
void require_same(const std::string& path, const SafetensorsFile& expected) {
  const SafetensorsFile written = read_safetensors(path);
  REQUIRE(written.tensors.size() == expected.tensors.size());
  for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
    CAPTURE(expected.tensors[i].name);
    CHECK(written.tensors[i].name == expected.tensors[i].name);
    CHECK(written.tensors[i].dtype == expected.tensors[i].dtype);
    CHECK(written.tensors[i].shape == expected.tensors[i].shape);
    CHECK(written.tensors[i].bytes == expected.tensors[i].bytes);
  }
  CHECK(written.metadata == expected.metadata);
}

}  // namespace

TEST_CASE("lesson 09 on files: every layout writes the bytes that one process would, in each tensor's own type") {
  const std::vector<std::vector<std::string>> layouts = {
      {"--dp", "1", "--tp", "1"},
      {"--dp", "2", "--tp", "2"},
      {"--dp", "4"},
      {"--dp", "3", "--tp", "1"},
      {"--dp", "1", "--tp", "4"},
      {"--tp", "5", "--dp", "1"},
      {"--pp", "2", "--dp", "2", "--tp", "1"},
      {"--pp", "8", "--dp", "1", "--tp", "1"},  // stages that have no hidden matrix, and stages that have nothing else
      {"--dp", "2", "--tp", "2", "--ownership", "matrices"},
      {"--dp", "3", "--tp", "2", "--ownership", "buffer", "--bucket-capacity", "60"},
      {"--dp", "2", "--tp", "2", "--bucket-capacity", "100", "--alignment", "64"},
      {"--dp", "2", "--tp", "2", "--world", "fibers"}};
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    MuonSettings settings;
    settings.newton_schulz.precision = precision;
    const SafetensorsFile expected = serial_result({gradients(1), gradients(2)}, settings);
    for (std::vector<std::string> layout : layouts) {
      layout.insert(layout.end(), {"--precision", precision_name(precision)});
      CAPTURE(layout);
      const Files files;
      const Outcome outcome = files.run(layout);
      INFO(outcome.out, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      require_same(files.folder.file("O"), expected);
      CHECK(files.folder.names() == std::vector<std::string>{"G0", "G1", "O", "P"});
      for (const char* line : {"Muon steps the hidden matrices: q, k, up, odd\n",
                               "ZeRO-1 AdamW steps the embeddings and output: model.embed_tokens.weight\n",
                               "ZeRO-1 AdamW steps the vectors: norm, up.bias, scale\n", "wrote   8 new tensors to ",
                               "not trained and written unchanged: tokens, none\n"}) {
        CAPTURE(line);
        CHECK(outcome.out.find(line) != std::string::npos);
      }
      // The times say where the gradients came from.
      CHECK(outcome.err.find("gradients (your files)") != std::string::npos);
      CHECK(outcome.err.find("random numbers") == std::string::npos);
    }
  }
}

TEST_CASE("lesson 09 on files: what is frozen is written unchanged, and --adamw-for gives a matrix to AdamW") {
  SafetensorsFile with_more = weights();
  with_more.tensors.push_back(tensor("conv", "F32", {2, 3, 4}, 11));  // can be written, but not trained
  Routes routes;
  routes.muon = {"q", "up"};
  routes.adamw = {kEmbedding, "k", "odd"};
  routes.without_decay = {"up.bias", "scale"};
  const SafetensorsFile expected =
      serial_result({gradients(1), gradients(2)}, MuonSettings(), AdamWSettings(), routes, with_more);
  const Files files;
  write_safetensors(files.folder.file("P"), with_more);
  const Outcome outcome = files.run(
      {"--dp", "2", "--tp", "2", "--frozen", "c*", "--frozen", "norm", "--adamw-for", "k", "--adamw-for", "o*d"});
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  require_same(files.folder.file("O"), expected);
  CHECK(outcome.out.find("written unchanged: norm, tokens, none, conv\n") != std::string::npos);
}

TEST_CASE("lesson 09 on files: with vectors alone there is no Newton–Schulz, and the output says so") {
  const auto vectors_of = [](SafetensorsFile file) {
    SafetensorsFile some;
    for (StoredTensor& stored : file.tensors)
      if (stored.name == "norm" || stored.name == "up.bias") some.tensors.push_back(stored);
    return some;
  };
  Routes routes;
  routes.muon = routes.adamw = {};
  routes.without_decay = {"norm", "up.bias"};
  const Files files;
  for (const auto& [name, file] : {std::pair("P", weights()), {"G0", gradients(1)}, {"G1", gradients(2)}})
    write_safetensors(files.folder.file(name), vectors_of(file));
  const Outcome outcome = files.run({"--dp", "3", "--tp", "2"});
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  require_same(files.folder.file("O"), serial_result({gradients(1), gradients(2)}, MuonSettings(), AdamWSettings(),
                                                     routes, vectors_of(weights())));
  CHECK(outcome.out.find("there is no Newton–Schulz in a step") != std::string::npos);
}

TEST_CASE("lesson 09 on files: a plan is printed for all that the file holds, and no rank is started") {
  const Files files;
  const Outcome outcome = files.run({"--plan", "--dp", "2", "--tp", "2"});
  INFO(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  for (const char* phase : {"Newton–Schulz", "AdamW", "second moments"})
    CHECK(outcome.out.find(phase) != std::string::npos);
  CHECK(files.folder.names() == std::vector<std::string>{"G0", "G1", "P"});
}

TEST_CASE("lesson 09 on files: the settings of the command line reach the step") {
  MuonSettings settings;
  settings.lr = 0.02f;
  settings.momentum = 0.5f;
  settings.weight_decay = 0.0f;
  settings.rms = 0.3f;
  settings.newton_schulz.steps = 3;
  settings.nesterov = false;
  settings.newton_schulz.precision = Precision::bf16;
  const AdamWSettings adamw{0.25f, 0.5f, 0.75f, 0.125f, 0.0625f};
  const Files files;
  std::istringstream options(
      "--dp 2 --tp 2 --lr 0.02 --momentum 0.5 --weight-decay 0 --rms 0.3 --ns-steps 3 --no-nesterov --precision bf16 "
      "--adamw-lr 0.25 --adamw-beta1 0.5 --adamw-beta2 0.75 --adamw-epsilon 0.125 --adamw-decay 0.0625");
  const std::vector<std::string> words{std::istream_iterator<std::string>(options), {}};
  const Outcome outcome = files.run(words);
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  require_same(files.folder.file("O"), serial_result({gradients(1), gradients(2)}, settings, adamw));
}

TEST_CASE(
    "lesson 09 on files: every recipe, with its own numbers, on four ranks and on one: the bytes of one process") {
  const Files files;
  for (const Recipe& recipe : recipes())
    for (const bool four : {false, true}) {
      CAPTURE(recipe.name);
      MuonSettings settings = recipe.settings;
      settings.newton_schulz.precision = Precision::bf16;
      const Outcome outcome = files.run({"--recipe", recipe.name, "--precision", "bf16", "--dp", four ? "2" : "1",
                                         "--tp", four ? "2" : "1", "--world", "fibers", "--bucket-capacity", "100"});
      INFO(outcome.out, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      CHECK(outcome.out.find("recipe  " + recipe.name + ": ") != std::string::npos);
      require_same(files.folder.file("O"), serial_result({gradients(1), gradients(2)}, settings));
    }
}

TEST_CASE("lesson 09 on files: momentum that is written and read again goes on as if the run had never stopped") {
  for (const char* recipe : {"torch", "normuon", "nanochat"}) {
    CAPTURE(recipe);
    Routes hidden;  // AdamW's moments are in no file
    hidden.adamw = hidden.without_decay = {};
    const Files files;
    const auto file = [&](const std::string& name) { return files.folder.file(name); };
    const auto step = [&](const std::string& from, const std::string& gradient, const std::string& to, Names more) {
      Names command = {kLesson, "--recipe", recipe,     "--params", file(from), "--grads", file(gradient),
                       "--out", file(to),   "--world",  "fibers",   "--dp",     "3",       "--tp",
                       "2",     "--frozen", kEmbedding, "norm",     "up.bias",  "scale"};
      command.insert(command.end(), more.begin(), more.end());
      const Outcome outcome = run_program(command, 120);
      INFO(outcome.out, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      return outcome;
    };
    for (const char* gradient : {"G0", "G1"}) {
      SafetensorsFile file_of = read_safetensors(file(gradient));
      file_of.tensors.erase(std::remove_if(file_of.tensors.begin(), file_of.tensors.end(),
                                           [](const StoredTensor& each) {
                                             return each.name == kEmbedding || each.name == "norm" ||
                                                    each.name == "up.bias" || each.name == "scale";
                                           }),
                            file_of.tensors.end());
      write_safetensors(file(gradient), file_of);
    }
    // In float32, so that nothing is rounded in between.
    SafetensorsFile first = weights();
    for (StoredTensor& each : first.tensors) {
      if (each.shape.size() != 2 || !each.can_be_trained() || each.name == kEmbedding) continue;
      const Matrix values = each.matrix();
      each.dtype = "F32", each.type = StoredType::f32;
      each.bytes.resize(static_cast<std::size_t>(4 * each.elements()));
      each.store(values);
    }
    write_safetensors(file("P"), first);
    const Outcome outcome = step("P", "G0", "O1", {"--momentum-out", file("M1")});
    CHECK(outcome.out.find("momentum after the last step: 6 ranks equal the reference") != std::string::npos);
    step("O1", "G1", "O2", {"--momentum-in", file("M1"), "--momentum-out", file("M2")});
    require_same(file("O2"),
                 serial_result({gradients(1), gradients(2)}, recipe_named(recipe).settings, {}, hidden, first));
    CHECK(read_safetensors(file("M2")).tensors.size() == (std::string(recipe) == "torch" ? 4 : 8));
    // Without it, the second step is another.
    step("O1", "G1", "O3", {});
    const Matrix with = read_safetensors(file("O2")).find("q")->matrix();
    CHECK(read_safetensors(file("O3")).find("q")->matrix().flat() != with.flat());
  }
}

TEST_CASE("lesson 09 on files: a stack of experts and what projections share: each matrix is a parameter by itself") {
  TemporaryFolder folder;
  const auto experts = tensor("experts", "F32", {3, 8, 12}, 1), qkv = tensor("qkv", "F32", {24, 16}, 2);
  const auto fill = [](StoredTensor stored, std::uint64_t number) {
    const Index rows = stored.elements() / stored.shape.back();
    StoredTensor flat = stored;
    flat.shape = {rows, stored.shape.back()};
    flat.store(random_matrix({11, number}, rows, stored.shape.back()));
    stored.bytes = flat.bytes;
    return stored;
  };
  SafetensorsFile params, grads;
  params.tensors = {fill(experts, 1), fill(qkv, 2)};
  grads.tensors = {fill(experts, 3), fill(qkv, 4)};
  write_safetensors(folder.file("P"), params);
  write_safetensors(folder.file("G"), grads);
  const Outcome outcome = run_program(
      {kLesson, "--recipe", "dion", "--dp", "2", "--tp", "2", "--world", "fibers", "--params", folder.file("P"),
       "--grads", folder.file("G"), "--out", folder.file("O"), "--split", "qkv=megatron-qkv:4:1"},
      120);
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out.find("experts[2]") != std::string::npos);
  CHECK(outcome.out.find("qkv[k]") != std::string::npos);
  const SafetensorsFile after = read_safetensors(folder.file("O"));
  const auto rows_of = [](const SafetensorsFile& file, std::size_t number, Index begin, Index end) {
    StoredTensor flat = file.tensors[number];
    flat.shape = {flat.elements() / flat.shape.back(), flat.shape.back()};
    return take_rows(flat.matrix(), {"", {{begin, end}}});
  };
  std::vector<std::array<Index, 3>> parts;  // tensor, first row, end
  for (Index expert = 0; expert < 3; ++expert) parts.push_back({0, 8 * expert, 8 * expert + 8});
  for (const Index end : {16, 20, 24}) parts.push_back({1, end == 16 ? 0 : end - 4, end});  // one group of heads
  for (const auto& [number, begin, end] : parts) {
    const std::size_t t = static_cast<std::size_t>(number);
    SerialMuon muon({{"w", rows_of(params, t, begin, end)}}, recipe_named("dion").settings);
    muon.step({{rows_of(grads, t, begin, end)}});
    CHECK(muon.parameters()[0].matrix.flat() == rows_of(after, t, begin, end).flat());
  }
}

TEST_CASE("lesson 09 on files: chain and tiles write the same bytes with the code for any processor") {
  const std::pair<Products, Precision> orders[] = {
      {Products::chain, Precision::fp32}, {Products::chain, Precision::bf16}, {Products::tiles, Precision::bf16}};
  for (const auto& [products, precision] : orders) {
    MuonSettings settings;
    settings.newton_schulz.precision = precision;
    settings.newton_schulz.products = products;
    const std::string name = products_name(products);
    const SafetensorsFile expected = serial_result({gradients(1), gradients(2)}, settings);
    for (const ChainKernel* kernel : chain_kernels()) {
      INFO(name << " " << precision_name(precision) << " " << kernel->name);
      const Files files;
      const Outcome outcome =
          files.run({"--dp", "2", "--tp", "2", "--products", name, "--precision", precision_name(precision)},
                    [kernel] { setenv("MUONWALK_CHAIN", kernel->name, 1); });
      INFO(outcome.out, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      require_same(files.folder.file("O"), expected);
    }
  }
  const Outcome refused = Files().run({"--products", "chain"}, [] { setenv("MUONWALK_CHAIN", "abacus", 1); });
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find(
            "MUONWALK_CHAIN=abacus names no code for chains that this processor can run; it can run plain") !=
        std::string::npos);
  const Outcome no_eigen = Files().run({}, [] { setenv("MUONWALK_EIGEN", "abacus", 1); });
  CHECK(no_eigen.exit_code == 2);
  CHECK(no_eigen.err.find("MUONWALK_EIGEN=abacus names no code for Eigen's products that this processor can run") !=
        std::string::npos);
}

TEST_CASE("lesson 09, small: each engine, ranks as processes and as fibers, one thread per rank or three") {
  for (const char* products : {"eigen", "chain", "tiles"})
    for (const char* precision : {"fp32", "bf16"})
      for (const std::vector<std::string>& more :
           std::vector<std::vector<std::string>>{{}, {"--threads", "3"}, {"--world", "fibers"}}) {
        CAPTURE(std::string(products));
        CAPTURE(std::string(precision));
        CAPTURE(more);
        std::vector<std::string> command = {kLesson, "--small", "--steps", "2", "--dp", "2", "--tp", "2"};
        command.insert(command.end(), {"--products", products, "--precision", precision});
        command.insert(command.end(), more.begin(), more.end());
        const Outcome outcome = run_program(command, 120);
        INFO(outcome.out, outcome.err);
        CHECK(outcome.exit_code == 0);
      }
}

TEST_CASE("lesson 09 on files: TP cuts rows if it can, else columns, else nothing") {
  const Files files;
  Outcome outcome = files.run({"--dp", "1", "--tp", "4"});
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  std::map<std::string, std::string> cuts;  // a line of the table: name, rows × cols, cut, …
  for (const std::string& line : lines_of(outcome.out))
    for (const char* name : {"q", "k", "up", "odd"})
      if (line.rfind(std::string(name) + " ", 0) == 0)
        for (const char* dim : {"rows", "columns", "none"})
          if (line.find(std::string(" ") + dim + " ") != std::string::npos) cuts[name] = dim;
  CHECK(cuts ==
        std::map<std::string, std::string>{{"q", "rows"}, {"k", "columns"}, {"up", "columns"}, {"odd", "none"}});
  require_same(files.folder.file("O"), serial_result({gradients(1), gradients(2)}, MuonSettings()));
}

TEST_CASE("lesson 09 on files: whatever is wrong is one sentence, exit 2, and no output") {
  struct Case {
    const char* what;
    std::function<void(const Files&)> spoil;
    std::vector<std::string> options;
    const char* sentence;  // part of it
  };
  const auto spoil_gradient = [](const Files& files) {
    SafetensorsFile file = gradients(2);
    Matrix values = file.tensors[0].matrix();
    values(1, 2) = std::numeric_limits<float>::quiet_NaN();
    file.tensors[0].store(values);
    write_safetensors(files.folder.file("G1"), file);
  };
  // One of each kind that can be wrong with files; training_files_test.cpp has all of them.
  const Case cases[] = {
      {"missing weights", [](const Files& f) { std::filesystem::remove(f.folder.file("P")); }, {}, "/P"},
      {"missing gradients", [](const Files& f) { std::filesystem::remove(f.folder.file("G1")); }, {}, "/G1"},
      {"truncated", [](const Files& f) { std::filesystem::resize_file(f.folder.file("G0"), 1000); }, {}, "/G0"},
      {"a NaN", spoil_gradient, {}, "holds a NaN at row 1, column 2"},
      {"nothing of this name for AdamW", nullptr, {"--adamw-for", "norm"}, "--adamw-for norm names no matrix"},
      {"a negative learning rate of AdamW", nullptr, {"--adamw-lr", "-1"}, "--adamw-lr -1"},
      {"a beta of one", nullptr, {"--adamw-beta2", "1"}, "--adamw-beta2 1"},
      {"no epsilon", nullptr, {"--adamw-epsilon", "0"}, "--adamw-epsilon 0"},
      {"a negative learning rate", nullptr, {"--lr", "-1"}, "--lr -1"},
      {"a momentum of one", nullptr, {"--momentum", "1"}, "--momentum 1"},
      {"no number", nullptr, {"--lr", "fast"}, "--lr"},
      {"a folder that is not there", nullptr, {"--out", "/no/such/folder/O"}, "/no/such/folder"},
      {"more stages than parameters", nullptr, {"--pp", "9", "--dp", "1", "--tp", "1"}, "--pp 9"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const Files files;
    if (c.spoil) c.spoil(files);
    const auto before = files.folder.names();
    std::vector<std::string> command = {
        kLesson, "--params", files.folder.file("P"), "--grads", files.folder.file("G0"), files.folder.file("G1")};
    if (std::find(c.options.begin(), c.options.end(), "--out") == c.options.end())
      command.insert(command.end(), {"--out", files.folder.file("O")});
    command.insert(command.end(), c.options.begin(), c.options.end());
    const Outcome outcome = run_program(command, 60);
    INFO(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.find(c.sentence) != std::string::npos);
    CHECK(outcome.out.empty());
    CHECK(files.folder.names() == before);
  }
}

TEST_CASE("lesson 09 on files: no output is an input or another output, whatever they are called") {
  const Files files;
  const auto path = [&](const std::string& name) { return files.folder.file(name); };
  std::filesystem::create_hard_link(path("G1"), path("hard"));
  std::filesystem::create_symlink("P", path("link"));
  std::filesystem::create_symlink("O", path("to O"));
  const std::vector<std::string> before = files.folder.names();
  const std::string weights_before = read_text(path("P")), gradients_before = read_text(path("G1"));
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--record", path("P")},
                                             {"--record", path("./O")},
                                             {"--trace", path("hard")},
                                             {"--trace", path("to O"), "--record", path("O")},
                                             {"--trace", path("to O")},
                                             {"--out", path("link")},
                                             {"--out", path("hard")},
                                             {"--record", path("x"), "--trace", path("./x")},
                                             {"--record", path("x.json"), "--trace", path("x.json")}}) {
    CAPTURE(more);
    std::vector<std::string> words = {"--dp", "2", "--tp", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = files.run(words);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.out.empty());
    CHECK(files.folder.names() == before);
  }
  CHECK(read_text(path("P")) == weights_before);
  CHECK(read_text(path("G1")) == gradients_before);
}

TEST_CASE("lesson 09 on files: --params alone, --grads alone and --out alone are refused") {
  const Files files;
  const std::string p = files.folder.file("P"), g = files.folder.file("G0"), o = files.folder.file("O");
  expect_refused({kLesson}, {{{"--params", p}, "--params"},
                             {{"--grads", g}, "--grads"},
                             {{"--out", o}, "--out"},
                             {{"--params", p, "--grads", g}, "--out"},
                             {{"--params", p, "--out", o}, "--grads"},
                             {{"--frozen", "q"}, "--frozen"},
                             {{"--adamw-lr", "0.5"}, "--adamw go with --params"},
                             {{"--adamw-for", "q"}, "--adamw go with --params"},
                             {{"--small", "--adamw-decay", "0"}, "--adamw go with --params"}});
}

TEST_CASE("lesson 09 on files: a full disk, a dead rank or a difference leaves an old output as it was") {
  const Files files;
  write_text(files.folder.file("O"), "old");
  const auto require_untouched = [&](const Outcome& outcome, int code) {
    INFO(outcome.out, outcome.err);
    CHECK(outcome.exit_code == code);
    CHECK(read_text(files.folder.file("O")) == "old");
    CHECK(files.folder.names() == std::vector<std::string>{"G0", "G1", "O", "P"});
    CHECK(outcome.err.find("went on to") == std::string::npos);  // no rank took the outcome of a check for its own
  };
  require_untouched(files.run({"--dp", "2", "--tp", "2", "--fault", "kill:3:3"}), 3);
  require_untouched(files.run({"--dp", "2", "--tp", "2", "--bug", "forgotten_momentum"}), 1);
  require_untouched(files.run({"--dp", "2", "--tp", "2"},
                              [] {
                                signal(SIGXFSZ, SIG_IGN);
                                const rlimit limit = {1500, 1500};  // bytes: less than the output needs
                                setrlimit(RLIMIT_FSIZE, &limit);
                              }),
                    3);
}
