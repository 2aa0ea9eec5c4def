#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// A text as training sees it: its bytes are the tokens, numbers from 0 to 255, so it needs no tokenizer. The beginning
/// is what is trained on; the end, which is cut off before anything else, is held out. No window of the one reaches
/// into the other.
class Corpus {
 public:
  /// What a model reads at a time, and how much of the text is held out.
  struct Options {
    Index sequence = 64;    ///< tokens that a model reads; a window has one more, which the last of them has to predict
    double held_out = 0.1;  ///< the part of the text that is held out, from 0 to below 1
  };

  /// The number of different tokens.
  static constexpr int kTokens = 256;

  /// `name` is for sentences. Throws UsageError where the part to train on, or the one held out if there is to be one,
  /// is too short for a window, or where the options make no sense.
  Corpus(std::string name, std::vector<std::uint8_t> text, const Options& options);
  /// The same of a file, which `option` has asked for. Throws UsageError, one sentence that names this option, where
  /// there is none, or it is a folder or can't be read.
  static Corpus of_file(const std::string& path, const Options& options, const char* option = "--text");

  /// A window of the training text, sequence + 1 tokens: number `number` of the batch of step `step`, of the run with
  /// this seed. It depends on these three and the text alone, so ranks that share out a batch in any way see the same
  /// windows. Where it begins is a random number by counter (Philox), every place being as likely as every other to
  /// within one in 2³².
  std::vector<int> window(std::uint64_t seed, int step, int number) const;

  /// The windows of the held-out text: one begins at the token with which the one before ends, so that every token but
  /// the first has to be predicted, and is so once; only the last window is moved back to end with the text.
  /// @{
  int held_out_windows() const;
  std::vector<int> held_out_window(int number) const;
  /// @}

  /// The bytes of both parts.
  /// @{
  Index training_bytes() const { return training_; }
  Index held_out_bytes() const { return static_cast<Index>(text_.size()) - training_; }
  /// @}
  /// As it was given.
  const std::string& name() const { return name_; }
  /// Says which text this is: XXH3 of all its bytes in 16 hexadecimal digits. Whoever trains on needs the same text,
  /// cut in the same place.
  const std::string& digest() const { return digest_; }

 private:
  std::vector<int> tokens_from(Index begin) const;

  std::string name_;
  std::vector<std::uint8_t> text_;
  Index sequence_;
  Index training_ = 0;  // bytes that are trained on; the others are held out
  std::string digest_;
};

}  // namespace muonwalk
