// muonwalk-scale as a user runs it: what each command prints and writes, and what it says of a line that can't be.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "src/text/text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/training_software.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

constexpr char kCluster[] = MUONWALK_ROOT "/tools/scale/clusters/h100-efa.json";

constexpr char kColumnsOfRuns[] = "model,nodes,dp,tp,pp,zero,mbs,grad_acc";

using Words = std::vector<std::string>;

Outcome run(const Words& words, const std::function<void()>& prepare = nullptr) {
  Words command = {MUONWALK_SCALE_PROGRAM};
  command.insert(command.end(), words.begin(), words.end());
  return run_program(command, 60, prepare);
}

// What it prints where all is well.
std::string output(const Words& words) {
  const Outcome outcome = run(words);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(!outcome.out.empty());
  return outcome.out;
}

// One sentence that holds `part`, exit code 2, and nothing else.
void expect_refused(const Words& words, const std::string& part) {
  const Outcome outcome = run(words);
  std::string line;
  for (const std::string& word : words) line += word + " ";
  CAPTURE(line);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.rfind("muonwalk-scale: ", 0) == 0);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.size() < 400);
  CHECK(outcome.err.find(part) != std::string::npos);
}

void expect_columns(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    CHECK(text_width(line) <= kColumns);
  }
}

// A table of runs in a folder of its own, and what is predicted of it.
std::vector<std::string> predicted(const std::string& table) {
  TemporaryFolder folder;
  write_text(folder.file("runs.csv"), table);
  return lines_of(output({"predict", folder.file("runs.csv")}));
}

std::string rows(const std::string& row) { return std::string(kColumnsOfRuns) + "\n" + row + "\n"; }

}  // namespace

TEST_CASE("muonwalk-scale list: all names that are known") {
  const std::string text = output({"list"});
  for (const auto& names : {model_shape_names(), cluster_names(), software_names()})
    for (const std::string& name : names) CHECK_MESSAGE(text.find(name) != std::string::npos, name);
}

TEST_CASE("muonwalk-scale --help: on standard output, of the program and of each command") {
  for (const Words& words : std::vector<Words>{{"--help"}, {"plan", "--help"}, {"explain", "-h"}})
    CHECK(output(words).find("--help") != std::string::npos);
  CHECK(output({"plan", "--help"}).find("--gpus") != std::string::npos);
  CHECK(output({"--help"}).find("explain") != std::string::npos);
}

TEST_CASE("muonwalk-scale plan: text and JSON of the same search") {
  Words plan = {"plan", "--model", "8B", "--gpus", "16", "--most", "3"};
  const std::string text = output(plan);
  expect_columns(text);
  plan.emplace_back("--json");
  const nlohmann::json json = nlohmann::json::parse(output(plan));
  REQUIRE(json["layouts"].size() == 3);
  for (const nlohmann::json& each : json["layouts"]) {
    const nlohmann::json& layout = each["layout"];
    const auto number = [&layout](const char* name) { return std::to_string(layout[name].get<int>()); };
    CHECK(layout["dp"].get<int>() * layout["tp"].get<int>() * layout["pp"].get<int>() == 16);
    CHECK(text.find(number("dp") + " × " + number("tp") + " × " + number("pp")) != std::string::npos);
  }
  const std::string adamw = output({"plan", "--gpus", "16", "--optimizer", "adamw", "--software", "megatron"});
  CHECK(adamw.find("AdamW") != std::string::npos);
  CHECK(adamw.find("Newton–Schulz") == std::string::npos);
}

TEST_CASE("muonwalk-scale plan: 100,000 GPUs in 500 MB") {
  const auto little_memory = [] {
#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes for itself
    const rlimit limit{500'000'000, 500'000'000};
    setrlimit(RLIMIT_AS, &limit);
#endif
  };
  for (const char* model : {"80B", "kimi-k2"}) {
    const Outcome outcome = run({"plan", "--model", model, "--gpus", "100000"}, little_memory);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("100,000 GPUs") != std::string::npos);
  }
}

TEST_CASE("muonwalk-scale explain: one layout") {
  const Words explain = {"explain", "--dp", "2", "--tp", "2", "--pp", "4", "--accumulation", "6", "--micro-batch", "2"};
  Words words = explain;
  words.emplace_back("--json");
  const nlohmann::json json = nlohmann::json::parse(output(words));
  CHECK(json["layout"]["nodes"] == 2);
  CHECK(json["layout"]["pp"] == 4);
  CHECK(json["layout"]["accumulation"] == 6);
  CHECK(json["layout"]["micro_batch_sequences"] == 2);
  CHECK(json["layout"]["zero"] == 1);
  const std::string text = output(explain);
  expect_columns(text);
  CHECK(text.find("Newton–Schulz") != std::string::npos);
  words = explain;
  words.insert(words.end(), {"--optimizer", "adamw", "--zero", "0", "--recompute", "full"});
  CHECK(output(words).find("Newton–Schulz") == std::string::npos);
  // As many chunks as there are layers.
  output({"explain", "--pp", "8", "--accumulation", "8", "--chunks", "4"});
  words = explain;
  words.insert(words.end(), {"--strategy", "a"});
  CHECK(output(words) != text);  // another strategy is another step
}

TEST_CASE("muonwalk-scale: the batch is an input, and the first line says which one it is") {
  const auto first_lines = [](const Words& words) {
    const std::string text = output(words);
    std::string flat;
    std::istringstream split(text.substr(0, text.find("\n\n")));
    for (std::string word; split >> word;) flat += word + " ";
    return flat;
  };
  for (const Words& words : std::vector<Words>{{"plan", "--gpus", "8"}, {"explain", "--dp", "8"}}) {
    CHECK(first_lines(words).find("1,048,576 tokens per step (256 sequences of 4,096), the default, which the runs of "
                                  "the Ultra-Scale Playbook have") != std::string::npos);
    Words other = words;
    other.insert(other.end(), {"--batch-tokens", "131072"});
    CHECK(
        first_lines(other).find("131,072 tokens per step (32 sequences of 4,096), where 1,048,576 is what the runs") !=
        std::string::npos);
    other.back() = "131073";
    expect_refused(other, "try 135,168");
  }
  CHECK(first_lines({"plan", "--gpus", "8", "--tokens-per-gpu", "4096"}).find("32,768 tokens per step (8 sequences") !=
        std::string::npos);
  CHECK(output({"validate"}).rfind("Each run at its own batch: 1,048,576 tokens per step", 0) == 0);
  // Of one layout: as many micro-batches as make up the batch.
  const auto micro_batches = [](Words words) {
    words.insert(words.begin(), {"explain", "--json"});
    return nlohmann::json::parse(output(words))["layout"]["accumulation"].get<int>();
  };
  CHECK(micro_batches({"--dp", "8", "--micro-batch", "2"}) == 16);
  CHECK(micro_batches({"--dp", "8", "--batch-tokens", "65536"}) == 2);
  CHECK(micro_batches({"--dp", "512"}) == 1);  // more than the batch has sequences
  expect_refused({"explain", "--dp", "8", "--batch-tokens", "4096"},
                 "which dp 8 × micro-batches of 1 do not divide; try 32768");
  expect_refused({"explain", "--dp", "8", "--batch-tokens", "65536", "--accumulation", "2"}, "--batch-tokens");
  expect_refused({"explain", "--dp", "8", "--accumulation", "0"}, "the accumulation is 0");
  // Muon's overhead halves where the batch doubles, and the formula says so.
  const auto share = [](const char* tokens) {
    return nlohmann::json::parse(
               output({"explain", "--json", "--dp", "8", "--batch-tokens", tokens}))["muon"]["share_of_model_flops"]
        .get<double>();
  };
  CHECK(std::abs(share("65536") / share("131072") - 2) < 1e-9);
  CHECK(first_lines({"plan", "--gpus", "8", "--model", "qwen3-30b", "--batch-tokens", "1048576"}).size() > 0);
}

TEST_CASE("muonwalk-scale validate: what was published, and the targets of this model beside what it reaches") {
  TemporaryFolder folder;
  write_text(folder.file("runs.csv"), std::string(kColumnsOfRuns) +
                                          ",status,tokens_per_s,gpus,memory_gb,flags\n"
                                          "8B,8,8,8,1,1,2,4,measured,300000,64,60,\n"
                                          "8B,8,16,4,1,1,2,2,measured,350000,64,70,gqa\n"
                                          "8B,8,8,4,2,1,1,8,nan,,64,,\n");
  const std::string text = output({"validate", folder.file("runs.csv")});
  expect_columns(text);
  CHECK(text.find("Megatron-LM on A100, a step") != std::string::npos);
}

TEST_CASE("muonwalk-scale validate: without a table it takes the runs that it carries") {
  const std::string text = output({"validate"});
  expect_columns(text);
  for (const char* part : {"Megatron-LM on A100, a step", "target", "rank correlation", "balanced accuracy", "≤ 0.120"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("muonwalk-scale predict: the rows as they stand there, and three columns behind them") {
  const std::string plain = rows("8B,1,1,8,1,0,1,8\n8B,8,64,1,1,1,2,1\n1B,1,8,1,1,1,4,2\n8B,1,1,1,8,0,1,1");
  const std::vector<std::string> table = lines_of(plain), predictions = predicted(plain);
  REQUIRE(predictions.size() == table.size());
  CHECK(predictions[0] == table[0] + ",pred_tokens_per_s_per_gpu,pred_memory_gb,pred_fits");
  for (std::size_t i = 1; i < table.size(); ++i) {
    CAPTURE(predictions[i]);
    CHECK(predictions[i].rfind(table[i] + ",", 0) == 0);
    CHECK(std::regex_match(predictions[i].substr(table[i].size()), std::regex(",[0-9.e+]+,[0-9.]+,[01]")));
  }
  CHECK(predictions[1].back() == '1');
  CHECK(predictions[4].back() == '0');  // fewer micro-batches than a pipeline of eight stages takes
}

TEST_CASE("muonwalk-scale: what can't be seen in names and cells is written as letters in JSON and CSV") {
  const TemporaryFolder folder;
  const std::string hidden = "a\u2028b\u202ec\u009b", cell = hidden + "\x1b[31m";
  nlohmann::json cluster = nlohmann::json::parse(read_text(kCluster));
  cluster["name"] = cell;
  write_text(folder.file("mine.json"), cluster.dump());
  nlohmann::json wanted = nlohmann::json::parse(read_text(MUONWALK_ROOT "/tools/scale/runs/nanogpt-124m.json"));
  wanted["name"] = cell;
  write_text(folder.file("run.json"), wanted.dump());
  const std::string answer = folder.file("answer.json");
  output({"predict", "--run", folder.file("run.json"), "--json", answer});
  std::string csv;
  for (const std::string& row :
       predicted(std::string(kColumnsOfRuns) + ",note" + hidden + "\n8B,1,1,8,1,0,1,8," + cell + "\n"))
    csv += row;
  CHECK(csv.find("a\\u{2028}b\\u{202e}c") != std::string::npos);
  const std::string plan = output({"plan", "--gpus", "16", "--cluster", folder.file("mine.json"), "--json"});
  CHECK(nlohmann::json::parse(plan)["cluster"] == cell);
  for (const std::string& text : {csv, plan, read_text(answer)})
    for (const char* one : {"\u2028", "\u202e", "\u009b", "\x1b"}) CHECK(text.find(one) == std::string::npos);
}

TEST_CASE("muonwalk-scale predict, validate: tables that can't be, with the line that is wrong") {
  TemporaryFolder folder;
  expect_refused({"predict", folder.path()}, "it is a folder");
  expect_refused({"predict", folder.file("none.csv")}, "there is no such file");
  expect_refused({"validate", folder.file("none.csv")}, "there is no such file");
  write_text(folder.file("runs.csv"), rows("8B,1,8,1,1,0,1,x"));
  expect_refused({"validate", folder.file("runs.csv")}, "line 2 has grad_acc = ");
  REQUIRE(mkfifo(folder.file("pipe.csv").c_str(), 0600) == 0);
  expect_refused({"predict", folder.file("pipe.csv")}, "it is not a regular file");
}

TEST_CASE("muonwalk-scale predict: a file that may not be read, and a folder that may not be entered") {
  const bool root = geteuid() == 0;
  const auto nobody = [root] {
    if (root && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
  };
  TemporaryFolder folder;
  write_text(folder.file("runs.csv"), rows("8B,1,8,1,1,0,1,1"));
  for (const auto& [file, inside] : {std::pair{0000, 0755}, {0644, 0000}}) {
    chmod(folder.file("runs.csv").c_str(), static_cast<mode_t>(file));
    chmod(folder.path().c_str(), static_cast<mode_t>(inside));
    const Outcome outcome = run({"predict", folder.file("runs.csv")}, nobody);
    chmod(folder.path().c_str(), 0700);
    if (root && outcome.exit_code != 2 && outcome.err.find("muonwalk-scale: ") == std::string::npos) {
      MESSAGE("SKIPPED: the program can't be started by another user here");
      return;
    }
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err.find("permission denied") != std::string::npos);
  }
}

TEST_CASE("muonwalk-scale: words that are not known, and values that can't be, get one sentence") {
  const std::string commands = "muonwalk-scale takes list, plan, explain, predict, validate";
  expect_refused({}, "a command is missing; " + commands);
  expect_refused({"predikt"}, "predikt is not a command; " + commands);
  expect_refused({"--gpus", "8"}, "--gpus is not a command; " + commands);
  expect_refused({"plan", "--gpus", "8", "--frob"}, "--frob");
  expect_refused({"plan"}, "--gpus is required");
  expect_refused({"predict"}, "RUNS.csv is required");
  expect_refused({"plan", "--gpus", "8", "--model", "9B"}, "the model \"9B\" is not known");
  expect_refused({"plan", "--gpus", "8", "--cluster", "moon"}, "no cluster is called \"moon\"");
  expect_refused({"plan", "--gpus", "8", "--software", "torch"}, "\"torch\" is not known");
  expect_refused({"plan", "--gpus", "8", "--optimizer", "sgd"}, "--optimizer sgd is not known");
  expect_refused({"explain", "--strategy", "z"}, "--strategy z is not known");
  expect_refused({"explain", "--recompute", "some"}, "--recompute some is not known");
  for (const char* option : {"--model", "--cluster", "--software", "--gpus", "--optimizer"})
    expect_refused({"plan", std::string(option) + "="}, std::string(option) + "= has an empty value");
  expect_refused({"plan", "--gpus", "8", "--model", ""}, "is empty; give it a value");
  expect_refused({"plan", "--gpus", "8", "--gpus", "16"}, "--gpus");
  for (const char* number :
       {"0", "-8", "nan", "inf", "1e5", "x", "8.5", "2147483648", "99999999999999999999", "2147483640", "1048584"}) {
    expect_refused({"plan", "--gpus", number}, "--gpus");
    if (std::string(number) != "2147483648")
      expect_refused({"plan", "--gpus", "8", "--batch-tokens", number}, "--batch-tokens");
    if (std::string(number) != "1048584")
      expect_refused({"plan", "--gpus", "8", "--tokens-per-gpu", number}, "--tokens-per-gpu");
  }
  for (const char* number : {"0", "-1", "1001", "x"})
    expect_refused({"plan", "--gpus", "8", "--most", number}, "--most");
  expect_refused({"plan", "--gpus", "12"}, "--gpus 12 is not a whole number of nodes of 8; try 8");
  expect_refused({"plan", "--gpus", "8", "--model", "80B"}, "take more GPUs");
}

TEST_CASE("muonwalk-scale: both ends of what an option takes are taken, and one past them is not") {
  const auto layouts_of = [](const std::string& question) {
    Words words = {"plan", "--model", "gpt2", "--json"};
    std::istringstream split(question);
    for (std::string word; split >> word;) words.push_back(word);
    return nlohmann::json::parse(output(words))["layouts"];
  };
  CHECK(layouts_of("--gpus 1 --most 1000")[0]["layout"]["accumulation"] == 64);
  CHECK(layouts_of("--gpus 8 --most 1 --batch-tokens 17179869184")[0]["layout"]["accumulation"] == 262144);
  CHECK(layouts_of("--gpus 8 --most 1 --batch-tokens 1024")[0]["layout"]["dp"] == 1);
  CHECK(layouts_of("--gpus 1048576 --most 1 --tokens-per-gpu 2048").size() == 1);
  expect_refused({"plan", "--gpus", "1048576", "--model", "gpt2"}, "another --batch-tokens");
  expect_refused({"plan", "--gpus", "1048577"}, "--gpus");
  expect_refused({"plan", "--gpus", "8", "--model", "gpt2", "--batch-tokens", "17179870208"}, "16,777,216");
  for (const char* letter : {"dd", "i", "D", " d"})
    expect_refused({"explain", "--strategy", letter}, "is not known; it is a letter from a to h");
}

TEST_CASE("muonwalk-scale explain: layouts that can't be name what is wrong, whatever the optimizer") {
  for (const char* optimizer : {"muon", "adamw"}) {
    const auto refused = [optimizer](Words layout, const char* part) {
      layout.insert(layout.begin(), {"explain", "--model", "8B", "--optimizer", optimizer});
      expect_refused(layout, part);
    };
    for (const char* size : {"-8", "1048577"}) {
      refused({"--dp", size}, "dp is ");
      refused({"--tp", size}, "tp is ");
      refused({"--pp", size}, "pp is ");
      refused({"--ep", size}, "ep is ");
      refused({"--chunks", size}, "the number of chunks is ");
      refused({"--micro-batch", size}, "the micro-batch is ");
      refused({"--accumulation", size}, "the accumulation is ");
    }
    for (const char* size : {"nan", "1.5", "x", "99999999999"}) refused({"--dp", size}, "--dp");
    for (const char* size : {"0", "2147483647"}) refused({"--dp", size}, "dp is ");
    refused({"--dp", "65536", "--tp", "65536"}, "makes 4,294,967,296 ranks");
    refused({"--dp", "3", "--tp", "4"}, "makes 12 ranks, and 2 nodes of 8 GPUs have 16");
    refused({"--pp", "40", "--accumulation", "64"}, "pp 40 is more than the 32 layers of 8B");
    refused({"--pp", "8", "--accumulation", "2"}, "at least 7 micro-batches, and there are 2");
    refused({"--tp", "64"}, "64");
    refused({"--tp", "7"}, "7");
    refused({"--dp", "8", "--ep", "4"}, "ep 4 does not divide the 0 experts");
    refused({"--dp", "8", "--ep", "3"}, "ep 3 does not divide dp 8");
    refused({"--pp", "8", "--accumulation", "8", "--chunks", "5"}, "chunks");
    refused({"--zero", "2"}, "ZeRO stage 2");
    refused({"--zero", "-1"}, "ZeRO stage -1");
  }
}

TEST_CASE("muonwalk-scale: a cluster file is used, and one with a field that is missing or can't be is refused") {
  TemporaryFolder folder;
  const std::string path = folder.file("mine.json");
  const nlohmann::json good = nlohmann::json::parse(read_text(kCluster));
  write_text(path, good.dump());
  CHECK(output({"plan", "--gpus", "16", "--cluster", path}) == output({"plan", "--gpus", "16"}));
  nlohmann::json bad = good;
  bad["levels"][0]["bandwidth_gb_per_s"] = -1;
  write_text(path, bad.dump());
  expect_refused({"plan", "--gpus", "16", "--cluster", path}, "bandwidth_gb_per_s");
  write_text(path, "{\"name\": ");
  expect_refused({"explain", "--dp", "8", "--cluster", path}, "it is not JSON");
  expect_refused({"plan", "--gpus", "16", "--cluster", folder.file("none.json")}, "there is no such file");
}

TEST_CASE("muonwalk-scale predict --run: the page, its JSON, and every run that the project carries") {
  TemporaryFolder folder;
  for (const auto& each : std::filesystem::directory_iterator(MUONWALK_ROOT "/tools/scale/runs")) {
    if (each.path().extension() != ".json") continue;
    const std::string answer = folder.file("answer.json");
    const std::string page = output({"predict", "--run", each.path().string(), "--json", answer});
    expect_columns(page);
    const nlohmann::json json = nlohmann::json::parse(read_text(answer));
    CHECK(json["format"] == "muonwalk-answer 1");
    CHECK(page.find("memory with Muon") != std::string::npos);
    for (const auto& sentence : json["assumed"])
      CHECK(page.find(sentence.get<std::string>().substr(0, 40)) != std::string::npos);
  }
  const std::string example = MUONWALK_ROOT "/tools/scale/runs/nanogpt-124m.json";
  // The one that the documentation shows is the same, with more of it written out.
  const std::string page = read_text(MUONWALK_ROOT "/docs/cost-model.md"), fence = "```json\n";
  const std::size_t begin = page.rfind(fence) + fence.size();
  write_text(folder.file("shown.json"), page.substr(begin, page.find("```", begin) - begin));
  const auto until_assumed = [](const std::string& text) { return text.substr(0, text.find("taken, because")); };
  CHECK(until_assumed(output({"predict", "--run", folder.file("shown.json")})) ==
        until_assumed(output({"predict", "--run", example})));
  expect_refused({"predict", "--run", example, "runs.csv"}, "at once");
  expect_refused({"predict", "runs.csv", "--json", folder.file("x")}, "--json is for --run");
  expect_refused({"predict", "--run", folder.file("none.json")}, "there is no such file");
  expect_refused({"predict", "--run", example, "--json", folder.path()}, "can't write");
  write_text(folder.file("run.json"), "{}");
  expect_refused({"predict", "--run", folder.file("run.json")}, "its \"format\" is missing");
  expect_refused({"predict", "--run", folder.file("run.json"), "--json", folder.file("run.json")}, "--run");
  CHECK(read_text(folder.file("run.json")) == "{}");
}

TEST_CASE(
    "muonwalk-scale: what can't be written is refused before anything is said, and so is a layout that can't be") {
  TemporaryFolder folder;
  const std::string run_file = std::string(MUONWALK_ROOT) + "/tools/scale/runs/dion-1b.json";
  for (const std::string& place : {folder.file("none/x"), folder.path()})
    expect_refused({"predict", "--run", run_file, "--json", place}, "can't write");
  CHECK(folder.names().empty());
  expect_refused({"explain", "--dp", "3", "--tp", "4"}, "makes 12 ranks");
}

TEST_CASE("muonwalk-scale: output that can't be written ends with exit code 3, and a sentence") {
  const auto full = [] {
    const int device = open("/dev/full", O_WRONLY);
    dup2(device, STDOUT_FILENO);
  };
  TemporaryFolder folder;
  const std::string run_file = std::string(MUONWALK_ROOT) + "/tools/scale/runs/dion-1b.json";
  for (const Words& words : std::vector<Words>{{"list"},
                                               {"plan", "--gpus", "8"},
                                               {"plan", "--help"},
                                               {"predict", "--run", run_file, "--json", folder.file("answer.json")}}) {
    const Outcome outcome = run(words, full);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.err.rfind("muonwalk-scale: ", 0) == 0);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("every command that a page shows does what it says") {
  const std::string program = "build/bin/muonwalk-scale ";
  TemporaryFolder folder;
  int commands = 0;
  for (const char* page : {"/docs/cost-model.md", "/docs/more-to-run.md"})
    for (const std::string& line : lines_of(read_text(MUONWALK_ROOT + std::string(page)))) {
      if (line.rfind(program, 0) != 0) continue;
      std::istringstream rest(line.substr(program.size(), line.find('#') - program.size()));
      Words words;
      for (std::string word; rest >> word;)
        words.push_back(word.rfind("tools/", 0) == 0   ? std::string(MUONWALK_ROOT) + "/" + word
                        : word.find('.') < word.size() ? folder.file(word)
                                                       : word);
      CAPTURE(line);
      output(words);
      ++commands;
    }
  CHECK(commands >= 10);
}
