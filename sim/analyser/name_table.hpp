#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muonwalk::sim {

/// Texts, each kept once: the same text has the same number.
class NameTable {
 public:
  /// The number of a text; one that is new gets the next.
  std::int32_t number(std::string_view text);
  /// The text of a number that was given out.
  const std::string& text(std::int32_t number) const { return texts_[static_cast<std::size_t>(number)]; }
  /// How many different texts there are.
  std::size_t size() const { return texts_.size(); }
  /// About how much memory they take.
  std::int64_t bytes() const { return bytes_; }

  /// The texts in the order of their numbers; the table is empty afterwards.
  std::vector<std::string> take();

 private:
  std::deque<std::string> texts_;  // stays where it is, so that the map can point into it
  std::unordered_map<std::string_view, std::int32_t> numbers_;
  std::int64_t bytes_ = 0;
};

}  // namespace muonwalk::sim
