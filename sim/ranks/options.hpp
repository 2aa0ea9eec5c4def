#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/launch/launch.hpp"
#include "sim/replay/span_buffer.hpp"
#include "sim/transport/slow_link.hpp"
#include "src/io/file_identity.hpp"
#include "src/layout/grid.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk::sim {

class StopRequest;

/// What a rank knows without talking to anybody: its number and coordinates, the grid, and what was asked for on the
/// command line. The serial reference of a lesson is handed it as well, to know whose result to compute.
struct RankInfo {
  Place place;                            ///< the rank's number and coordinates
  Grid grid;                              ///< the whole run's
  int threads = 1;                        ///< OpenMP threads of this rank
  std::uint64_t seed = 0;                 ///< `--seed`
  Precision precision = Precision::fp32;  ///< `--precision`
  Products products = Products::eigen;    ///< `--products`
  std::string bug_switched_on;            ///< the planted bug of `--bug NAME`; empty for none

  /// True when the planted bug `name` is switched on.
  bool bug(const char* name) const { return bug_switched_on == name; }
};

/// Where ranks live: each in a process of its own, or as fibers that take turns on one thread of this one.
enum class WorldKind { processes, fibers };
/// What ranks talk over: Gloo; memory, where they are fibers; or NCCL, each of them with a GPU.
enum class TransportKind { gloo, memory, nccl };
/// "gloo" and so on, as `--transport` takes it.
const char* transport_name(TransportKind transport);

/// Which network ranks that are processes connect over: one of their own where the system allows it, or the loopback
/// that all processes of the machine share.
enum class NetworkKind { own, shared };

/// A fault on purpose: `--fault kill:3:2` lets rank 3 be killed at the start of step 2; step 0 is the rendezvous.
struct Fault {
  /// What happens to the rank: it is killed, exits with 0, throws, is stopped (SIGSTOP), hangs, computes forever, or
  /// never connects.
  enum class Kind { none, kill, exit, raise, stop, hang, spin, never_connect };
  Kind kind = Kind::none;  ///< none: no fault
  int rank = -1;           ///< the rank that has it
  int step = 1;            ///< the step that it happens in; never_connect is always in the rendezvous
};

/// Lets rank `rank` suffer the fault that `--fault` asks for, when the fault is for this rank and step number `step`
/// (0: the rendezvous). Does not return from most of them; throws RunError for Fault::Kind::raise.
void have_fault(const Fault& fault, int rank, int step);

/// A rank that does nothing but compute gets this many times --timeout before the run is given up: it may well be doing
/// honest work, which a rank that waits or sleeps is not.
constexpr int kComputeTimeouts = 10;

/// What a lesson, or a notebook in which it runs, adds to what was asked for, before any rank is started.
struct WorldSetUp {
  std::vector<Group> groups;  ///< Groups besides dp, tp and pp (LessonInfo::groups).
  /// The host of each rank, 0 or 1: each has a network of its own, and there is a cable between them
  /// (private_network.hpp). Where the system does not let ranks have that, two addresses of the loopback stand in for
  /// the hosts, and a line on standard error says so. Empty: all are on this host, as are ranks that a launcher
  /// started, or that are fibers.
  std::vector<int> host_of_rank;
  /// How slow every rank's link to the others is made to be (slow_link.hpp), over Gloo or memory; nothing: as it is.
  std::optional<LinkSpeed> link;
  /// Where ranks read whether to stop (LessonCore::stop_when_asked); null: a signal ends the run.
  std::shared_ptr<StopRequest> stops;
  bool traced = false;    ///< Keeps a trace in memory, for a lesson that reads its own.
  bool recorded = false;  ///< Keeps what quiet steps do, phase by phase, for a notebook (LessonCore::take_phases).
};

/// Everything that the options of a lesson say; `--help` prints what each is for.
struct Options {
  Grid grid;                                      ///< --dp, --tp, --pp
  bool grid_given = false;                        ///< --dp, --tp or --pp was on the command line
  int threads = 0;                                ///< 0: max(1, cores / ranks)
  std::uint64_t seed = 1;                         ///< --seed
  Precision precision = Precision::fp32;          ///< --precision
  Products products = Products::eigen;            ///< --products
  int verbose = 1;                                ///< --verbose: 0 the result only, 1 shapes and shards, 2 also values
  double timeout_seconds = 30;                    ///< --timeout: how long nothing may move before the run is given up
  WorldKind world = WorldKind::processes;         ///< --world
  std::optional<std::uint64_t> turns;             ///< --turns: the seed of the order in which fibers take turns
  TransportKind transport = TransportKind::gloo;  ///< --transport, for processes
  NetworkKind network = NetworkKind::own;         ///< --network
  std::string bug;                                ///< --bug; empty for none
  Fault fault;                                    ///< --fault
  std::string record_file;                        ///< the file that the run is recorded in; empty for none
  std::string trace_file;                         ///< the file for a trace of all ranks; empty for none
  std::optional<Launch> launch;        ///< what a launcher says of this process; nothing where it forks all ranks
  std::vector<std::string> arguments;  ///< the command line
  int trace_events = kTraceEvents;     ///< the most events that are kept of a rank
  WorldSetUp set_up;                   ///< what the lesson adds; no option says it

  /// True when ranks tell what a recording needs.
  bool recording() const { return set_up.recorded || !record_file.empty(); }
  /// The most events that a rank keeps: at least the default where a lesson reads its own trace, whatever is written of
  /// it.
  int kept_trace_events() const { return set_up.traced && trace_events < kTraceEvents ? kTraceEvents : trace_events; }
  /// True when the run is traced.
  bool tracing() const { return set_up.traced || !trace_file.empty(); }
  /// What its ranks talk over: memory where they are fibers, and else what was asked for.
  TransportKind talks_over() const { return world == WorldKind::fibers ? TransportKind::memory : transport; }
  /// True where time is virtual: fibers that talk over slow links.
  bool virtual_time() const { return world == WorldKind::fibers && set_up.link; }
  /// The clock of traces.
  ClockNs clock() const;
  /// What one rank knows of itself.
  RankInfo rank_info(int rank) const;
  /// How many ranks share the cores of this host.
  int ranks_on_this_host() const { return launch ? launch->local_size : grid.size(); }
  /// OpenMP threads of each rank: as asked for, or max(1, cores / ranks on this host).
  int threads_per_rank() const;
};

/// A planted bug: what `--bug NAME` switches on and what goes wrong then.
struct Bug {
  std::string name;  ///< the NAME of `--bug NAME`
  std::string what;  ///< a sentence for --list-bugs
};

/// An option that one lesson has besides the common ones. `target` is set when the option is given; bool means a flag.
struct LessonOption {
  std::string name;  ///< "--small"
  std::string help;  ///< a line for --help
  /// Where its value goes; has to live as long as the command line is read.
  std::variant<bool*, int*, float*, std::optional<int>*, std::optional<double>*, std::string*,
               std::vector<std::string>*>
      target;
  PathUse use = PathUse::none;  ///< tells whether its path is read or written
};

/// What a lesson says about itself before it runs.
struct LessonInfo {
  std::string name;                        ///< "lesson_05_tp_gather"
  std::string title;                       ///< "TP gather"
  std::string question;                    ///< one sentence that ends in a question mark
  std::vector<Bug> bugs = {};              ///< the planted ones
  std::vector<std::string> also_try = {};  ///< further command lines for the reader, e.g. "--tp 4"
  std::vector<LessonOption> options = {};  ///< those that only this lesson has
  bool fp32_only = false;  ///< it rounds and multiplies nothing: --precision bf16 and --products are refused
  Products products = Products::eigen;  ///< the default of --products
  bool traced = false;                  ///< it reads the trace of its own run (LessonCore::trace)
  const bool* plans_only = nullptr;  ///< an option of its own with which no rank is started, so more can be asked for
  const std::string* plans_of = nullptr;  ///< an option with a name, of which plans are made and no rank is started
  /// Groups that its ranks need besides dp, tp and pp: by name alone, {"dp × pp", {}}, where the grid has groups of
  /// this name (Grid::group), or with the ranks of the world that are in it, {"the corners", {0, 3, 4, 7}}. Several of
  /// the latter may have one name.
  std::vector<Group> groups = {};
};

/// The lesson has an option with which no rank is started.
bool may_plan_only(const LessonInfo& info);
/// That option was given.
bool plans_only(const LessonInfo& info);

/// The "05" of "lesson_05_tp_gather".
std::string lesson_number(const LessonInfo& info);

/// The most ranks that a lesson starts: what one machine should bear.
constexpr int kMostRanks = 64;
/// The most ranks that a lesson plans for without starting one.
constexpr int kMostPlannedRanks = 1 << 16;
/// The most events that can be asked for in a trace: 1.3 GB of them per rank.
constexpr int kMostTraceEvents = 1 << 24;
/// The most OpenMP threads of one rank.
constexpr int kMostThreads = 256;

/// Reads the command line into `options`, which hold the lesson's own grid. Throws UsageError with a sentence that
/// names the option, the value and what would work. `--help` and `--list-bugs` print to standard output and return
/// false: nothing is to be run.
bool parse_options(const LessonInfo& info, int argc, char** argv, Options& options);

/// Throws UsageError when the options can't work together; parse_options does so by itself.
void require_valid(const LessonInfo& info, const Options& options);
/// Throws UsageError when the ranks can't talk over what was asked for: over NCCL, without a GPU for each. Where that
/// is asked for, a short-lived child looks.
void require_transport(const LessonInfo& info, const Options& options);
/// Throws UsageError when the lesson has no planted bug of this name.
void require_known_bug(const LessonInfo& info, const std::string& bug);
/// What to say of a number that is not from `least` to `most`; empty when it is.
std::string range_complaint(long value, long least, long most);

}  // namespace muonwalk::sim
