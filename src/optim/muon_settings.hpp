#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/layout/parameter.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {

/// The knobs of Muon. The defaults are those of the proof of concept's own test.
struct MuonSettings {
  float lr = 0.1f;                        ///< learning rate
  float momentum = 0.9f;                  ///< μ: m ← μ m + g
  float weight_decay = 0.1f;              ///< decoupled: weights are multiplied by 1 − lr · weight_decay
  float rms = 0.2f;                       ///< root mean square of the update, here that of AdamW: see update_scale
  bool nesterov = true;                   ///< orthogonalize g + μ m, else m
  int ns_steps = 5;                       ///< Newton–Schulz steps
  Precision precision = Precision::fp32;  ///< of Newton–Schulz and of what is gathered for it
  Products products = Products::eigen;    ///< what computes the products of Newton–Schulz
  int threads = 1;                        ///< OpenMP threads in the products; never changes a bit
};

/// The defaults in a precision, with this many threads and these products.
inline MuonSettings muon_settings(Precision precision, int threads, Products products) {
  MuonSettings settings;
  settings.products = products;
  settings.precision = precision;
  settings.threads = threads;
  return settings;
}

/// Those of them that are of Newton–Schulz.
inline NewtonSchulzSettings of_newton_schulz(const MuonSettings& settings) {
  NewtonSchulzSettings chosen;
  chosen.steps = settings.ns_steps;
  chosen.precision = settings.precision;
  chosen.products = settings.products;
  chosen.threads = settings.threads;
  return chosen;
}

/// Refuses settings that no step makes sense with. Throws UsageError, one sentence that names the knob as the option of
/// lesson 09 does, its value and what works: a negative or infinite learning rate, decay or rms, a momentum outside of
/// [0, 1), or Newton–Schulz steps outside of 0 to 100.
void require_sensible(const MuonSettings& settings);

/// What the orthogonal matrix is multiplied by before it is taken from the weights: lr · rms · √max(rows, cols), for
/// the matrix's `full` shape, before TP. A matrix with orthonormal rows or columns has a root mean square of 1 /
/// √max(rows, cols), so the update's becomes lr · rms ("Muon is Scalable for LLM Training", Liu et al. 2025,
/// section 2.2). The distributed step and the serial reference share this one line and no other, so that both round it
/// alike.
inline float update_scale(Shape full, const MuonSettings& settings) {
  return settings.lr * settings.rms * std::sqrt(static_cast<float>(std::max(full.rows, full.cols)));
}

/// A matrix with the name of its parameter. Where it is a piece of a larger matrix, `first_row` and `first_col` say
/// where its element (0, 0) lies in the whole, so that messages can name the element as the reader knows it.
struct NamedMatrix {
  std::string name;     ///< the parameter's
  Matrix matrix;        ///< all of it, or a piece
  Index first_row = 0;  ///< where row 0 lies in the whole
  Index first_col = 0;  ///< where column 0 lies in the whole
};

}  // namespace muonwalk
