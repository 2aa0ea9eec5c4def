#include "sim/lesson_10/diary.hpp"

#include <fmt/format.h>

#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

void Diary::end(Rank& rank, const std::string& words) {
  last_words = words;
  rank.say("last words: " + words);
}

StepObserver Diary::observer() {
  return [this](Phase phase, const DistMeta* meta) {
    if (phase != phases::orthogonalize) return;
    const Shape shape = meta->tp_split_dim == SplitDim::none ? meta->shape : meta->full_shape;
    if (shape.rows == 1)
      throw ProgramEnds(fmt::format("Newton–Schulz got {} as {} numbers in one dimension", meta->name, shape.cols));
    ++newton_schulz[call_name(meta->name, shape)];
  };
}

std::vector<NamedMatrix> Diary::told() const {
  std::vector<NamedMatrix> all = {{last_words, Matrix()}};
  for (const auto& [call, times] : newton_schulz) all.push_back({call, Matrix(1, 1, Flat{static_cast<float>(times)})});
  for (const LedgerLine& line : sent.lines())
    all.push_back({line_name(line),
                   Matrix(1, 2, Flat{static_cast<float>(line.calls), static_cast<float>(line.traffic.bytes_sent)})});
  return all;
}

std::string line_name(const LedgerLine& line) {
  return fmt::format("{} over {}", collective_name(line.kind), line.group);
}

std::string call_name(const std::string& parameter, Shape shape) {
  return fmt::format("{} as {}", parameter, shape_text(shape.rows, shape.cols));
}

}  // namespace muonwalk::sim
