// How fast a training step of the model is: forward, backward and AdamW of a GPT of some ten million parameters on one
// thread, against the same model in PyTorch (Debian: python3-torch, with libopenblas0-pthread). The two take turns, in
// processor time, and of every measurement the median counts, because a machine is never quiet for long.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "src/model/gpt.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/adamw.hpp"

using namespace muonwalk;

namespace {

constexpr Index kSequences = 4;

GptConfig ten_million(Index kv_heads) {
  GptConfig config;
  config.width = 320;
  config.layers = 8;
  config.heads = 8;
  config.kv_heads = kv_heads;
  config.hidden = 864;
  config.tokens = 256;
  return config;
}

// Seconds of processor time: forward, backward, AdamW.
using Times = std::array<double, 3>;

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Ours {
 public:
  explicit Ours(const GptConfig& config)
      : config_(config), part_(whole_model(config)), angles_(muonwalk::rotary_angles(config)) {
    std::vector<Matrix> weights;
    for (const Parameter& p : gpt_parameters(config)) {
      weights.push_back(first_weights(config, p, 1));
      elements_ += p.shape.size();
      moments_.push_back({Matrix(p.shape.rows, p.shape.cols), Matrix(p.shape.rows, p.shape.cols)});
    }
    tensors_ = part_tensors(config, part_, 1, std::move(weights));
    for (Index t = 0; t < kSequences * config.tokens; ++t) {
      const auto token = [&](std::uint64_t which) {
        const float from_0_to_1 = random_value({2, which}, static_cast<std::uint64_t>(t)) / 7 + 0.5f;
        return static_cast<std::int32_t>(from_0_to_1 * static_cast<float>(config.vocabulary));
      };
      batch_.inputs.push_back(token(0));
      batch_.targets.push_back(token(1));
    }
  }

  Index elements() const { return elements_; }

  Times step() {
    const Sharers alone;
    const PartWorker worker = {config_, part_, alone, angles_};
    std::array<double, 4> at{processor_seconds()};
    PartSaved saved;
    part_forward(worker, tensors_, batch_, Matrix(), saved);
    at[1] = processor_seconds();
    PartTensors gradients = zeros_like(tensors_);
    part_backward(worker, tensors_, batch_, 1.0f / (kSequences * 256), Matrix(), saved, gradients);
    at[2] = processor_seconds();
    ++steps_;
    std::vector<const Matrix*> found;
    for_each_tensor(gradients, [&](const Matrix& gradient) { found.push_back(&gradient); });
    std::size_t p = 0;
    for_each_tensor(tensors_, [&](Matrix& tensor) {
      adamw(tensor.data(), found[p]->data(), moments_[p][0].data(), moments_[p][1].data(), tensor.size(), steps_, {});
      ++p;
    });
    at[3] = processor_seconds();
    return {at[1] - at[0], at[2] - at[1], at[3] - at[2]};
  }

 private:
  GptConfig config_;
  ModelPart part_;
  RotaryAngles angles_;
  PartTensors tensors_;
  std::vector<std::array<Matrix, 2>> moments_;
  MicroBatch batch_;
  Index elements_ = 0;
  int steps_ = 0;
};

// The same model in another process, which does a step whenever it is told to.
class Torch {
 public:
  explicit Torch(const GptConfig& c) {
    int to_it[2], from_it[2];
    if (pipe(to_it) != 0 || pipe(from_it) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      dup2(to_it[0], 0);
      dup2(from_it[1], 1);
      for (const int end : {to_it[0], to_it[1], from_it[0], from_it[1]}) close(end);
      std::string command = std::string(MUONWALK_ROOT) + "/tests/bench/model_in_torch.py";
      for (const Index size : {c.vocabulary, c.width, c.layers, c.heads, c.kv_heads, c.hidden, c.tokens, kSequences})
        command += " " + std::to_string(size);
      // Debian's PyTorch belongs to the system's Python, which need not be the first on the path.
      const std::string either = "python3 " + command + " || /usr/bin/python3 " + command;
      execl("/bin/sh", "sh", "-c", either.c_str(), nullptr);
      _exit(77);
    }
    close(to_it[0]);
    close(from_it[1]);
    commands_.reset(fdopen(to_it[1], "w"));
    answers_.reset(fdopen(from_it[0], "r"));
    char word[16] = {};
    there_ = std::fscanf(answers_.get(), "%15s", word) == 1;
  }
  ~Torch() {
    commands_.reset();  // the end of its input is the end of it
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  bool there() const { return there_; }

  Times step() {
    Times times{};
    std::fputs("step\n", commands_.get());
    std::fflush(commands_.get());
    if (std::fscanf(answers_.get(), "%lf %lf %lf", &times[0], &times[1], &times[2]) != 3) {
      fmt::print(stderr, "PyTorch gave up\n");
      std::exit(3);
    }
    return times;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  pid_t process_ = -1;
  std::unique_ptr<std::FILE, Close> commands_, answers_;
  bool there_ = false;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The medians of forward, backward, AdamW and all of them.
std::array<double, 4> medians(const std::vector<Times>& all) {
  std::array<std::vector<double>, 4> columns;
  for (const Times& times : all) {
    for (std::size_t i = 0; i < 3; ++i) columns[i].push_back(times[i]);
    columns[3].push_back(times[0] + times[1] + times[2]);
  }
  return {median(columns[0]), median(columns[1]), median(columns[2]), median(columns[3])};
}

void compare(Index kv_heads, int rounds) {
  const GptConfig config = ten_million(kv_heads);
  Ours ours(config);
  Torch torch(config);
  std::vector<Times> our_times, torch_times;
  for (int round = -1; round < rounds; ++round) {
    const Times our_time = ours.step(), torch_time = torch.there() ? torch.step() : Times{};
    if (round < 0) continue;  // once unmeasured, so that nobody pays for cold caches and new pages
    our_times.push_back(our_time);
    torch_times.push_back(torch_time);
  }
  const auto print = [](const char* who, const std::array<double, 4>& times) {
    fmt::print("  {:8} {:7.1f} ms forward {:7.1f} ms backward {:6.1f} ms AdamW {:7.1f} ms together\n", who,
               1e3 * times[0], 1e3 * times[1], 1e3 * times[2], 1e3 * times[3]);
  };
  fmt::print("{} heads of queries, {} of keys and values: {:.2f} million parameters, {} tokens\n", config.heads,
             kv_heads, 1e-6 * static_cast<double>(ours.elements()), kSequences * config.tokens);
  print("ours", medians(our_times));
  if (!torch.there()) {
    fmt::print("  not compared with PyTorch: there is none (Debian: python3-torch)\n");
    return;
  }
  print("PyTorch", medians(torch_times));
  fmt::print("  PyTorch takes {:.2f} × our time (target 1.00)\n", medians(torch_times)[3] / medians(our_times)[3]);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line as soon as it is measured
  fmt::print("A training step on one thread, in turns with PyTorch; medians of processor time\n");
  for (const Index kv_heads : {8, 4}) compare(kv_heads, 7);
}
