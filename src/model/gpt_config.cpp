#include "src/model/gpt_config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

bool is_power_of_two(Index number) { return number > 0 && (number & (number - 1)) == 0; }

// Whether each of `tp` ranks can have whole subtrees of sums over the pieces, and whole heads of keys and values or
// one copy. Of any number of pieces, one rank has them all.
bool shared_by(const GptConfig& c, Index tp) {
  return tp >= 1 && c.pieces % tp == 0 && (tp == 1 || is_power_of_two(c.pieces / tp)) &&
         (c.kv_heads % tp == 0 || tp % c.kv_heads == 0);
}

Parameter matrix_parameter(std::string name, Index rows, Index cols, SplitDim dim) {
  return {std::move(name), {rows, cols}, dim};
}

Parameter vector_parameter(std::string name, Index size) { return {std::move(name), {1, size}, SplitDim::none, 0, 1}; }

void append_layer(const GptConfig& c, const ModelPart& part, Index number, int tp, std::vector<Parameter>& all) {
  const std::string layer = fmt::format("model.layers.{}.", number);
  const std::string attention = layer + "self_attn.";
  const SplitDim kv_cut = c.kv_heads % tp == 0 ? SplitDim::rows : SplitDim::none;
  const Index kv_width = c.kv_heads * c.head_width();
  all.push_back(vector_parameter(layer + "input_layernorm.weight", c.width));
  all.push_back(matrix_parameter(attention + "q_proj.weight", c.width, c.width, SplitDim::rows));
  all.push_back(matrix_parameter(attention + "k_proj.weight", kv_width, c.width, kv_cut));
  all.push_back(matrix_parameter(attention + "v_proj.weight", kv_width, c.width, kv_cut));
  all.push_back(matrix_parameter(attention + "o_proj.weight", c.width, c.width, SplitDim::columns));
  all.push_back(vector_parameter(layer + "post_attention_layernorm.weight", c.width));
  const auto append_mlp = [&](const std::string& mlp) {
    all.push_back(matrix_parameter(mlp + "gate_proj.weight", c.hidden, c.width, SplitDim::rows));
    all.push_back(matrix_parameter(mlp + "up_proj.weight", c.hidden, c.width, SplitDim::rows));
    all.push_back(matrix_parameter(mlp + "down_proj.weight", c.width, c.hidden, SplitDim::columns));
  };
  if (c.experts == 0) return append_mlp(layer + "mlp.");
  all.push_back(matrix_parameter(layer + "mlp.gate.weight", c.experts, c.width, SplitDim::none));
  const Index own = c.experts / part.ep;
  for (Index e = part.ep_rank * own; e < (part.ep_rank + 1) * own; ++e)
    append_mlp(fmt::format("{}mlp.experts.{}.", layer, e));
}

// The number of a tensor in the whole model: its random numbers are its own, whoever asks for them.
std::uint64_t tensor_number(const GptConfig& config, const std::string& name) {
  const std::vector<Parameter> all = gpt_parameters(config);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return i;
  throw std::invalid_argument("the model has no tensor \"" + name + "\"");
}

}  // namespace

void require_sensible(const GptConfig& c, int tp) {
  const auto refuse = [](const std::string& sentence) { throw UsageError(sentence); };
  for (const auto& [what, size] : {std::pair{"vocabulary", c.vocabulary},
                                   {"width", c.width},
                                   {"layers", c.layers},
                                   {"heads", c.heads},
                                   {"kv_heads", c.kv_heads},
                                   {"hidden", c.hidden},
                                   {"tokens", c.tokens},
                                   {"pieces", c.pieces}})
    if (size < 1) refuse(fmt::format("a model needs {} of at least 1, not {}", what, size));
  if (c.width % c.heads != 0 || c.head_width() % 2 != 0)
    refuse(fmt::format("{} heads don't cut a width of {} into even parts; a head needs an even number of channels",
                       c.heads, c.width));
  if (c.heads % c.kv_heads != 0)
    refuse(fmt::format("{} query heads can't share {} heads of keys and values; their number has to divide {}", c.heads,
                       c.kv_heads, c.heads));
  for (const auto& [what, size] : {std::pair{"heads", c.heads}, {"hidden", c.hidden}, {"vocabulary", c.vocabulary}})
    if (size % c.pieces != 0)
      refuse(fmt::format("sums of {} pieces don't go with {} of {}; it has to be a multiple of {}", c.pieces, what,
                         size, c.pieces));
  if (c.kv_heads % c.pieces != 0 && c.pieces % c.kv_heads != 0)
    refuse(fmt::format("{} heads of keys and values don't go with sums of {} pieces; one has to divide the other",
                       c.kv_heads, c.pieces));
  if (c.experts != 0 && (c.experts < c.chosen || c.chosen < 1))
    refuse(fmt::format("a router can't choose {} of {} experts; a model has no experts or at least {}", c.chosen,
                       c.experts, std::max<Index>(c.chosen, 1)));
  if (!shared_by(c, tp)) {
    std::string fitting;
    for (Index good = 1; good <= c.pieces; ++good)
      if (shared_by(c, good)) fitting += (fitting.empty() ? "" : ", ") + std::to_string(good);
    refuse(fmt::format("--tp {} can't share the {} pieces of this model's sums in whole subtrees; try --tp {}", tp,
                       c.pieces, fitting));
  }
}

ModelPart whole_model(const GptConfig& config) { return {{0, config.layers}, true, true}; }

std::vector<Parameter> part_parameters(const GptConfig& c, const ModelPart& part, int tp) {
  std::vector<Parameter> all;
  const Parameter embedding = matrix_parameter("model.embed_tokens.weight", c.vocabulary, c.width, SplitDim::rows);
  if (part.first) all.push_back(embedding);
  for (Index layer = part.layers.begin; layer < part.layers.end; ++layer) append_layer(c, part, layer, tp, all);
  if (!part.last) return all;
  all.push_back(vector_parameter("model.norm.weight", c.width));
  if (!c.tied) all.push_back(matrix_parameter("lm_head.weight", c.vocabulary, c.width, SplitDim::rows));
  if (c.tied && !part.first) all.push_back(embedding);
  return all;
}

std::vector<Parameter> gpt_parameters(const GptConfig& config, int tp) {
  return part_parameters(config, whole_model(config), tp);
}

Matrix first_weights(const GptConfig& config, const Parameter& parameter, std::uint64_t seed, int tp, int tp_rank) {
  const Shape shape = tp_shape(parameter, tp);
  Matrix slice(shape.rows, shape.cols);
  if (parameter.dims == 1) {
    for (float& gain : slice.flat()) gain = 1;
    return slice;
  }
  const bool into_residual =
      ends_with(parameter.name, "o_proj.weight") || ends_with(parameter.name, "down_proj.weight");
  const auto deviation =
      static_cast<float>(into_residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)) : 0.02);
  const RandomTensor numbers = {seed, tensor_number(config, parameter.name)};
  const Range cut = tp_range(parameter, tp, tp_rank);
  const bool by_columns = parameter.tp_split_dim == SplitDim::columns;
  for (Index i = 0; i < shape.rows; ++i) {
    const Index row = by_columns ? i : cut.begin + i, col = by_columns ? cut.begin : 0;
    random_values(numbers, static_cast<std::uint64_t>(row * parameter.shape.cols + col), shape.cols,
                  slice.data() + i * shape.cols);
  }
  for (float& value : slice.flat()) value *= deviation;
  return slice;
}

}  // namespace muonwalk
