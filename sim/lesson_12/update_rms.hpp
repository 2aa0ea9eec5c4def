#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// Root mean squares of what one step takes from a matrix, for a learning rate of 1 and without decay.
struct UpdateRms {
  Shape shape;            ///< the matrix
  double adamw = 0;       ///< AdamW's update
  double orthogonal = 0;  ///< Muon's, not scaled: the orthogonal matrix itself

  /// Muon's with one of the scales; Scale::matched_rms with MuonSettings::rms.
  double scaled(Scale scale) const;
};

/// The update of step number `steps`, after as many steps on random gradients without a mean (noise).
UpdateRms update_rms(Shape shape, int steps, std::uint64_t seed);

/// For the shapes of the lesson: wide, tall and square, small and large; after 50 steps.
std::vector<UpdateRms> update_rms_of_shapes(std::uint64_t seed);

/// √((1 − β₁) / (1 + β₁)): what AdamW's update comes to on gradients without a mean, however large they are. Its first
/// moment is a mean of gradients with weights (1 − β₁) β₁ᵏ, whose squares add up to that, and its second moment divides
/// by the root mean square of one gradient.
double adamw_rms_on_noise(double beta1);

/// A line for each shape, a column for each scale.
std::string update_rms_table(const std::vector<UpdateRms>& all);

/// The same as a picture (SVG): a row for each shape, a dot for each scale on a logarithmic axis, a line for AdamW.
std::string update_rms_picture(const std::vector<UpdateRms>& all);

/// The scales in the order of their columns.
constexpr Scale kScales[] = {Scale::none, Scale::matched_rms, Scale::largest, Scale::tall, Scale::ratio};

}  // namespace muonwalk::sim
