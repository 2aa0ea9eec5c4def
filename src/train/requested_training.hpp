#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/train/training_files.hpp"

namespace muonwalk {

/// What is to be trained, as the options of lesson 09 say it.
struct TrainingRequest {
  int steps = 10;                    ///< --steps: optimizer steps on random numbers
  bool small = false;                ///< --small: matrices of an eighth of the size
  bool toy = false;                  ///< --toy: matrices that can be read number by number
  std::string model;                 ///< --model: matrices of a large model, to be planned and not run
  bool plan = false;                 ///< --plan: nothing will run
  TrainingFileNames files;           ///< --params, --grads, --out, --frozen: the reader's own
  std::vector<std::string> tp_dims;  ///< --tp-dim: how TP cuts a matrix of theirs
};

/// The reader's files where they were given; else random numbers for the matrices of the model, or of the proof of
/// concept's own test. Throws UsageError for a number of steps outside of 1 to 1000, for options that go without or
/// against each other, and for all that FileTraining and model_parameters refuse.
std::unique_ptr<Training> requested_training(const TrainingRequest& request, int tp, std::uint64_t seed);

}  // namespace muonwalk
