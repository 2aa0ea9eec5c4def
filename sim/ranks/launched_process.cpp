#include "sim/ranks/launched_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/launch/rendezvous.hpp"
#include "sim/ranks/agent_frames.hpp"
#include "sim/ranks/hello.hpp"
#include "sim/ranks/launched_run.hpp"
#include "sim/ranks/options.hpp"
#include "sim/ranks/world.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long others are looked for, by hand by rank 0 alone; and waited for when they have been told.
constexpr milliseconds kMoment(1000);

RefusalDuty duty;
bool tells = true;
LaunchOptions asked;         // in the command line
double timeout_seconds = 0;  // the same

// What says which rank this is, in a command line that nobody has understood yet, and that may be wrong.
LaunchOptions launch_options_in(int argc, char** argv) {
  std::map<std::string, std::string> given;  // what comes behind a word, or behind its "="; the last time counts
  for (int word = 1; word < argc; ++word) {
    const std::string option = argv[word];
    if (const std::size_t equals = option.find('='); equals != std::string::npos)
      given[option.substr(0, equals)] = option.substr(equals + 1);
    else if (word + 1 < argc)
      given[option] = argv[word + 1];
  }
  const auto number = [&given](const char* option) {
    const std::string& value = given[option];
    return value.empty() ? std::nullopt : std::optional<int>(std::atoi(value.c_str()));
  };
  LaunchOptions options = {number("--rank"), number("--world-size"), given["--rendezvous"], given["--interface"],
                           given["--secret-file"]};
  timeout_seconds = std::atof(given["--timeout"].c_str());
  if (!(timeout_seconds >= 0.1 && timeout_seconds <= 86400)) timeout_seconds = Options().timeout_seconds;
  // Half of an answer is refused; who says so is then decided by what a launcher says.
  if (!options.rank || !options.world_size) options.rank = options.world_size = std::nullopt;
  return options;
}

// In rank 0's process: tells those who look for it.
void answer_all(const Launch& launch, const std::string& why) {
  Rendezvous rendezvous(launch);
  const auto until = steady_clock::now() + (asked.rank ? 5 : 1) * kMoment;  // by hand they are started apart
  for (int left = launch.world_size - 1; left > 0 && steady_clock::now() < until;) {
    std::vector<pollfd> polled;
    rendezvous.listener().add_to(polled);
    poll(polled.data(), polled.size(), 20);
    while (std::optional<OpenFile> socket = rendezvous.listener().take()) {
      FramedConnection other(std::move(*socket));
      send_value(other, AgentFrame::world_over, 2);
      other.send(frame_type(AgentFrame::cause), why);
      other.flush_within(kMoment);
      other.receive_within(kMoment);  // who it is: a connection that is closed unread may lose what was sent
      --left;
    }
  }
}

}  // namespace

void speak_only_as_rank_0(int argc, char** argv) {
  asked = launch_options_in(argc, argv);
  duty = refusal_duty(asked, process_environment());
  tells = duty.of_run || asked.rank.has_value();
  if (duty.of_run) return;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

bool tells_refusals() { return tells; }

void hand_refusal_on(const std::string& sentence) {
  if (asked.rank ? launched_run() != nullptr : duty.of_run) return;
  std::optional<Launch> launch;
  try {
    launch = find_launch(asked, process_environment());
    if (!launch) return;
    if (duty.of_run) return answer_all(*launch, fmt::format("rank 0 on {} ends the run: {}", host_name(), sentence));
    const milliseconds patience = asked.rank ? milliseconds(static_cast<long>(timeout_seconds * 1000)) : kMoment;
    FramedConnection parent(join_rendezvous(*launch, patience).socket);
    parent.send(frame_type(AgentFrame::refused),
                fmt::format("rank {} on {} refuses what it was asked: {}", launch->rank, host_name(), sentence));
    while (!parent.ended() && parent.receive_within(kMoment)) {
    }
  } catch (const std::exception&) {  // the first process has refused as well, or nobody knows where it is
    if (!launch && !asked.rank) sleep(1);
  }
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
