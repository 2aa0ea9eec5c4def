#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "src/io/safetensors.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/serial_muon.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

using namespace muonwalk;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

const std::string kLesson = LESSON_09;

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
  if (stored.is_matrix()) {
    stored.store(random_matrix({7, number}, shape[0], shape[1]));
  } else {
    for (std::size_t i = 0; i < stored.bytes.size(); ++i) stored.bytes[i] = static_cast<std::byte>(i % 120);
  }
  return stored;
}

// Weights of every type that can be stepped, and two tensors that can't.
SafetensorsFile weights() {
  SafetensorsFile file;
  file.tensors = {tensor("q", "F32", {12, 20}, 1),       tensor("norm", "F32", {20}, 2),
                  tensor("k", "BF16", {9, 16}, 3),       tensor("up", "F16", {30, 8}, 4),
                  tensor("tokens", "I64", {2, 3, 4}, 5), tensor("odd", "F32", {7, 5}, 6)};
  file.metadata = {{"format", "pt"}};
  return file;
}

SafetensorsFile gradients(std::uint64_t step) {
  SafetensorsFile file;
  file.tensors = {tensor("odd", "F32", {7, 5}, 10 * step + 1), tensor("q", "BF16", {12, 20}, 10 * step + 2),
                  tensor("up", "F32", {30, 8}, 10 * step + 3), tensor("k", "F16", {9, 16}, 10 * step + 4),
                  tensor("norm", "F32", {20}, 10 * step + 5)};
  return file;
}

// What one process makes of the files: SerialMuon in float32, stored back in each tensor's type.
SafetensorsFile serial_result(const std::vector<SafetensorsFile>& grads, const MuonSettings& settings) {
  SafetensorsFile file = weights();
  std::vector<NamedMatrix> parameters;
  for (const StoredTensor& stored : file.tensors)
    if (stored.is_matrix()) parameters.push_back({stored.name, stored.matrix()});
  SerialMuon muon(parameters, settings);
  for (const SafetensorsFile& grad : grads) {
    std::vector<Matrix> leaf;
    for (const NamedMatrix& parameter : parameters) leaf.push_back(grad.find(parameter.name)->matrix());
    muon.step({leaf});
  }
  for (const NamedMatrix& parameter : muon.parameters())
    for (StoredTensor& stored : file.tensors)
      if (stored.name == parameter.name) stored.store(parameter.matrix);
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
      {"--dp", "2", "--tp", "2", "--bucket-capacity", "100", "--alignment", "64"},
      {"--dp", "2", "--tp", "2", "--world", "threads", "--transport", "memory"}};
  const SafetensorsFile expected = serial_result({gradients(1), gradients(2)}, MuonSettings());
  for (const auto& layout : layouts) {
    CAPTURE(layout);
    const Files files;
    const Outcome outcome = files.run(layout);
    INFO(outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    require_same(files.folder.file("O"), expected);
    CHECK(files.folder.names() == std::vector<std::string>{"G0", "G1", "O", "P"});
    CHECK(outcome.out.find("left to AdamW and written unchanged: norm, tokens") != std::string::npos);
  }
}

TEST_CASE("lesson 09 on files: the settings of the command line reach the step") {
  MuonSettings settings;
  settings.lr = 0.02f;
  settings.momentum = 0.5f;
  settings.weight_decay = 0.0f;
  settings.rms = 0.3f;
  settings.ns_steps = 3;
  settings.nesterov = false;
  settings.precision = Precision::bf16;
  const Files files;
  const Outcome outcome = files.run({"--dp", "2", "--tp", "2", "--lr", "0.02", "--momentum", "0.5", "--weight-decay",
                                     "0", "--rms", "0.3", "--ns-steps", "3", "--no-nesterov", "--precision", "bf16"});
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  require_same(files.folder.file("O"), serial_result({gradients(1), gradients(2)}, settings));
}

TEST_CASE("lesson 09 on files: --products chain writes the same bytes with the code for any processor") {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    MuonSettings settings;
    settings.precision = precision;
    settings.products = Products::chain;
    const SafetensorsFile expected = serial_result({gradients(1), gradients(2)}, settings);
    for (const ChainKernel* kernel : chain_kernels()) {
      CAPTURE(std::string(precision_name(precision)));
      CAPTURE(std::string(kernel->name));
      const Files files;
      const Outcome outcome =
          files.run({"--dp", "2", "--tp", "2", "--products", "chain", "--precision", precision_name(precision)},
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
}

TEST_CASE("lesson 09, small: either engine, ranks as processes and as threads, one thread per rank or three") {
  for (const char* products : {"eigen", "chain"})
    for (const char* precision : {"fp32", "bf16"})
      for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
               {}, {"--threads", "3"}, {"--world", "threads", "--transport", "memory"}}) {
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

TEST_CASE("lesson 09 on files: TP cuts rows if it can, else columns, else nothing, unless told") {
  const Files files;
  Outcome outcome = files.run({"--dp", "1", "--tp", "4", "--tp-dim", "q=columns"});
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  std::map<std::string, std::string> cuts;  // a line of the table: name, rows × cols, cut, …
  for (const std::string& line : lines_of(outcome.out))
    for (const char* name : {"q", "k", "up", "odd"})
      if (line.rfind(std::string(name) + " ", 0) == 0)
        for (const char* dim : {"rows", "columns", "none"})
          if (line.find(std::string(" ") + dim + " ") != std::string::npos) cuts[name] = dim;
  CHECK(cuts ==
        std::map<std::string, std::string>{{"q", "columns"}, {"k", "columns"}, {"up", "columns"}, {"odd", "none"}});
  require_same(files.folder.file("O"), serial_result({gradients(1), gradients(2)}, MuonSettings()));
}

TEST_CASE("lesson 09 on files: whatever is wrong is one sentence, exit 2, and no output") {
  struct Case {
    const char* what;
    std::function<void(const Files&)> spoil;
    std::vector<std::string> options;
    const char* sentence;  // part of it
  };
  const auto with = [](const char* name, SafetensorsFile file) {
    return [name, file](const Files& files) { write_safetensors(files.folder.file(name), file); };
  };
  const auto edited = [](SafetensorsFile file, const std::function<void(SafetensorsFile&)>& edit) {
    edit(file);
    return file;
  };
  const auto nan_gradient = edited(gradients(2), [](SafetensorsFile& f) {
    Matrix values = f.tensors[0].matrix();
    values(1, 2) = std::numeric_limits<float>::quiet_NaN();
    f.tensors[0].store(values);
  });
  SafetensorsFile vectors;
  vectors.tensors = {tensor("norm", "F32", {20}, 2)};
  const Case cases[] = {
      {"missing weights", [](const Files& f) { std::filesystem::remove(f.folder.file("P")); }, {}, "/P"},
      {"missing gradients", [](const Files& f) { std::filesystem::remove(f.folder.file("G1")); }, {}, "/G1"},
      {"truncated", [](const Files& f) { std::filesystem::resize_file(f.folder.file("G0"), 1000); }, {}, "/G0"},
      {"empty", [](const Files& f) { write_text(f.folder.file("P"), ""); }, {}, "/P"},
      {"no JSON",
       [](const Files& f) { write_text(f.folder.file("G0"), std::string("\x05\0\0\0\0\0\0\0hello", 13)); },
       {},
       "/G0"},
      {"a gradient is missing",
       with("G0", edited(gradients(1), [](SafetensorsFile& f) { f.tensors.erase(f.tensors.begin()); })),
       {},
       "no gradient for matrix \"odd\""},
      {"a gradient has no weights",
       with("G1", edited(gradients(2), [](SafetensorsFile& f) { f.tensors[1].name = "other"; })),
       {},
       "\"other\" has no weights"},
      {"another shape",
       with("G1", edited(gradients(2),
                         [](SafetensorsFile& f) {
                           f.tensors[0].shape = {5, 7};
                         })),
       {},
       "\"odd\" is [5, 7] here but [7, 5]"},
      {"a NaN", with("G1", nan_gradient), {}, "holds a NaN at row 1, column 2"},
      {"no matrix", with("P", vectors), {}, "no 2-D tensor"},
      {"unknown matrix for --tp-dim", nullptr, {"--tp-dim", "nobody=rows"}, "nobody"},
      {"a dimension that tp does not divide",
       nullptr,
       {"--dp", "1", "--tp", "3", "--tp-dim", "q=columns"},
       "does not divide"},
      {"a bad word for --tp-dim", nullptr, {"--tp-dim", "q=diagonal"}, "diagonal"},
      {"a negative learning rate", nullptr, {"--lr", "-1"}, "--lr -1"},
      {"a momentum of one", nullptr, {"--momentum", "1"}, "--momentum 1"},
      {"no number", nullptr, {"--lr", "fast"}, "--lr"},
      {"a folder that is not there", nullptr, {"--out", "/no/such/folder/O"}, "/no/such/folder"},
      {"more stages than matrices", nullptr, {"--pp", "5", "--dp", "1", "--tp", "1"}, "--pp 5"},
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
                                             {"--svg", path("to O"), "--record", path("O")},
                                             {"--trace", path("to O")},
                                             {"--out", path("link")},
                                             {"--out", path("hard")},
                                             {"--record", path("x"), "--trace", path("./x")},
                                             {"--record", path("x.svg"), "--svg", path("x.svg")},
                                             {"--trace", path("t/rank_5.json"), "--trace-per-rank", path("t")},
                                             {"--out", path("t/rank_5.json"), "--trace-per-rank", path("t/")},
                                             {"--record", path("p/a.svg"), "--svg", path("p/")},
                                             {"--record", path("t"), "--trace-per-rank", path("t")}}) {
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

TEST_CASE("lesson 09 on files: an empty value is refused, and not taken for 0 or for none") {
  for (const char* option : {"--lr", "--momentum", "--weight-decay", "--rms", "--ns-steps", "--steps", "--params",
                             "--grads", "--out", "--tp-dim", "--model", "--ownership", "--alignment"}) {
    CAPTURE(option);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{kLesson, option, ""}, {kLesson, std::string(option) + "="}}) {
      const Outcome outcome = run_program(words, 60);
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK(outcome.err.find(option) != std::string::npos);
      CHECK(outcome.err.find("empty") != std::string::npos);
    }
  }
}

TEST_CASE("lesson 09 on files: --params alone, --grads alone and --out alone are refused") {
  const Files files;
  const std::string p = files.folder.file("P"), g = files.folder.file("G0"), o = files.folder.file("O");
  for (const auto& options : std::vector<std::vector<std::string>>{
           {"--params", p}, {"--grads", g}, {"--out", o}, {"--params", p, "--grads", g}, {"--params", p, "--out", o}}) {
    CAPTURE(options);
    std::vector<std::string> command = {kLesson};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome outcome = run_program(command, 60);
    INFO(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
  }
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
                    2);
}
