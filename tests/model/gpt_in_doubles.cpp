#include "tests/model/gpt_in_doubles.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muonwalk::test {
namespace {

// weight · x, where the weight has as many columns as x has elements.
std::vector<double> times(const std::vector<double>& weight, const std::vector<double>& x) {
  std::vector<double> out(weight.size() / x.size(), 0.0);
  for (std::size_t i = 0; i < out.size(); ++i)
    for (std::size_t k = 0; k < x.size(); ++k) out[i] += weight[i * x.size() + k] * x[k];
  return out;
}

std::vector<double> softmax(std::vector<double> scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
  return scores;
}

// As "rotate_half" of Hugging Face's Llama does it: x · cos + (−second half, first half) · sin, head by head.
void turn_to(std::size_t position, std::size_t head_width, double base, std::vector<double>& x) {
  const std::size_t half = head_width / 2;
  for (std::size_t head = 0; head < x.size(); head += head_width)
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) /
                           std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(head_width));
      const double first = x[head + i], second = x[head + half + i];
      x[head + i] = first * std::cos(angle) - second * std::sin(angle);
      x[head + half + i] = second * std::cos(angle) + first * std::sin(angle);
    }
}

}  // namespace

GptInDoubles::GptInDoubles(GptConfig config, MicroBatch batch) : config_(config), batch_(std::move(batch)) {}

GptInDoubles::Rows GptInDoubles::normed(const std::vector<double>& gain, const Rows& x) const {
  Rows out = x;
  for (std::vector<double>& row : out) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(row.size()) + static_cast<double>(config_.epsilon));
    for (std::size_t i = 0; i < row.size(); ++i) row[i] *= gain[i] / root;
  }
  return out;
}

GptInDoubles::Rows GptInDoubles::attend(const Tensors& tensors, const std::string& layer, const Rows& x) const {
  const std::string names = layer + "self_attn.";
  const auto tokens = static_cast<std::size_t>(config_.tokens), heads = static_cast<std::size_t>(config_.heads);
  const std::size_t head_width = static_cast<std::size_t>(config_.width) / heads;
  const std::size_t sharing = heads / static_cast<std::size_t>(config_.kv_heads);
  Rows queries, keys, values, out;
  for (std::size_t t = 0; t < x.size(); ++t) {
    queries.push_back(times(tensors.at(names + "q_proj.weight"), x[t]));
    keys.push_back(times(tensors.at(names + "k_proj.weight"), x[t]));
    values.push_back(times(tensors.at(names + "v_proj.weight"), x[t]));
    for (std::vector<double>* turned : {&queries.back(), &keys.back()})
      turn_to(t % tokens, head_width, static_cast<double>(config_.rotary_base), *turned);
    std::vector<double> mixed(x[t].size(), 0.0);
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t at = head * head_width, kv_at = head / sharing * head_width, begin = t - t % tokens;
      std::vector<double> scores;
      for (std::size_t j = begin; j <= t; ++j) {
        double dot = 0;
        for (std::size_t i = 0; i < head_width; ++i) dot += queries[t][at + i] * keys[j][kv_at + i];
        scores.push_back(dot / std::sqrt(static_cast<double>(head_width)));
      }
      const std::vector<double> probabilities = softmax(std::move(scores));
      for (std::size_t j = begin; j <= t; ++j)
        for (std::size_t i = 0; i < head_width; ++i) mixed[at + i] += probabilities[j - begin] * values[j][kv_at + i];
    }
    out.push_back(times(tensors.at(names + "o_proj.weight"), mixed));
  }
  return out;
}

std::vector<double> GptInDoubles::feed_forward(const Tensors& tensors, const std::string& names,
                                               const std::vector<double>& x) const {
  std::vector<double> gate = times(tensors.at(names + "gate_proj.weight"), x);
  const std::vector<double> up = times(tensors.at(names + "up_proj.weight"), x);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return times(tensors.at(names + "down_proj.weight"), gate);
}

// Each row asks its best experts, and some of them are full already.
GptInDoubles::Rows GptInDoubles::mix(const Tensors& tensors, const std::string& names, const Rows& x) const {
  const auto experts = static_cast<std::size_t>(config_.experts), chosen = static_cast<std::size_t>(config_.chosen);
  const double share = static_cast<double>(x.size() * chosen) / static_cast<double>(experts);
  const auto room = static_cast<std::size_t>(std::ceil(1.25 * share));
  std::vector<std::size_t> guests(experts, 0);
  Rows out;
  for (const std::vector<double>& row : x) {
    const std::vector<double> scores = times(tensors.at(names + "gate.weight"), row);
    std::vector<std::size_t> best;
    while (best.size() < chosen) {
      std::size_t next = experts;
      for (std::size_t e = 0; e < experts; ++e)
        if (std::count(best.begin(), best.end(), e) == 0 && (next == experts || scores[e] > scores[next])) next = e;
      best.push_back(next);
    }
    std::vector<double> of_best, sum(row.size(), 0.0);
    for (const std::size_t e : best) of_best.push_back(scores[e]);
    const std::vector<double> shares = softmax(of_best);
    for (std::size_t i = 0; i < chosen; ++i) {
      if (guests[best[i]]++ >= room) continue;
      const auto said = feed_forward(tensors, names + "experts." + std::to_string(best[i]) + ".", row);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += shares[i] * said[c];
    }
    out.push_back(sum);
  }
  return out;
}

double GptInDoubles::loss(const Tensors& tensors) const {
  const auto width = static_cast<std::size_t>(config_.width);
  const auto add = [](Rows& sum, const Rows& more) {
    for (std::size_t t = 0; t < sum.size(); ++t)
      for (std::size_t c = 0; c < sum[t].size(); ++c) sum[t][c] += more[t][c];
  };
  const std::vector<double>& embedding = tensors.at("model.embed_tokens.weight");
  Rows x;
  for (const std::int32_t token : batch_.inputs) {
    const auto begin = embedding.begin() + token * static_cast<std::ptrdiff_t>(width);
    x.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  for (std::size_t number = 0; number < static_cast<std::size_t>(config_.layers); ++number) {
    const std::string layer = "model.layers." + std::to_string(number) + ".";
    add(x, attend(tensors, layer, normed(tensors.at(layer + "input_layernorm.weight"), x)));
    const Rows middle = normed(tensors.at(layer + "post_attention_layernorm.weight"), x);
    Rows said;
    if (config_.experts > 0) said = mix(tensors, layer + "mlp.", middle);
    if (config_.experts == 0)
      for (const std::vector<double>& row : middle) said.push_back(feed_forward(tensors, layer + "mlp.", row));
    add(x, said);
  }
  x = normed(tensors.at("model.norm.weight"), x);
  const std::vector<double>& output = config_.tied ? embedding : tensors.at("lm_head.weight");
  double sum = 0;
  for (std::size_t t = 0; t < x.size(); ++t)
    sum -= std::log(softmax(times(output, x[t]))[static_cast<std::size_t>(batch_.targets[t])]);
  return sum / static_cast<double>(x.size());
}

GptInDoubles::Tensors in_doubles(const GptConfig& config, const std::vector<Matrix>& tensors) {
  const std::vector<Parameter> parameters = gpt_parameters(config);
  GptInDoubles::Tensors all;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    all[parameters[p].name].assign(tensors[p].flat().begin(), tensors[p].flat().end());
  return all;
}

}  // namespace muonwalk::test
