#include "tools/scale/measuring.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

namespace muonwalk::sim {
namespace {

double seconds_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

std::vector<std::vector<std::string>> said_by_ranks(const Options& options, const std::string& title,
                                                    const RankBody& body) {
  const std::unique_ptr<World> world = start_world(options);
  const StepReports records = world->step(title, body);
  std::vector<std::vector<std::string>> lines(records.size());
  for_each<Said>(records,
                 [&](int rank, const Said& said) { lines[static_cast<std::size_t>(rank)].push_back(said.line); });
  if (world->is_parent()) world->finish();
  return lines;
}

std::string line_of(const std::vector<double>& numbers) {
  std::string line;
  for (const double number : numbers) line += fmt::format("{}{:a}", line.empty() ? "" : " ", number);
  return line;
}

std::vector<double> numbers_of(const std::string& line) {
  std::vector<double> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

bool go_on(Communicator& group, bool wanted) {
  const float mine = wanted ? 1.0f : 0.0f;
  std::vector<float> told(static_cast<std::size_t>(group.size()));
  group.all_gather(&mine, Index{1}, told.data());
  return told[0] != 0.0f;
}

double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double thread_seconds() { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }

double rank_seconds(WorldKind world) {
  return world == WorldKind::threads ? thread_seconds() : seconds_on(CLOCK_PROCESS_CPUTIME_ID);
}

int cores_here() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace muonwalk::sim
