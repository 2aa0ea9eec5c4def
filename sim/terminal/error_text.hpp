#pragma once

#include <exception>
#include <functional>
#include <string>

namespace muonwalk::sim {

/// What would work where the memory does not suffice for ranks.
constexpr char kSmaller[] = "try smaller matrices, fewer ranks or fewer threads";

/// What an exception says, as a sentence without a beginning. Those of the standard library say little by themselves
/// ("std::bad_alloc"); `remedy` is what would work where the memory does not suffice.
std::string error_text(const std::exception& error, const char* remedy = kSmaller);

/// What to say of something that was thrown though it is not an exception.
extern const char* const kUnknownError;

/// Runs `program` and returns its exit code; 2 after a UsageError and 3 after anything else that it throws, with a
/// sentence on standard error that begins with `name`.
int exit_code_of(const std::string& name, const std::function<int()>& program, const char* remedy = kSmaller);

}  // namespace muonwalk::sim
