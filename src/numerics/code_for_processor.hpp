#pragma once

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

/// Whether this processor multiplies tiles of bfloat16 (AMX), and the system lets this process use them, for which it
/// has to be asked (Linux, Documentation/arch/x86/xstate.rst).
inline bool has_amx() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned tiles_of_bf16 = 1u << 22 | 1u << 24;  // AMX-BF16 and AMX-TILE
  constexpr long request_permission = 0x1023, tile_data = 18;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & tiles_of_bf16) == tiles_of_bf16 &&
         syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
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
