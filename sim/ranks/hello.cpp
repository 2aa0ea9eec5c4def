#include "sim/ranks/hello.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "sim/ranks/reports.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Grows with every change of what agents and the parent tell each other.
constexpr char kProtocol[] = "muonwalk agent 1";

std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::string content(file ? static_cast<std::size_t>(file.tellg()) : 0, '\0');
  file.seekg(0);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  return content;
}

// The program and the library that it has loaded, which may have been replaced since on one host and not on another.
std::string build_of_this_program() {
  std::string all = content_of("/proc/self/exe");
  std::ifstream maps("/proc/self/maps");
  std::string last;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos || line.find("libmuonwalk", path) == std::string::npos) continue;
    if (line.substr(path) != last) all += content_of(line.substr(path).c_str());
    last = line.substr(path);
  }
  return digest_text(all);
}

// Newton–Schulz of a small matrix: enough to tell processors or compilers apart that round differently.
std::string digest_of_products(Products products) {
  constexpr Index rows = 37, cols = 53;
  Matrix x(rows, cols);
  std::uint32_t number = 1;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) {
      number = number * 1664525 + 1013904223;
      x(i, j) = static_cast<float>(number >> 8) / 16777216.0f - 0.5f;
    }
  std::string digests;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    NewtonSchulzSettings settings;
    settings.precision = precision;
    settings.products = products;
    const Matrix result = newton_schulz(x, settings);
    digests += digest_text(
        std::string(reinterpret_cast<const char*>(result.data()), static_cast<std::size_t>(result.bytes())));
  }
  return digests;
}

std::string who(const Hello& hello) { return fmt::format("rank {} on {}", hello.rank, hello.host); }

std::string shown(const std::string& arguments) {
  return arguments.empty() ? "no options" : visible_name(arguments, 200);
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "an unnamed host";
}

std::string Hello::text() const {
  std::string bytes;
  for (const std::string& field : {std::string(kProtocol), std::to_string(rank), std::to_string(world_size), program,
                                   arguments, build, chain, with_eigen, with_chain, host, boot, std::to_string(pid)})
    bytes.append(field).push_back('\0');
  return bytes;
}

std::optional<Hello> Hello::from(const std::vector<char>& bytes) {
  const std::vector<std::string> fields = split_at({bytes.data(), bytes.size()}, '\0');
  if (fields.size() != 13 || fields[0] != kProtocol || !fields[12].empty()) return std::nullopt;
  const auto number = [&](std::size_t field) { return number_from<int>(fields[field]); };
  const std::optional<int> rank = number(1), world_size = number(2), pid = number(11);
  if (!rank || !world_size || !pid) return std::nullopt;
  return Hello{*rank,      *world_size, fields[3],
               fields[4],  fields[5],   fields[6],
               fields[7],  fields[8],   visible_name(fields[9], 64),
               fields[10], *pid};
}

Hello own_hello(const Launch& launch, const std::string& program, const std::vector<std::string>& arguments) {
  return {launch.rank,
          launch.world_size,
          program,
          common_arguments(arguments),
          build_of_this_program(),
          chain_kernel().name,
          std::string(eigen_code().name) + " " + digest_of_products(Products::eigen),
          digest_of_products(Products::chain) + digest_of_products(Products::tiles),
          visible_name(host_name(), 64),
          content_of("/proc/sys/kernel/random/boot_id"),
          getpid()};
}

std::string refusal_of(const Hello& own, const Hello& theirs, Products products) {
  if (theirs.world_size != own.world_size)
    return fmt::format(
        "{} was started as one of {} processes, but {} as one of {}; start all of them with one world size",
        who(theirs), theirs.world_size, who(own), own.world_size);
  if (theirs.rank < 1 || theirs.rank >= own.world_size)
    return fmt::format(
        "a process on {} says that it is rank {}, but besides rank 0 on {} there are the ranks 1 to {}; start each "
        "rank once",
        theirs.host, theirs.rank, own.host, own.world_size - 1);
  if (theirs.program != own.program)
    return fmt::format("{} runs {}, but {} runs {}; start the same program everywhere", who(theirs),
                       visible_name(theirs.program), who(own), own.program);
  if (theirs.arguments != own.arguments)
    return fmt::format("{} was started with {}, but {} with {}; start all ranks with the same options", who(theirs),
                       shown(theirs.arguments), who(own), shown(own.arguments));
  const bool eigen = products == Products::eigen;
  if (eigen ? theirs.with_eigen != own.with_eigen : theirs.with_chain != own.with_chain)
    return fmt::format(
        "{} computes other bits than {} with --products {} (a small product has the digests {} and {}), so their "
        "results could never be equal; {}",
        who(theirs), who(own), products_name(products), eigen ? theirs.with_eigen : theirs.with_chain,
        eigen ? own.with_eigen : own.with_chain,
        eigen ? "build the program in the same way on both, with one MUONWALK_EIGEN, or use --products chain, which "
                "gives the same bits on any processor"
              : "build the program from the same sources on both");
  return "";
}

std::string oddity_of(const Hello& own, const Hello& theirs) {
  if (theirs.build == own.build) return "";
  return fmt::format(
      "{} runs another build of this program ({}) than {} ({}); their small products are equal, so the run goes on",
      who(theirs), theirs.build, who(own), own.build);
}

std::string common_arguments(const std::vector<std::string>& arguments) {
  const std::set<std::string> own = {"--rank", "--rendezvous", "--interface", "--secret-file"};
  std::vector<std::string> common;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string option = arguments[i].substr(0, arguments[i].find('='));
    if (own.count(option) == 0)
      common.push_back(arguments[i]);
    else if (option == arguments[i])
      ++i;  // and its value
  }
  return fmt::format("{}", fmt::join(common, " "));
}

}  // namespace muonwalk::sim
