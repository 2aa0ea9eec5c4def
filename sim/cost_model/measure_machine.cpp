#include "sim/cost_model/measure_machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <utility>

#include "sim/cost_model/asked_ranks.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kBatches = 3;            // at least
constexpr double kLeastShare = 0.05;   // of the cores, that ranks can have had
constexpr double kUndisturbed = 0.97;  // the share of batches in which the ranks had less of the cores than what counts
constexpr int kCalls = 5;              // of a collective in a batch: no rank waits for all others in between
constexpr Index kSingle = Index{4} << 20;         // bytes that a rank gathers: from here on a batch is one call
constexpr int kBuffers = 8;                       // held at one time
constexpr Index kElementwise = 1 << 18;           // floats: like the buckets and matrices of a step
constexpr Index kMostGathered = Index{32} << 20;  // bytes that one rank gathers

constexpr double kMicrosecond = 1e-6, kGigaflop = 1e9;  // as files have them
constexpr double kFloatBytes = 4;

using Progress = std::function<void(const std::string&)>;

void tell(const Progress& progress, const std::string& what) {
  if (progress) progress(what);
}

// A number that is written in few digits and read back as the same.
double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

// The same of one that a file has in this unit.
double rounded(double value, double unit) { return rounded(value / unit) * unit; }

// The value below which this share of them lies.
double quantile(std::vector<double> values, double share) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * last);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// What one rank did several times over, each time begun by all ranks together.
struct Batches {
  std::vector<double> seconds;  // on the wall
  std::vector<double> worked;   // processor seconds of this rank
};

// Until the time is over. All ranks have to do as many, so rank 0 decides, and the others are told by an all-gather
// between two batches.
Batches timed_batches(Communicator& group, double seconds, WorldKind world, const std::function<void()>& batch) {
  Batches all;
  const double end = seconds_now() + seconds;
  for (;;) {
    const float goes_on = all.seconds.size() < kBatches || seconds_now() < end ? 1.0f : 0.0f;
    std::vector<float> told(static_cast<std::size_t>(group.size()));
    group.all_gather(&goes_on, Index{1}, told.data());
    if (told[0] == 0.0f) return all;
    group.barrier();
    const double began = seconds_now(), before = rank_seconds(world);
    batch();
    all.worked.push_back(rank_seconds(world) - before);
    all.seconds.push_back(seconds_now() - began);
  }
}

// The processor time of work that waits for nobody.
double seconds_of_work(Communicator& group, double seconds, const std::function<void()>& batch) {
  return quantile(timed_batches(group, seconds, WorldKind::threads, batch).worked, 0.5);
}

// The sizes that this number of ranks can gather.
std::vector<int> sizes_for(const MeasureSettings& settings, int ranks) {
  std::vector<int> sizes;
  for (const int bytes : settings.messages)
    if (sizes.empty() || Index{bytes} * ranks <= kMostGathered) sizes.push_back(bytes);
  return sizes;
}

int calls_in_batch(int bytes, int ranks) { return Index{bytes} * ranks < kSingle ? kCalls : 1; }

// One rank's part: says the times of its batches of all-gathers, two lines for each size of messages.
void time_gathers(Rank& rank, WorldKind world, const MeasureSettings& settings) {
  Communicator& group = rank.dp();
  for (const int bytes : sizes_for(settings, group.size())) {
    const std::vector<float> shard(static_cast<std::size_t>(bytes) / sizeof(float), 1.0f);
    std::vector<float> all(shard.size() * static_cast<std::size_t>(group.size()));
    const Batches batches = timed_batches(group, settings.seconds, world, [&] {
      for (int i = 0; i < calls_in_batch(bytes, group.size()); ++i)
        group.all_gather(shard.data(), static_cast<Index>(shard.size()), all.data());
    });
    rank.say(line_of(batches.seconds));
    rank.say(line_of(batches.worked));
  }
}

// Of batches of one size, as all ranks have said them: how long the ranks keep all cores that they can have, where no
// other job has any. Other jobs make a batch longer, but hardly change the processor time that it takes; and of many
// short batches some have the machine to themselves, so these say what part of the time ranks wait for each other.
double core_seconds(const std::vector<Batches>& ranks, double cores) {
  std::vector<double> worked, shares;
  for (std::size_t i = 0; i < ranks.at(0).worked.size(); ++i) {
    double sum = 0;
    for (const Batches& rank : ranks) sum += rank.worked.at(i);
    worked.push_back(sum);
    shares.push_back(std::clamp(sum / (cores * ranks[0].seconds.at(i)), kLeastShare, 1.0));
  }
  return quantile(worked, 0.5) / quantile(shares, kUndisturbed);
}

MessageCosts costs_of_messages(Options options, int ranks, const MeasureSettings& settings, const std::string& source) {
  options.grid = Grid().dp(ranks);
  const WorldKind world = options.world;
  const auto said = said_by_ranks(options, "messages", [&](Rank& rank) { time_gathers(rank, world, settings); });
  const double cores = std::min(cores_here(), ranks), messages = static_cast<double>(ranks) * (ranks - 1);
  std::vector<MeasuredCurve::Point> points;
  for (const int bytes : sizes_for(settings, ranks)) {
    std::vector<Batches> all;
    for (const std::vector<std::string>& lines : said)
      all.push_back({numbers_of(lines.at(2 * points.size())), numbers_of(lines.at(2 * points.size() + 1))});
    const double of_call = core_seconds(all, cores) / calls_in_batch(bytes, ranks);
    points.push_back({static_cast<double>(bytes), rounded(of_call / messages, kMicrosecond)});
  }
  return {ranks, MeasuredCurve("processor seconds of a message, by its bytes", std::move(points), source)};
}

TransportCosts measure_transport(const Options& options, const MeasureSettings& settings, const Progress& progress,
                                 const std::string& source) {
  TransportCosts costs;
  for (const int ranks : settings.ranks) {
    tell(progress, fmt::format("messages of {} ranks over {}", ranks, transport_name(options.transport)));
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

MachineCosts measure_machine(const MeasureSettings& settings, const Progress& progress) {
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
  tell(progress, "Newton–Schulz and elementwise work on all cores");
  measure_work_into(costs, processes, settings);
  costs.gloo = measure_transport(processes, settings, progress, costs.source);
  costs.memory = measure_transport(threads, settings, progress, costs.source);
  return costs;
}

}  // namespace muonwalk::sim
