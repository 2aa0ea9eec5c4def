#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/model/gpt_config.hpp"
#include "src/model/tokens.hpp"

namespace muonwalk::test {

/// A GPT's loss in plain loops over double-precision numbers, token by token and element by element: written from the
/// papers and from Hugging Face's Llama, with nothing of src/model but the sizes. It has no backward pass;
/// its differences are what gradients are compared with.
class GptInDoubles {
 public:
  /// Tensors by the names of Hugging Face, row by row.
  using Tensors = std::map<std::string, std::vector<double>>;

  GptInDoubles(GptConfig config, MicroBatch batch);

  /// The mean loss of all rows.
  double loss(const Tensors& tensors) const;

 private:
  using Rows = std::vector<std::vector<double>>;
  Rows attend(const Tensors& tensors, const std::string& layer, const Rows& x) const;
  std::vector<double> feed_forward(const Tensors& tensors, const std::string& names,
                                   const std::vector<double>& x) const;
  Rows mix(const Tensors& tensors, const std::string& names, const Rows& x) const;
  Rows normed(const std::vector<double>& gain, const Rows& x) const;

  GptConfig config_;
  MicroBatch batch_;
};

/// The tensors by name, from those in the order of gpt_parameters.
GptInDoubles::Tensors in_doubles(const GptConfig& config, const std::vector<Matrix>& tensors);

}  // namespace muonwalk::test
