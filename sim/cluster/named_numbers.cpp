#include "sim/cluster/named_numbers.hpp"

#include <fmt/format.h>

#include "src/text/text.hpp"

namespace muonwalk::sim {

std::string first_difference(const NamedNumbers& read, const NamedNumbers& expected) {
  for (const auto& [name, number] : expected) {
    const auto found = read.find(name);
    if (found == read.end()) return fmt::format("{}: not read, should be {}", name, number_text(number));
    if (found->second != number)
      return fmt::format("{}: read {}, should be {}", name, number_text(found->second), number_text(number));
  }
  for (const auto& [name, number] : read)
    if (expected.count(name) == 0) return fmt::format("{}: read {}, should not be there", name, number_text(number));
  return "";
}

}  // namespace muonwalk::sim
