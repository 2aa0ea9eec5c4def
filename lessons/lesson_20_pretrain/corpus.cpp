#include "lessons/lesson_20_pretrain/corpus.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

[[noreturn]] void refuse_text(const char* option, const std::string& path, const char* why, const char* remedy) {
  throw UsageError(fmt::format("{} {} can't be read: {}; {}", option, as_typed(path), why, remedy));
}

void require_long_enough(const std::string& name, const char* part, Index bytes, Index sequence) {
  if (bytes > sequence) return;
  throw UsageError(
      fmt::format("{} of {} has {} byte{}, but a sequence of {} and the byte behind it take {}; take a longer text, or "
                  "shorter sequences",
                  part, in_quotes(name), bytes, bytes == 1 ? "" : "s", sequence, sequence + 1));
}

// Keeps the counters of windows apart from those of random tensors, whose numbers are small.
constexpr std::uint32_t kWindows = 0x77696e64;

}  // namespace

Corpus::Corpus(std::string name, std::vector<std::uint8_t> text, const Options& options)
    : name_(std::move(name)), text_(std::move(text)), sequence_(options.sequence) {
  if (sequence_ < 1)
    throw UsageError(fmt::format("sequences of {} tokens make no sense; they take at least 1", sequence_));
  if (!(options.held_out >= 0 && options.held_out < 1))
    throw UsageError(fmt::format("{:g} of a text can't be held out; take a part from 0 to below 1, for example 0.1",
                                 options.held_out));
  const Index bytes = static_cast<Index>(text_.size());
  training_ = bytes - static_cast<Index>(options.held_out * static_cast<double>(bytes));
  require_long_enough(name_, options.held_out > 0 ? "the part to train on" : "the text", training_, sequence_);
  if (options.held_out > 0) require_long_enough(name_, "the part held out", held_out_bytes(), sequence_);
  digest_ = fmt::format("{:016x}", XXH3_64bits(text_.data(), text_.size()));
}

Corpus Corpus::of_file(const std::string& path, const Options& options, const char* option) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse_text(option, path, "there is no such file", "check the path");
  if (std::filesystem::is_directory(status)) refuse_text(option, path, "it is a folder", "name a file");
  if (!std::filesystem::is_regular_file(status))
    refuse_text(option, path, "it is not a regular file", "name a file of text");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_text(option, path, "permission denied", "make it readable for you");
  std::vector<std::uint8_t> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) refuse_text(option, path, "it could not be read to its end", "check the disk that it is on");
  return Corpus(path, std::move(text), options);
}

std::vector<int> Corpus::tokens_from(Index begin) const {
  const auto first = text_.begin() + begin;
  return std::vector<int>(first, first + (sequence_ + 1));
}

std::vector<int> Corpus::window(std::uint64_t seed, int step, int number) const {
  if (step < 0 || number < 0)
    throw std::out_of_range(fmt::format("window {} of step {} was asked for; both count from 0 or 1", number, step));
  const auto words = philox4x32_10({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(number), 0, kWindows},
                                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t random = std::uint64_t{words[0]} << 32 | words[1];
  const std::uint64_t places = static_cast<std::uint64_t>(training_ - sequence_);
  return tokens_from(static_cast<Index>(random % places));
}

int Corpus::held_out_windows() const {
  // The first token has nothing before it; each of the others is predicted in one of these.
  return held_out_bytes() == 0 ? 0 : static_cast<int>((held_out_bytes() - 1 + sequence_ - 1) / sequence_);
}

std::vector<int> Corpus::held_out_window(int number) const {
  if (number < 0 || number >= held_out_windows())
    throw std::out_of_range(fmt::format("held-out window {} of {} was asked for", number, held_out_windows()));
  const Index last = static_cast<Index>(text_.size()) - (sequence_ + 1);
  return tokens_from(std::min(training_ + number * sequence_, last));
}

}  // namespace muonwalk
