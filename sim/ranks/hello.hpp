#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/ranks/options.hpp"

namespace muonwalk::sim {

/// The name of this host.
std::string host_name();

/// What a launched process says of itself before its rank starts: all that has to be the same everywhere for the bits
/// to be the same, and where it is.
struct Hello {
  int rank = -1;           ///< this process's rank
  int world_size = 0;      ///< processes of the launch
  std::string program;     ///< the lesson's name
  std::string arguments;   ///< the command line, without what may differ from rank to rank
  std::string build;       ///< digest of the program and its library
  std::string chain;       ///< the kernel that multiplies in the engine chain
  std::string with_eigen;  ///< eigen_code() and a digest of its small products, in fp32 and bf16
  std::string with_chain;  ///< digest of small products in the engine chain
  std::string host;        ///< this host's name
  std::string boot;        ///< tells which processes share a clock; empty where the system does not say
  long pid = 0;            ///< this process's id

  /// As the bytes of a frame.
  std::string text() const;
  /// Reads what text() has written; nothing where the bytes are not one of this version of the protocol.
  static std::optional<Hello> from(const std::vector<char>& bytes);
};

/// The Hello of this process. `arguments` are those of the command line.
Hello own_hello(const Launch& launch, const std::string& program, const std::vector<std::string>& arguments);

/// Why the process that says `theirs` can't be in a run with rank 0, which says `own`; empty when it can. A sentence
/// that names both ranks and hosts and what would work. `products` is the engine that the run uses.
std::string refusal_of(const Hello& own, const Hello& theirs, Products products);

/// What is odd about it, but no reason to refuse: another build of the program. Empty when nothing is.
std::string oddity_of(const Hello& own, const Hello& theirs);

/// A command line as one text, without the program and without the options that may differ from rank to rank: --rank,
/// --rendezvous, --interface, --secret-file.
std::string common_arguments(const std::vector<std::string>& arguments);

}  // namespace muonwalk::sim
