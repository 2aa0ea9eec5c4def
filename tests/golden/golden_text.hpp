#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace muonwalk::testing {

/// Checks that a text is, byte for byte, what the file `name` in tests/golden holds. With BLESS=1 in the environment
/// the file is written instead; review the difference before committing it. The first line that differs is said.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(MUONWALK_GOLDEN) + "/" + name;
  const char* bless = std::getenv("BLESS");
  if (bless != nullptr && std::string(bless) == "1") {
    std::ofstream(path, std::ios::binary) << text;
    MESSAGE("BLESSED: " << path << " was written anew; review the difference before committing it");
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string kept((std::istreambuf_iterator<char>(file)), {});
  if (text == kept) return;
  std::size_t at = 0;
  while (at < text.size() && at < kept.size() && text[at] == kept[at]) ++at;
  const auto line_at = [at](const std::string& of) {
    const std::size_t begin = at == 0 ? 0 : of.rfind('\n', at - 1) + 1;
    return of.substr(begin, of.find('\n', at) - begin);
  };
  FAIL_CHECK(path << " has\n  " << line_at(kept) << "\nand now it is\n  " << line_at(text)
                  << "\nIf that is right, run this test with BLESS=1 in the environment and review the difference.");
}

/// Numbers that are the same on every machine, with every standard library.
class Draws {
 public:
  explicit Draws(unsigned seed) : state_(seed * 2654435761u + 1) {}
  /// From `from` to `to`, both included.
  int operator()(int from, int to) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return from + static_cast<int>((state_ >> 33) % static_cast<unsigned long long>(to - from + 1));
  }

 private:
  unsigned long long state_;
};

}  // namespace muonwalk::testing
