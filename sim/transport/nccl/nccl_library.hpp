#pragma once

#include <string>

#include "sim/transport/nccl/nccl_api.hpp"

namespace muonwalk::sim {

/// NCCL's calls, by their names. Nothing of NCCL is linked: libnccl.so.2 is opened by the first call, or the library
/// that the environment variable MUONWALK_NCCL_LIBRARY names, which is how tests bring theirs. Throws UsageError where
/// there is none, or one that is older than 2.14, whose calls can't be given up.
const nccl::Calls& nccl_library();

/// NCCL's own words for an error: "unhandled cuda error", and what it last complained of, where it says so. `comm` may
/// be null.
std::string nccl_words(nccl::Result result, nccl::Comm* comm);

}  // namespace muonwalk::sim
