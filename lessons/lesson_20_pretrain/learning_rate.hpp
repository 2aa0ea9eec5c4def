#pragma once

namespace muonwalk {

/// How a learning rate goes over a run: it rises in equal parts during the warm-up (Goyal et al., "Accurate, Large
/// Minibatch SGD", 2017), and then falls along half a cosine, without restarts (Loshchilov and Hutter, "SGDR", 2017),
/// to a part of its highest value.
struct WarmupCosine {
  int warmup = 0;               ///< steps in which it rises; the last of them has the whole rate. 0: none
  int steps = 1;                ///< Steps of the run.
  float final_fraction = 0.1f;  ///< The share of the highest rate that the last step has.
};

/// Refuses a schedule that no run makes sense with. Throws UsageError, one sentence that names the option: less than
/// one of --steps, a --warmup below 0 or of as many steps as there are or more, so that nothing would be left to fall
/// in, or a --final-rate outside of 0 to 1.
void require_sensible(const WarmupCosine& schedule);

/// What learning rates are multiplied by in step `step`, counted from 1 (Optimizer::scale_learning_rates):
/// step / warmup up to step `warmup`, then f + (1 − f) · (1 + cos(π x)) / 2, where x goes in equal parts up to 1 in the
/// last step, and f is the final fraction. In double, with a cosine of plain sums and products, and rounded to float32
/// once, so it has the same bits on every processor. Throws std::out_of_range for a step that the run does not have,
/// and as require_sensible does.
float learning_rate_factor(const WarmupCosine& schedule, int step);

}  // namespace muonwalk
