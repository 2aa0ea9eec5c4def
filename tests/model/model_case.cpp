#include "tests/model/model_case.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "tests/optim/random_case.hpp"

namespace muonwalk::test {

std::vector<Matrix> ModelCase::weights() const {
  std::vector<Matrix> all;
  for (const Parameter& p : gpt_parameters(config)) {
    Matrix tensor = random_matrix({seed, all.size()}, p.shape.rows, p.shape.cols);
    const float size = p.dims == 1 ? 0.2f : 1.0f / std::sqrt(static_cast<float>(p.shape.cols));
    for (float& value : tensor.flat()) value = value * size + (p.dims == 1 ? 1.0f : 0.0f);
    all.push_back(std::move(tensor));
  }
  return all;
}

MicroBatch ModelCase::batch() const {
  Choices choose(seed + 7777);
  const auto token = [&] {
    return static_cast<std::int32_t>(choose.between(0, choose.yes(80) ? config.vocabulary / 2 : config.vocabulary - 1));
  };
  MicroBatch batch;
  for (Index t = 0; t < sequences * config.tokens; ++t) {
    batch.inputs.push_back(token());
    batch.targets.push_back(token());
  }
  return batch;
}

float ModelCase::scale() const { return 1.0f / static_cast<float>(sequences * config.tokens); }

std::string ModelCase::text() const {
  std::ostringstream out;
  out << "seed " << seed << ": vocabulary " << config.vocabulary << ", width " << config.width << ", layers "
      << config.layers << ", heads " << config.heads << ", kv_heads " << config.kv_heads << ", hidden " << config.hidden
      << ", tokens " << config.tokens << ", tied " << config.tied << ", experts " << config.experts << ", chosen "
      << config.chosen << ", pieces " << config.pieces << ", sequences " << sequences;
  return out.str();
}

ModelCase random_model(std::uint64_t seed, Index most_pieces) {
  Choices choose(seed);
  ModelCase c;
  c.seed = seed;
  std::vector<Index> powers;
  for (Index power = 1; power <= most_pieces; power *= 2) powers.push_back(power);
  GptConfig& g = c.config;
  g.pieces = choose.one_of(powers);
  g.kv_heads = choose.one_of(powers);
  g.heads = std::max(g.pieces, g.kv_heads) * choose.between(1, 2);
  g.width = g.heads * choose.one_of<Index>({2, 4});
  g.layers = choose.between(1, 3);
  g.hidden = g.pieces * choose.between(1, 4);
  g.vocabulary = g.pieces * choose.between(2, 5);
  g.tokens = choose.one_of<Index>({1, 7, 16, 33, 65, 80});
  g.tied = choose.yes(50);
  if (choose.yes(40)) {
    g.experts = choose.one_of<Index>({1, 3, 4});
    g.chosen = choose.between(1, std::min<Index>(2, g.experts));
  }
  g.epsilon = choose.one_of<float>({1e-5f, 0.1f});
  g.rotary_base = choose.one_of<float>({10000, 100});
  c.sequences = choose.between(1, 3);
  return c;
}

std::vector<Matrix> cut_tensors(const std::vector<Parameter>& parameters, const std::vector<Matrix>& whole, int tp,
                                int tp_rank) {
  std::vector<Matrix> mine;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    mine.push_back(parameters[p].tp_split_dim == SplitDim::none
                       ? whole[p]
                       : tp_slice(whole[p], parameters[p].tp_split_dim, tp, tp_rank));
  return mine;
}

std::vector<Matrix> tensors_of_part(const GptConfig& config, const ModelPart& part, const std::vector<Matrix>& whole) {
  const std::vector<Parameter> all = gpt_parameters(config);
  std::vector<Matrix> some;
  for (const Parameter& wanted : part_parameters(config, part)) {
    const auto same_name = [&](const Parameter& p) { return p.name == wanted.name; };
    some.push_back(whole.at(static_cast<std::size_t>(std::find_if(all.begin(), all.end(), same_name) - all.begin())));
  }
  return some;
}

std::vector<Matrix> listed(PartTensors tensors) {
  std::vector<Matrix> all;
  for_each_tensor(tensors, [&](Matrix& tensor) { all.push_back(std::move(tensor)); });
  return all;
}

}  // namespace muonwalk::test
