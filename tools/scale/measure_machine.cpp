#include "tools/scale/measure_machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <utility>

#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"
#include "tools/scale/measuring.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kBatches = 3;                       // at least
constexpr int kCalls = 10;                        // of a collective in a batch: no rank waits for all others in between
constexpr Index kSingle = Index{4} << 20;         // bytes that a rank gathers: from here on a batch is one call
constexpr int kBuffers = 8;                       // held at one time
constexpr Index kElementwise = 1 << 18;           // floats: like the buckets and matrices of a step
constexpr Index kMostGathered = Index{32} << 20;  // bytes that one rank gathers

constexpr double kFloatBytes = 4;

using Announce = std::function<void(const std::string&)>;

void tell(const Announce& announce, const std::string& what) {
  if (announce) announce(what);
}

// A number that is written in few digits and read back as the same.
double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

// The same of one that a file has in this unit.
double rounded(double value, double unit) { return rounded(value / unit) * unit; }

// The times of batches, each begun by all ranks together, until the time is over. All ranks have to do as many.
std::vector<double> timed_batches(Communicator& group, double seconds, double (*clock)(),
                                  const std::function<void()>& batch) {
  std::vector<double> times;
  const double end = seconds_now() + seconds;
  while (go_on(group, times.size() < kBatches || seconds_now() < end)) {
    group.barrier();
    const double began = clock();
    batch();
    times.push_back(clock() - began);
  }
  return times;
}

// Of messages the clock on the wall counts, and of several batches one that is quicker than most: other jobs of the
// machine make them longer, and by far.
double seconds_of_calls(Communicator& group, double seconds, const std::function<void()>& batch) {
  return quantile(timed_batches(group, seconds, seconds_now, batch), 0.25);
}

// Of work that waits for nobody the processor's clock counts, which stands still while other jobs have the processor.
double seconds_of_work(Communicator& group, double seconds, const std::function<void()>& batch) {
  return quantile(timed_batches(group, seconds, thread_seconds, batch), 0.5);
}

// The sizes that this number of ranks can gather.
std::vector<int> sizes_for(const MeasureSettings& settings, int ranks) {
  std::vector<int> sizes;
  for (const int bytes : settings.messages)
    if (sizes.empty() || Index{bytes} * ranks <= kMostGathered) sizes.push_back(bytes);
  return sizes;
}

// One rank's part: seconds of an all-gather for each size of messages.
std::vector<double> seconds_of_gathers(Rank& rank, const MeasureSettings& settings) {
  Communicator& group = rank.dp();
  std::vector<double> seconds;
  for (const int bytes : sizes_for(settings, group.size())) {
    const std::vector<float> shard(static_cast<std::size_t>(bytes) / sizeof(float), 1.0f);
    std::vector<float> all(shard.size() * static_cast<std::size_t>(group.size()));
    const int calls = Index{bytes} * group.size() < kSingle ? kCalls : 1;
    const double batch = seconds_of_calls(group, settings.seconds, [&] {
      for (int i = 0; i < calls; ++i) group.all_gather(shard.data(), static_cast<Index>(shard.size()), all.data());
    });
    seconds.push_back(batch / calls);
  }
  // A longer message can't cost less; where it seems to, something has disturbed the shorter one.
  for (std::size_t i = seconds.size(); i-- > 1;) seconds[i - 1] = std::min(seconds[i - 1], seconds[i]);
  return seconds;
}

// All ranks share the cores, so a call that took t seconds has cost t · min(cores, ranks) processor seconds.
MessageCosts costs_of_messages(Options options, int ranks, const MeasureSettings& settings, const std::string& source) {
  options.grid = Grid().dp(ranks);
  const auto said =
      said_by_ranks(options, "messages", [&](Rank& rank) { rank.say(line_of(seconds_of_gathers(rank, settings))); });
  const std::vector<double> seconds = numbers_of(said.at(0).at(0));
  const double cores = std::min(cores_here(), ranks), messages = static_cast<double>(ranks) * (ranks - 1);
  std::vector<MeasuredCurve::Point> points;
  for (const int bytes : sizes_for(settings, ranks))
    points.push_back({static_cast<double>(bytes), rounded(seconds.at(points.size()) * cores / messages, kMicrosecond)});
  return {ranks, MeasuredCurve("processor seconds of a message, by its bytes", std::move(points), source)};
}

TransportCosts measure_transport(const Options& options, const MeasureSettings& settings, const Announce& announce,
                                 const std::string& source) {
  TransportCosts costs;
  for (const int ranks : settings.ranks) {
    tell(announce, fmt::format("messages of {} ranks over {}", ranks, transport_name(options.transport)));
    costs.by_ranks.push_back(costs_of_messages(options, ranks, settings, source));
  }
  return costs;
}

// The shape of the largest matrix of lesson 09 is about this long for its width.
Shape shape_of(int side) { return {side, side + side / 4}; }

struct Engine {
  Products products;
  Precision precision;
};

constexpr Engine kEngines[] = {{Products::eigen, Precision::fp32},
                               {Products::eigen, Precision::bf16},
                               {Products::chain, Precision::fp32},
                               {Products::chain, Precision::bf16}};

// The processor time of a call, while a rank on every other core does the same.
double seconds_of_newton_schulz(Communicator& group, const Engine& engine, int side, double seconds) {
  NewtonSchulzSettings how;
  how.products = engine.products;
  how.precision = engine.precision;
  const Shape shape = shape_of(side);
  const Matrix x = random_matrix({1, 0}, shape.rows, shape.cols);
  return seconds_of_work(group, seconds, [&] { newton_schulz(x, how); });
}

double seconds_of_elementwise(Communicator& group, double seconds) {
  std::vector<float> gradient(kElementwise, 1.0f), momentum_buffer(kElementwise, 0.0f), update(kElementwise);
  const MuonSettings settings;
  return seconds_of_work(group, seconds, [&] {
    momentum(gradient.data(), momentum_buffer.data(), kElementwise, settings, update.data());
  });
}

// Several at a time, as a step has them: a single one would be the same memory over and over.
double seconds_of_new_memory(Communicator& group, double seconds) {
  return seconds_of_work(group, seconds,
                         [] {
                           std::vector<Flat> buffers;
                           for (int i = 0; i < kBuffers; ++i) buffers.emplace_back(kElementwise);
                         }) /
         kBuffers;
}

// What every rank measured of products and of elementwise work, in the order in which they are asked for.
std::vector<double> measure_work(Rank& rank, const MeasureSettings& settings) {
  const double seconds = settings.seconds / 2;
  std::vector<double> all = {seconds_of_elementwise(rank.dp(), seconds), seconds_of_new_memory(rank.dp(), seconds)};
  for (const Engine& engine : kEngines)
    for (const int side : settings.sides) all.push_back(seconds_of_newton_schulz(rank.dp(), engine, side, seconds));
  return all;
}

// Ranks with a core each: the mean of what they measured.
std::vector<double> mean_work(const Options& options, const MeasureSettings& settings) {
  const auto said =
      said_by_ranks(options, "work", [&](Rank& rank) { rank.say(line_of(measure_work(rank, settings))); });
  std::vector<double> mean;
  for (const std::vector<std::string>& lines : said) {
    const std::vector<double> numbers = numbers_of(lines.at(0));
    mean.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) mean[i] += numbers[i] / static_cast<double>(said.size());
  }
  return mean;
}

void measure_work_into(MachineCosts& costs, Options options, const MeasureSettings& settings) {
  options.grid = Grid().dp(costs.cores);
  options.threads = 1;
  const std::vector<double> seconds = mean_work(options, settings);
  auto next = seconds.begin();
  constexpr double kBytesOfMomentum = 16;  // gradient and momentum in, momentum and update out
  const double elements = static_cast<double>(kElementwise);
  costs.memory_bytes_per_second = rounded(kBytesOfMomentum * elements / *next++, kGigabyte);
  costs.new_memory_bytes_per_second = rounded(kFloatBytes * elements / *next++, kGigabyte);
  for (const Engine& engine : kEngines) {
    std::vector<MeasuredCurve::Point> rates;
    for (const int side : settings.sides) {
      const Shape shape = shape_of(side);
      const double flops = newton_schulz_flops(shape.rows, shape.cols);
      const double taken = kFloatBytes * static_cast<double>(newton_schulz_elements(shape, engine.precision));
      const double took = *next++;
      const double computing = std::max(took / 2, took - taken / costs.new_memory_bytes_per_second);
      rates.push_back({newton_schulz_flops(shape.rows, shape.cols, 1), rounded(flops / computing, kGigaflop)});
    }
    costs.newton_schulz.push_back(
        {engine.products, engine.precision,
         MeasuredCurve("FLOPs per second of Newton–Schulz, by the FLOPs of one of its steps", rates, costs.source)});
  }
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "this machine";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

}  // namespace

MachineCosts measure_machine(const MeasureSettings& settings, const Announce& announce) {
  MachineCosts costs;
  costs.cores = cores_here();
  costs.machine = fmt::format("{}, {} cores", processor_name(), costs.cores);
  costs.memory_bytes =
      rounded(static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)), kGibibyte);
  costs.source = "measured by muonwalk-scale on " + today();

  Options processes;
  Options threads;
  threads.world = WorldKind::threads;
  threads.transport = TransportKind::memory;
  // Processes first: who forks must have no threads.
  tell(announce, "Newton–Schulz and elementwise work on all cores");
  measure_work_into(costs, processes, settings);
  costs.gloo = measure_transport(processes, settings, announce, costs.source);
  costs.memory = measure_transport(threads, settings, announce, costs.source);
  return costs;
}

}  // namespace muonwalk::sim
