#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {

/// Whether this processor has what x86-64-v4 means: AVX-512 in its first five parts.
inline bool has_avx512() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

/// Of code that does one thing, compiled for several kinds of processor, the last, or the one that the environment's
/// `variable` names. `what` says what it does, "chains". Throws UsageError that lists the names when it names no other.
template <class Code>
const Code& chosen_code(const std::vector<const Code*>& all, const char* variable, const char* what) {
  const char* const name = std::getenv(variable);
  if (name == nullptr) return *all.back();
  std::string names;
  for (const Code* code : all) {
    if (std::string(code->name) == name) return *code;
    names += std::string(names.empty() ? "" : ", ") + code->name;
  }
  throw UsageError(std::string(variable) + "=" + as_typed(name) + " names no code for " + what +
                   " that this processor can run; it can run " + names);
}

}  // namespace muonwalk
