#include "sim/ranks/launched_process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

RefusalDuty duty;
bool tells = true;
bool by_hand = false;

// What says which rank this is, in a command line that nobody has understood yet, and that may be wrong.
LaunchOptions launch_options_in(int argc, char** argv) {
  LaunchOptions options;
  const auto number = [&](int word, const std::string& name, std::optional<int>& target) {
    const std::string text = argv[word];
    if (text.rfind(name + "=", 0) == 0) target = std::atoi(text.c_str() + name.size() + 1);
    if (text == name && word + 1 < argc) target = std::atoi(argv[word + 1]);
  };
  for (int word = 1; word < argc; ++word) {
    number(word, "--rank", options.rank);
    number(word, "--world-size", options.world_size);
  }
  // Half of an answer is refused; who says so is then decided by what a launcher says.
  return options.rank && options.world_size ? options : LaunchOptions();
}

}  // namespace

void speak_only_as_rank_0(int argc, char** argv) {
  const LaunchOptions options = launch_options_in(argc, argv);
  by_hand = options.rank.has_value();
  duty = refusal_duty(options, process_environment());
  tells = duty.of_run;
  if (tells) return;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

bool tells_refusals() { return tells; }

void let_refusal_be_told() {
  if (!by_hand) sleep(1);
}

std::optional<Launch> launch_of_this_process(const LaunchOptions& options) {
  try {
    return find_launch(options, process_environment());
  } catch (const UsageError&) {
    tells = duty.of_host;
    throw;
  }
}

}  // namespace muonwalk::sim
