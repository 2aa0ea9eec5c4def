#include "sim/classroom/comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The place of a float on the number line: consecutive floats have consecutive places.
std::int64_t place_of(float value) {
  const std::uint32_t bits = bits_of(value);
  return (bits >> 31) != 0 ? -static_cast<std::int64_t>(bits & 0x7FFFFFFFu) : static_cast<std::int64_t>(bits);
}

std::vector<std::string> describe(const std::string& rank, const NamedMatrix& held, const NamedMatrix& expected,
                                  Index at) {
  const float here = held.matrix.flat()[static_cast<std::size_t>(at)];
  const float there = expected.matrix.flat()[static_cast<std::size_t>(at)];
  const long long ulp = ulp_distance(here, there);
  return {fmt::format("first difference: {}, {} row {} column {}", rank, visible_name(held.name),
                      expected.first_row + at / held.matrix.cols(), expected.first_col + at % held.matrix.cols()),
          fmt::format("  the rank holds      {}", float_text(here)),
          fmt::format("  the reference has   {}   {}", float_text(there),
                      ulp < 0 ? "one of them is not a number" : fmt::format("{} ULP apart", ulp))};
}

}  // namespace

std::string float_text(float value) { return fmt::format("{:<16.9g} 0x{:08x}", value, bits_of(value)); }

long long ulp_distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return -1;
  return std::llabs(place_of(a) - place_of(b));
}

void compare(const std::string& rank, const std::vector<NamedMatrix>& held, const std::vector<NamedMatrix>& expected,
             Comparison& comparison) {
  const auto found = [&](std::vector<std::string> words) {
    if (comparison.first.empty()) comparison.first = std::move(words);
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Matrix& wanted = expected[i].matrix;
    comparison.elements += wanted.size();
    if (i >= held.size() || held[i].name != expected[i].name) {
      comparison.different += wanted.size();
      const std::string name = visible_name(expected[i].name);
      found({i < held.size() && held.size() >= expected.size()
                 ? fmt::format("first difference: {} holds {} where {} belongs", rank, visible_name(held[i].name), name)
                 : fmt::format("first difference: {} does not hold {}", rank, name)});
      continue;
    }
    const Matrix& here = held[i].matrix;
    if (here.rows() != wanted.rows() || here.cols() != wanted.cols()) {
      comparison.different += wanted.size();
      found({fmt::format("first difference: {}, the shape of {}", rank, visible_name(expected[i].name)),
             fmt::format("  the rank holds      {}", shape_text(here.rows(), here.cols())),
             fmt::format("  the reference has   {}", shape_text(wanted.rows(), wanted.cols()))});
      continue;
    }
    if (wanted.empty() || std::memcmp(here.data(), wanted.data(), static_cast<std::size_t>(wanted.bytes())) == 0)
      continue;
    for (Index at = 0; at < wanted.size(); ++at) {
      if (bits_of(here.data()[at]) == bits_of(wanted.data()[at])) continue;
      ++comparison.different;
      if (comparison.first.empty()) found(describe(rank, held[i], expected[i], at));
    }
  }
  if (held.size() > expected.size()) {
    comparison.different += held[expected.size()].matrix.size();
    found({fmt::format("first difference: {} holds {}, which the reference does not know", rank,
                       visible_name(held[expected.size()].name))});
  }
}

std::string first_difference(const NamedNumbers& read, const NamedNumbers& expected) {
  for (const auto& [name, number] : expected) {
    const auto found = read.find(name);
    if (found == read.end()) return fmt::format("{}: not read, should be {}", visible_name(name), number_text(number));
    if (found->second != number)
      return fmt::format("{}: read {}, should be {}", visible_name(name), number_text(found->second),
                         number_text(number));
  }
  for (const auto& [name, number] : read)
    if (expected.count(name) == 0)
      return fmt::format("{}: read {}, should not be there", visible_name(name), number_text(number));
  return "";
}

}  // namespace muonwalk::sim
