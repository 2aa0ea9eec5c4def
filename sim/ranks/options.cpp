#include "sim/ranks/options.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "sim/fibers/fibers.hpp"
#include "sim/transport/nccl_device.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// All paths that the command line names.
std::vector<NamedPath> named_paths(const LessonInfo& info, const Options& options) {
  std::vector<NamedPath> paths = {{"--record", options.record_file, PathUse::writes},
                                  {"--trace", options.trace_file, PathUse::writes}};
  for (const LessonOption& option : info.options) {
    if (const auto* one = std::get_if<std::string*>(&option.target)) paths.push_back({option.name, **one, option.use});
    if (const auto* several = std::get_if<std::vector<std::string>*>(&option.target))
      for (const std::string& path : **several) paths.push_back({option.name, path, option.use});
  }
  return paths;
}

void require_bearable(const LessonInfo& info, const Options& options) {
  const Grid& grid = options.grid;
  const long ranks = long{grid.dp()} * grid.tp() * grid.pp();
  if (plans_only(info) && ranks > kMostPlannedRanks)
    throw UsageError(fmt::format("--dp {} --tp {} --pp {} asks for {} ranks, but plans are made for at most {}",
                                 grid.dp(), grid.tp(), grid.pp(), ranks, kMostPlannedRanks));
  if (plans_only(info)) return;
  const int most = options.world == WorldKind::fibers ? kMostFibers : kMostRanks;
  if (ranks > most)
    throw UsageError(
        fmt::format("--dp {} --tp {} --pp {} asks for {} ranks, more than one machine should bear; at most {} "
                    "work, for example --dp {} --tp {} --pp 1",
                    grid.dp(), grid.tp(), grid.pp(), ranks, most, std::min(grid.dp(), 8), std::min(grid.tp(), 8)));
  if (options.fault.kind != Fault::Kind::none && (options.fault.rank < 0 || options.fault.rank >= ranks))
    throw UsageError(
        fmt::format("--fault names rank {}, but the ranks of this run are 0 to {}", options.fault.rank, ranks - 1));
  using Kind = Fault::Kind;
  const Kind fault = options.fault.kind;
  if (options.world == WorldKind::fibers &&
      (fault == Kind::kill || fault == Kind::exit || fault == Kind::stop || fault == Kind::never_connect))
    throw UsageError(
        "--fault with --world fibers can only throw, hang or spin, because ranks that are fibers share one process and "
        "end together; try --fault throw:RANK:STEP, or --world processes");
}

// Grids of as many ranks as there are: the lesson's TP where it divides them, and DP alone.
std::string grids_of(int ranks, const Grid& grid) {
  const std::string plain = fmt::format("--dp {} --tp 1 --pp 1", ranks);
  if (grid.tp() == 1 || ranks % grid.tp() != 0) return plain;
  return fmt::format("--dp {} --tp {} --pp 1, or {}", ranks / grid.tp(), grid.tp(), plain);
}

// A launcher has started so many processes, and each of them is a rank.
void require_launched_grid(const LessonInfo& info, const Options& options) {
  const Launch& launch = *options.launch;
  if (options.world == WorldKind::fibers)
    throw UsageError(
        fmt::format("--world fibers keeps all ranks in one process, but this one is rank {} of {} ({}); start the "
                    "program by itself for that, or leave --world out",
                    launch.rank, launch.world_size, launch.told_by));
  if (plans_only(info) || launch.world_size == options.grid.size()) return;
  const std::string started = launch.by_hand ? fmt::format("--world-size {} means", launch.world_size)
                                             : fmt::format("{} has started", launch.launcher);
  throw UsageError(
      fmt::format("{} {} {}, but {} is a layout of {}{}; start {}, or try {}", started, launch.world_size,
                  launch.world_size == 1 ? "process" : "processes", options.grid.text(), options.grid.size(),
                  options.grid_given ? "" : fmt::format(", which is what {} takes unless told otherwise", info.name),
                  options.grid.size(), grids_of(launch.world_size, options.grid)));
}

}  // namespace

bool may_plan_only(const LessonInfo& info) { return info.plans_only != nullptr || info.plans_of != nullptr; }

bool plans_only(const LessonInfo& info) {
  return (info.plans_only != nullptr && *info.plans_only) || (info.plans_of != nullptr && !info.plans_of->empty());
}

const char* transport_name(TransportKind transport) {
  constexpr const char* kNames[] = {"gloo", "memory", "nccl"};
  return kNames[static_cast<int>(transport)];
}

void have_fault(const Fault& fault, int rank, int step) {
  if (fault.rank != rank) return;
  if (fault.kind == Fault::Kind::never_connect) {
    while (step == 0) pause();  // whatever step was named: later than this it would be connected
    return;
  }
  if (fault.step != step) return;
  if (fault.kind == Fault::Kind::kill) kill(getpid(), SIGKILL);
  if (fault.kind == Fault::Kind::exit) _exit(0);
  if (fault.kind == Fault::Kind::raise) throw RunError("it threw because --fault asked for it");
  if (fault.kind == Fault::Kind::stop) kill(getpid(), SIGSTOP);
  while (fault.kind == Fault::Kind::hang) fiber::inside() ? fiber::wait() : static_cast<void>(pause());
  for (volatile std::uint64_t turns = 0; fault.kind == Fault::Kind::spin;) turns = turns + 1;
}

void require_transport(const LessonInfo& info, const Options& options) {
  if (options.transport != TransportKind::nccl || plans_only(info)) return;
  // Who starts processes by hand does not say how many of them are on this host.
  const bool known = !options.launch || !options.launch->by_hand;
  require_nccl(known ? options.ranks_on_this_host() : 1, options.launch.has_value());
}

std::string lesson_number(const LessonInfo& info) {
  return info.name.rfind("lesson_", 0) == 0 && info.name.size() > 9 ? info.name.substr(7, 2) : "";
}

RankInfo Options::rank_info(int rank) const {
  return RankInfo{grid.place(rank), grid, threads_per_rank(), seed, precision, products, bug};
}

ClockNs Options::clock() const { return virtual_time() ? fiber::clock_ns : steady_clock_ns; }

int Options::threads_per_rank() const {
  if (threads > 0) return threads;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, cores / ranks_on_this_host());
}

std::string range_complaint(long value, long least, long most) {
  if (value < least) return fmt::format("{} is too small; it takes a whole number of at least {}", value, least);
  if (value > most)
    return fmt::format("{} is too much for one machine; it takes a whole number from {} to {}", value, least, most);
  return "";
}

void require_known_bug(const LessonInfo& info, const std::string& bug) {
  std::vector<std::string> names;
  for (const Bug& known : info.bugs) {
    if (known.name == bug) return;
    names.push_back(known.name);
  }
  throw UsageError(fmt::format("--bug {} is not a planted bug of {}; {}", as_typed(bug), info.name,
                               names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "))));
}

void require_valid(const LessonInfo& info, const Options& options) {
  if (options.verbose < 0 || options.verbose > 2)
    throw UsageError(fmt::format("--verbose {} is not known; it takes 0, 1 or 2", options.verbose));
  if (!(options.timeout_seconds >= 0.1) || options.timeout_seconds > 86400)
    throw UsageError(
        fmt::format("--timeout {} makes no sense; it takes seconds from 0.1 to 86400", options.timeout_seconds));
  const auto require_between = [](const char* option, int value, int most) {
    const std::string complaint = range_complaint(value, 1, most);
    if (!complaint.empty()) throw UsageError(fmt::format("{} {}", option, complaint));
  };
  if (options.threads != 0) require_between("--threads", options.threads, kMostThreads);
  require_between("--trace-events", options.trace_events, kMostTraceEvents);
  require_distinct_files(named_paths(info, options));
  if (options.turns && options.world != WorldKind::fibers)
    throw UsageError("--turns orders ranks that take turns, and processes don't; add --world fibers");
  if (options.transport == TransportKind::memory)
    throw UsageError("ranks that are processes share no memory; add --world fibers, or use --transport gloo");
  if (!options.bug.empty()) require_known_bug(info, options.bug);
  require_bearable(info, options);
  if (options.launch) require_launched_grid(info, options);
}

}  // namespace muonwalk::sim
