#pragma once

#include <string>

#include "src/errors.hpp"

/// The sentence of the UsageError that `action` throws; a text that no sentence equals when it throws none.
template <class Action>
std::string usage_error(const Action& action) {
  try {
    action();
  } catch (const muonwalk::UsageError& error) {
    return error.what();
  }
  return "(no UsageError)";
}
