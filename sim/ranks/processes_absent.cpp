// What the room of processes promises, in a program without it: in a browser there is no process but this one.
#include "sim/ranks/launched_process.hpp"
#include "sim/ranks/world.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

std::unique_ptr<World> start_process_world(const Options&) {
  throw UsageError("--world processes is not in this program; leave it out, and ranks are fibers");
}

void speak_only_as_rank_0(int, char**) {}
bool tells_refusals() { return true; }
void hand_refusal_on(const std::string&) {}
std::optional<Launch> launch_of_this_process(const LaunchOptions&) { return std::nullopt; }

int meet_launched(const Options&, const std::string&) { return 1; }
void refuse_launched(const std::string&) {}
void end_launched(int) {}

}  // namespace muonwalk::sim
