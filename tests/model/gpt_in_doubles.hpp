#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/model/gpt_config.hpp"
#include "src/model/tokens.hpp"

namespace muonwalk::test {

/// A GPT's loss in plain loops over double-precision numbers, token by token and element by element: written from the
/// papers and from Hugging Face's Llama and Mixtral, with nothing of src/model but the sizes. It has no backward pass;
/// its differences are what gradients are compared with.
class GptInDoubles {
 public:
  /// Tensors by the names of Hugging Face, row by row.
  using Tensors = std::map<std::string, std::vector<double>>;

  GptInDoubles(GptConfig config, MicroBatch batch);

  /// The mean loss of all rows. The first call decides which experts each row goes to; later ones keep to that, so that
  /// a small change of a weight can't change the choice.
  double loss(const Tensors& tensors);

  /// The smallest distance between the score of an expert that was chosen and that of one that was not, in the first
  /// call. Infinite without a choice.
  double closest_choice() const { return closest_choice_; }

 private:
  using Rows = std::vector<std::vector<double>>;
  Rows attend(const Tensors& tensors, const std::string& layer, const Rows& x) const;
  std::vector<double> feed_forward(const Tensors& tensors, const std::string& names, const std::string (&ends)[3],
                                   const std::vector<double>& x) const;
  Rows route(const Tensors& tensors, const std::string& layer, const Rows& x, std::size_t number);
  Rows normed(const std::vector<double>& gain, const Rows& x) const;

  GptConfig config_;
  MicroBatch batch_;
  std::vector<std::vector<std::vector<std::size_t>>> choices_;  // [layer][row]: experts
  double closest_choice_;
};

/// The tensors by name, from those in the order of gpt_parameters.
GptInDoubles::Tensors in_doubles(const GptConfig& config, const std::vector<Matrix>& tensors);

}  // namespace muonwalk::test
