#pragma once

namespace muonwalk::testing {

/// How many of `all` random cases a test tries: all of them, but under AddressSanitizer one in eight, and at least
/// four. What a case computes is tested without it; with it, the same code is watched.
template <class Number>
constexpr Number cases(Number all) {
#ifdef __SANITIZE_ADDRESS__
  return all < 32 ? (all < 4 ? all : Number{4}) : all / 8;
#else
  return all;
#endif
}

}  // namespace muonwalk::testing
