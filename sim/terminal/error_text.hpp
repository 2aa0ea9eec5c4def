#pragma once

#include <exception>
#include <string>

namespace muonwalk::sim {

/// What an exception says, as a sentence without a beginning. Those of the standard library say little by themselves
/// ("std::bad_alloc"); `remedy` is what would work where the memory does not suffice.
std::string error_text(const std::exception& error,
                       const char* remedy = "try smaller matrices, fewer ranks or fewer threads");

/// What to say of something that was thrown though it is not an exception.
extern const char* const kUnknownError;

}  // namespace muonwalk::sim
