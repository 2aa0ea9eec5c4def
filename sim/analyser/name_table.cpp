#include "sim/analyser/name_table.hpp"

#include <iterator>
#include <utility>

namespace muonwalk::sim {

std::int32_t NameTable::number(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  const std::int32_t next = static_cast<std::int32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), next);
  bytes_ += static_cast<std::int64_t>(text.size()) + 96;  // and what the tables take
  return next;
}

std::vector<std::string> NameTable::take() {
  numbers_.clear();
  std::vector<std::string> all(std::make_move_iterator(texts_.begin()), std::make_move_iterator(texts_.end()));
  texts_.clear();
  return all;
}

}  // namespace muonwalk::sim
