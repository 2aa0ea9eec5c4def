#include "sim/ranks/openmp_environment.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <regex>
#include <string>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

struct Variable {
  const char* name;
  const char* form;   // of a value that OpenMP can read
  const char* takes;  // in words
  const char* example;
};

constexpr const char* kNumber = R"(\s*\+?[0-9]{1,9}\s*)";
constexpr const char* kNumbers = R"(\s*\+?0*[1-9][0-9]{0,8}\s*(,\s*\+?0*[1-9][0-9]{0,8}\s*)*)";
constexpr const char* kSize = R"(\s*\+?[0-9]{1,18}\s*[bkmg]?\s*)";
constexpr const char* kTruth = R"(\s*(true|false)\s*)";

// Those that libgomp reads when the program is loaded.
const Variable kVariables[] = {
    {"OMP_STACKSIZE", kSize, "a size", "8M"},
    {"GOMP_STACKSIZE", kSize, "a size in KiB", "8192"},
    {"OMP_NUM_THREADS", kNumbers, "a number of threads, at least 1, or several with commas between", "4"},
    {"OMP_THREAD_LIMIT", kNumber, "a number of threads", "64"},
    {"OMP_MAX_ACTIVE_LEVELS", kNumber, "a number", "1"},
    {"OMP_DYNAMIC", kTruth, "true or false", "false"},
    {"OMP_NESTED", kTruth, "true or false", "false"},
    {"OMP_CANCELLATION", kTruth, "true or false", "false"},
    {"OMP_WAIT_POLICY", R"(\s*(active|passive)\s*)", "active or passive", "passive"},
    {"GOMP_SPINCOUNT", R"(\s*(infinite|infinity|\+?[0-9]{1,18}\s*[kmgt]?)\s*)", "a number, or infinity", "1000"},
    {"OMP_SCHEDULE", R"(\s*((monotonic|nonmonotonic)\s*:\s*)?(static|dynamic|guided|auto)\s*(,\s*\+?[0-9]{1,9}\s*)?)",
     "static, dynamic, guided or auto", "static"},
    {"OMP_PROC_BIND", R"(\s*(true|false|(primary|master|close|spread)(\s*,\s*(primary|master|close|spread))*)\s*)",
     "true, false, or a list of master, close and spread", "close"},
    {"OMP_PLACES",
     R"(\s*(((threads|cores|sockets|ll_caches|numa_domains)(\s*\(\s*[0-9]+\s*\))?)|[!{0-9][-!{}:,0-9\s]*)\s*)",
     "threads, cores, sockets, or places in braces", "cores"}};

// "100G" in bytes; OpenMP's unit is KiB where none is said.
std::uint64_t bytes_of(const std::string& text) {
  const std::uint64_t number = std::strtoull(text.c_str(), nullptr, 10);
  const std::size_t unit = text.find_first_of("bBkKmMgG");
  const int shift = unit == std::string::npos                ? 10
                    : text[unit] == 'b' || text[unit] == 'B' ? 0
                    : text[unit] == 'k' || text[unit] == 'K' ? 10
                    : text[unit] == 'm' || text[unit] == 'M' ? 20
                                                             : 30;
  return number > (UINT64_MAX >> shift) ? UINT64_MAX : number << shift;
}

bool system_gives(std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (bytes > SIZE_MAX / 2) return false;
  void* memory =
      mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, static_cast<std::size_t>(bytes));
  return true;
}

}  // namespace

void require_openmp_environment(int threads) {
  for (const Variable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    if (value == nullptr) continue;
    const std::string text = std::string(value).substr(0, 4096);
    if (!std::regex_match(text, std::regex(variable.form, std::regex::icase)))
      throw UsageError(fmt::format("{}={} is nothing that OpenMP can read; it takes {}, for example {}={}, or unset it",
                                   variable.name, as_typed(text), variable.takes, variable.name, variable.example));
  }
  // The first thread of a rank has its stack already.
  for (const char* name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || threads < 2) continue;
    const std::uint64_t stack = bytes_of(value), others = static_cast<std::uint64_t>(threads - 1);
    if (stack > UINT64_MAX / others || !system_gives(stack * others))
      throw UsageError(fmt::format(
          "{}={} asks for stacks that the system does not give to the {} threads of a rank; unset it, or try {}=8M",
          name, as_typed(value), threads, name));
  }
}

}  // namespace muonwalk::sim
