#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "src/errors.hpp"

namespace muonwalk::testing {

/// Expects a UsageError of one sentence that has these words in it.
inline void expect_refused(const std::function<void()>& work, std::initializer_list<std::string> words) {
  std::string sentence;
  try {
    work();
  } catch (const UsageError& error) {
    sentence = error.what();
  }
  CAPTURE(sentence);
  CHECK(!sentence.empty());
  CHECK(sentence.find('\n') == std::string::npos);
  CHECK(sentence.find(". ") == std::string::npos);
  CHECK((sentence.empty() || sentence.back() != '.'));
  for (const std::string& word : words) CHECK_MESSAGE(sentence.find(word) != std::string::npos, word);
}

}  // namespace muonwalk::testing
