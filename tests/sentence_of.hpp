#pragma once

#include <stdexcept>
#include <string>

/// The sentence of the std::invalid_argument that `action` throws; empty when it throws nothing.
template <class Action>
std::string sentence_of(const Action& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}
