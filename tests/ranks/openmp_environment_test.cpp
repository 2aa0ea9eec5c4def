// What OpenMP's variables may hold: how a size is read, and what is said of what can't be.
#include "sim/ranks/openmp_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/text/names.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// Whether stacks of this size are refused to the second thread of a rank.
bool refuses(const char* variable, const std::string& size) {
  setenv(variable, size.c_str(), 1);
  bool refused = false;
  try {
    require_openmp_environment(2);
  } catch (const UsageError&) {
    refused = true;
  }
  unsetenv(variable);
  return refused;
}

}  // namespace

// What a system gives is not known here, but that it gives the same to who asks for the same. Somewhere between a KiB
// and more than any processor can address it begins to refuse, so a unit that is taken for another one shows there.
TEST_CASE("OpenMP's stacks: sizes are KiB where no unit is said, and a unit is 1,024 of the one below") {
  for (const char* variable : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    CAPTURE(variable);
    int refused = 0;
    for (int bits = 0; bits < 54; ++bits) {
      CAPTURE(bits);
      const auto power = [](int exponent) { return std::to_string(1LL << exponent); };
      const bool in_kib = refuses(variable, power(bits) + "k");
      CHECK(refuses(variable, power(bits)) == in_kib);
      CHECK(refuses(variable, " +" + power(bits) + "K ") == in_kib);
      if (bits < 49) CHECK(refuses(variable, power(bits + 10) + "b") == in_kib);
      if (bits >= 10) CHECK(refuses(variable, power(bits - 10) + "M") == in_kib);
      if (bits >= 20) CHECK(refuses(variable, power(bits - 20) + " g") == in_kib);
      refused += in_kib;
    }
    CHECK(refused > 0);
    CHECK(refused < 54);
  }
}

TEST_CASE("OpenMP's variables: what it can't read is refused in a sentence, and so are stacks for other threads") {
  struct Variable {
    const char* name;
    std::vector<const char*> good, bad;
  };
  const Variable all[] = {
      {"OMP_STACKSIZE", {"8M", " +16 k ", "1"}, {"", "x", "-1", "8MB", "8 8", "1.5M"}},
      {"GOMP_STACKSIZE", {"8192"}, {"many"}},
      {"OMP_NUM_THREADS", {"4", "4,2", " 04 , +2 "}, {"0", "00", "4,0", "4,", ",4", "-4", "1234567890"}},
      {"OMP_THREAD_LIMIT", {"64", "+999999999"}, {"1234567890", "-1", "4,2"}},
      {"OMP_MAX_ACTIVE_LEVELS", {"0", "1"}, {"", "one"}},
      {"OMP_DYNAMIC", {"true", "FALSE", " false "}, {"1", "yes"}},
      {"OMP_NESTED", {"true"}, {"truefalse"}},
      {"OMP_CANCELLATION", {"false"}, {""}},
      {"OMP_WAIT_POLICY", {"Active", "passive"}, {"lazy", "active passive"}},
      {"GOMP_SPINCOUNT", {"10", "5k", "INFINITE", "infinity", "3t"}, {"z", "1 x"}},
      {"OMP_SCHEDULE",
       {"static", "guided,7", "monotonic:dynamic , +4", "auto"},
       {"late", "static,", "static,-1", "other:static"}},
      {"OMP_PROC_BIND", {"true", "false", "primary", "master, close,spread"}, {"near", "true,close", "close,"}},
      {"OMP_PLACES",
       {"threads", "cores(2)", "ll_caches", "numa_domains", "{0:4},{4:4}", "!{1}"},
       {"here", "cores(", "cores()"}}};
  const auto said = [](const char* name, const std::string& value, int threads = 1) {
    setenv(name, value.c_str(), 1);
    std::string sentence;
    try {
      require_openmp_environment(threads);
    } catch (const UsageError& error) {
      sentence = error.what();
    }
    unsetenv(name);
    return sentence;
  };
  for (const Variable& each : all) {
    CAPTURE(each.name);
    for (const char* value : each.good) {
      CAPTURE(value);
      CHECK(said(each.name, value) == "");
    }
    for (const char* value : each.bad) {
      CAPTURE(value);
      const std::string sentence = said(each.name, value), example = fmt::format(", for example {}=", each.name);
      CHECK(sentence.find(
                fmt::format("{}={} is nothing that OpenMP can read; it takes ", each.name, as_typed(value))) == 0);
      const std::size_t at = sentence.find(example) + example.size();
      CHECK(said(each.name, sentence.substr(at, sentence.find(", or unset it") - at)) == "");  // the example works
    }
  }
  for (const char* name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    const std::string much = "900000000000000000k";
    CHECK(said(name, much, 1) == "");  // its first thread has its stack already
    CHECK(
        said(name, much, 3) ==
        fmt::format("{}={} asks for stacks that the system does not give to the 3 threads of a rank; unset it, or try "
                    "{}=8M",
                    name, much, name));
  }
}
