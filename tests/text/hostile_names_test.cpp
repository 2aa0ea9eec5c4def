// Names that were made to mislead (line ends, escape sequences, reversed writing, a tag, a formula, 300 characters), in
// every place that takes a name from outside, and whatever is printed, drawn or written then.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>

#include "src/io/safetensors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

const std::string kHostile = "=evil\n\r\x1b[2J\u202e\"}</script><b>&'";
const std::string kLong(300, 'N');

// What no output may hold: a control character but the line end, a mark of direction, a name in full length, a tag.
void expect_harmless(const std::string& what, const std::string& text) {
  CAPTURE(what);
  CHECK_FALSE(text.empty());
  std::set<int> controls;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) controls.insert(c);
  CHECK_MESSAGE(controls.empty(), "a control character, first of them ", controls.empty() ? 0 : *controls.begin());
  CHECK(text.find("\u202e") == std::string::npos);
  CHECK(text.find(std::string(80, 'N')) == std::string::npos);
}

void expect_one_sentence(const Outcome& outcome, int code) {
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == code);
  CHECK(lines_of(outcome.err).size() == 1);
  expect_harmless("the sentence", outcome.err);
}

SafetensorsFile tensors(const std::vector<std::string>& names) {
  SafetensorsFile file;
  for (const std::string& name : names) {
    StoredTensor tensor;
    tensor.name = name;
    tensor.dtype = "F32";
    tensor.type = StoredType::f32;
    tensor.shape = {4, 4};
    tensor.bytes.resize(64);
    tensor.store(Matrix(4, 4, Flat(16, 0.5f)));
    file.tensors.push_back(tensor);
  }
  return file;
}

std::string quoted_json(const std::string& text) { return nlohmann::json(text).dump(); }

Outcome lesson_09(std::vector<std::string> words) {
  words.insert(words.begin(), LESSON_09);
  return run_program(words, 60);
}

Outcome trace_program(std::vector<std::string> words) {
  words.insert(words.begin(), MUONWALK_TRACE_PROGRAM);
  return run_program(words, 60);
}

}  // namespace

TEST_CASE("hostile names: tensors of a file, on the screen and in all that a run writes") {
  const TemporaryFolder folder;
  const std::string params = folder.file("p"), grads = folder.file("g"), out = folder.file("o" + kHostile.substr(0, 5));
  SafetensorsFile weights = tensors({kHostile, kLong});
  StoredTensor scalar;
  scalar.name = "left" + kHostile + kLong;
  scalar.dtype = "I64";
  scalar.bytes.resize(8);
  weights.tensors.push_back(scalar);
  write_safetensors(params, weights);
  write_safetensors(grads, tensors({kHostile, kLong}));
  const std::vector<std::string> run = {"--params", params, "--grads", grads, "--out", out, "--dp", "2", "--tp", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    return lesson_09(more);
  };
  const Outcome ran = with({"--verbose", "2", "--record", folder.file("r"), "--trace", folder.file("t")});
  CAPTURE(ran.err);
  CHECK(ran.exit_code == 0);
  expect_harmless("the screen", ran.out);
  CHECK(ran.out.find(" characters)") != std::string::npos);
  for (const char* file : {"r", "t"}) expect_harmless(file, read_text(folder.file(file)));
  expect_harmless("the plan", with({"--plan"}).out);
  const Outcome wrong = with({"--bug", "stale_weights", "--verbose", "2"});
  CHECK(wrong.exit_code == 1);
  expect_harmless("the difference", wrong.out);
}

TEST_CASE("hostile names: what is refused of them is refused in one sentence") {
  const TemporaryFolder folder;
  const std::string odd = folder.file(kHostile.substr(0, 6) + "\u202e" + std::string(90, 'N'));
  const std::string params = folder.file("p");
  write_safetensors(params, tensors({kHostile}));
  write_safetensors(odd, tensors({kLong}));
  const auto files = [&](const std::string& weights, const std::string& grads) {
    return std::vector<std::string>{"--params", weights, "--grads", grads, "--out", folder.file("out")};
  };
  const auto plus = [](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_one_sentence(lesson_09(files(params, odd)), 2);
  expect_one_sentence(lesson_09(files(odd, params)), 2);
  expect_one_sentence(lesson_09(files(params, odd + "x")), 2);
  for (const char* option :
       {"--dp", "--lr", "--seed", "--precision", "--products", "--verbose", "--bug", "--timeout", "--world",
        "--transport", "--fault", "--trace-events", "--model", "--ownership", "--plan", "--steps"})
    for (const std::string& value : {kHostile, kLong + kLong}) {
      CAPTURE(option);
      expect_one_sentence(lesson_09({std::string(option) + "=" + value}), 2);
    }
  for (const char* option : {"--record", "--trace"}) {
    CAPTURE(option);
    expect_one_sentence(lesson_09({"--small", "--steps", "1", option, params + "/" + kHostile + kLong + "/"}), 2);
  }
  expect_one_sentence(lesson_09({kHostile}), 2);
  expect_one_sentence(lesson_09({"--" + kHostile + kLong}), 2);
  expect_one_sentence(run_program({LESSON_09, "--small", "--products", "chain"}, 60,
                                  [] { setenv("MUONWALK_CHAIN", (kHostile + kLong).c_str(), 1); }),
                      2);
}

TEST_CASE("hostile names: what a trace says of itself, as text, JSON and page") {
  const TemporaryFolder folder;
  for (const std::string& name : {kHostile, kLong}) {
    const std::string q = quoted_json(name);
    const std::string lesson_like =
        R"({"muonwalk": {"version": 1, "name": )" + q + R"(, "ok": true, "parameters": [{"name": )" + q +
        R"(, "rows": 2, "cols": 2}]}, "traceEvents": [)" +
        R"({"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":)" + quoted_json("rank 0 (" + name + ")") +
        R"(}},{"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":)" + q + "}}," +
        R"({"ph":"X","pid":1,"tid":0,"cat":"computation","name":)" + q + R"(,"ts":0,"dur":9},)" +
        R"({"ph":"X","pid":1,"tid":0,"cat":)" + q + R"(,"name":"x","ts":1,"dur":1}]})";
    const std::string pytorch_like =
        R"({"distributedInfo": {"backend": )" + q + R"(, "rank": 0, "world_size": 2}, "traceEvents": [)" +
        R"({"ph":"X","pid":0,"tid":7,"cat":"kernel","name":)" + q + R"(,"ts":0,"dur":9,"args":{"stream":7}},)" +
        R"({"ph":"X","pid":0,"tid":9,"cat":"kernel","name":"ncclDevKernel_AllGather","ts":3,"dur":2,"args":{)" +
        R"("stream":9,"Collective name":"all_gather","In msg nelems":4,"Out msg nelems":8,"Group size":2,"dtype":)" +
        q + R"(,"Process Group Name":)" + q + R"(,"Process Group Ranks":)" + q + "}}," +
        R"({"ph":"X","pid":0,"tid":1,"cat":)" + q + R"(,"name":"x","ts":1,"dur":1}]})";
    for (const std::string& trace : {lesson_like, pytorch_like}) {
      const std::string path = folder.file("=\u202e" + kHostile.substr(5, 2) + ".json");
      write_text(path, trace);
      const Outcome summary = trace_program({"summary", path});
      CAPTURE(summary.err);
      REQUIRE(summary.exit_code == 0);
      expect_harmless("summary", summary.out);
      expect_harmless("JSON", trace_program({"summary", "--json", path}).out.substr(0, 40));
    }
  }
}

TEST_CASE("hostile names: files and words that muonwalk-trace refuses") {
  const TemporaryFolder folder;
  const std::string name = folder.file("=\u202e" + kHostile.substr(5, 6) + std::string(90, 'N'));
  write_text(name, "no trace");
  expect_one_sentence(trace_program({"summary", name}), 2);
  expect_one_sentence(trace_program({"summary", name + "x"}), 2);
  expect_one_sentence(trace_program({kHostile + kLong}), 2);
  expect_one_sentence(trace_program({"summary", "x", "--" + kHostile}), 2);
  mkdir((name + "d").c_str(), 0777);
  expect_one_sentence(trace_program({"summary", name + "d"}), 2);
}
