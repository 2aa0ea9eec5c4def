#include "sim/cluster/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <map>
#include <thread>

#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

const std::map<std::string, Fault::Kind> kFaultKinds = {
    {"kill", Fault::Kind::kill}, {"exit", Fault::Kind::exit}, {"throw", Fault::Kind::raise},
    {"stop", Fault::Kind::stop}, {"hang", Fault::Kind::hang}, {"never-connect", Fault::Kind::never_connect}};

std::string quoted_if_empty(const std::string& text) { return text.empty() ? "''" : text; }

// "kill:3:2" → rank 3 is killed in step 2; the step may be left out.
Fault parse_fault(const std::string& text) {
  const auto refuse = [&]() -> UsageError {
    return UsageError(
        fmt::format("--fault {} names no fault; it takes KIND:RANK or KIND:RANK:STEP with KIND one of kill, exit, "
                    "throw, stop, hang, "
                    "never-connect and STEP from 1 on, or 0 for the rendezvous, for example --fault kill:3:2",
                    quoted_if_empty(text)));
  };
  std::vector<std::string> words = CLI::detail::split(text, ':');
  if (words.size() < 2 || words.size() > 3 || kFaultKinds.count(words[0]) == 0) throw refuse();
  Fault fault;
  fault.kind = kFaultKinds.at(words[0]);
  if (!CLI::detail::lexical_cast(words[1], fault.rank)) throw refuse();
  if (words.size() == 3 && (!CLI::detail::lexical_cast(words[2], fault.step) || fault.step < 0)) throw refuse();
  return fault;
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, seed);
  if (text.empty() || error != std::errc() || read_to != end)
    throw UsageError(fmt::format("--seed {} is no seed; it takes a whole number from 0 to {}", quoted_if_empty(text),
                                 std::numeric_limits<std::uint64_t>::max()));
  return seed;
}

// What the parser found wrong, as a sentence of ours.
std::string parse_error_text(const CLI::ParseError& error, const LessonInfo& info) {
  std::string reason = error.what();
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == '.')) reason.pop_back();
  const std::string unreadable = "Could not convert: ";  // and then "--dp = two"
  const std::size_t equals = reason.find(" = ");
  if (reason.rfind(unreadable, 0) == 0 && equals != std::string::npos)
    return fmt::format("{} {} is no number of the kind that it takes; {} --help says what works",
                       reason.substr(unreadable.size(), equals - unreadable.size()),
                       quoted_if_empty(reason.substr(equals + 3)), info.name);
  return fmt::format("{}; {} --help lists the options", reason, info.name);
}

void require_between(const char* option, long value, long least, long most) {
  if (value < least)
    throw UsageError(fmt::format("{} {} is too small; it takes a whole number from {} on", option, value, least));
  if (value > most)
    throw UsageError(fmt::format("{} {} is too much for one machine; it takes a whole number from {} to {}", option,
                                 value, least, most));
}

void require_known_bug(const LessonInfo& info, const std::string& bug) {
  std::vector<std::string> names;
  for (const Bug& known : info.bugs) {
    if (known.name == bug) return;
    names.push_back(known.name);
  }
  throw UsageError(fmt::format("--bug {} is no planted bug of {}; {}", quoted_if_empty(bug), info.name,
                               names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "))));
}

bool plans_only(const LessonInfo& info) { return info.plans_only != nullptr && *info.plans_only; }

void require_bearable(const LessonInfo& info, const Options& options) {
  const Grid& grid = options.grid;
  const long ranks = long{grid.dp()} * grid.tp() * grid.pp();
  if (plans_only(info) && ranks > kMostPlannedRanks)
    throw UsageError(fmt::format("--dp {} --tp {} --pp {} asks for {} ranks, but plans are made for at most {}",
                                 grid.dp(), grid.tp(), grid.pp(), ranks, kMostPlannedRanks));
  if (plans_only(info)) return;
  if (ranks > kMostRanks)
    throw UsageError(fmt::format(
        "--dp {} --tp {} --pp {} asks for {} ranks, more than one machine should bear; at most {} "
        "work, for example --dp {} --tp {} --pp 1",
        grid.dp(), grid.tp(), grid.pp(), ranks, kMostRanks, std::min(grid.dp(), 8), std::min(grid.tp(), 8)));
  const bool threads_over_gloo = options.world == WorldKind::threads && options.transport == TransportKind::gloo;
  if (threads_over_gloo && ranks > 16)
    throw UsageError(
        fmt::format("--world threads --transport gloo with {} ranks would need more sockets than one process "
                    "may open; try --transport memory, or --world processes",
                    ranks));
  if (options.fault.kind != Fault::Kind::none && (options.fault.rank < 0 || options.fault.rank >= ranks))
    throw UsageError(
        fmt::format("--fault names rank {}, but the ranks of this run are 0 to {}", options.fault.rank, ranks - 1));
  if (options.world == WorldKind::threads && options.fault.kind != Fault::Kind::none &&
      options.fault.kind != Fault::Kind::raise)
    throw UsageError(
        "--fault with --world threads can only throw, because ranks that are threads die together; "
        "use --fault throw:RANK:STEP, or --world processes");
}

// Adds a lesson's own options to the common ones.
void add_own_options(CLI::App& app, const LessonInfo& info) {
  for (const LessonOption& option : info.options) {
    std::visit(
        [&](auto* target) {
          using Target = std::remove_pointer_t<decltype(target)>;
          if constexpr (std::is_same_v<Target, bool>)
            app.add_flag(option.name, *target, option.help)->group("This lesson");
          else if constexpr (std::is_same_v<Target, std::vector<std::string>>)
            app.add_option(option.name, *target, option.help)
                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                ->group("This lesson");
          else
            app.add_option(option.name, *target, option.help)->group("This lesson");
        },
        option.target);
  }
}

}  // namespace

std::string lesson_number(const LessonInfo& info) {
  return info.name.rfind("lesson_", 0) == 0 && info.name.size() > 9 ? info.name.substr(7, 2) : "";
}

Seat Options::seat(int rank) const {
  Seat seat;
  seat.place = grid.place(rank);
  seat.grid = grid;
  seat.threads = threads_per_rank();
  seat.seed = seed;
  seat.precision = precision;
  seat.products = products;
  seat.bug_switched_on = bug;
  return seat;
}

int Options::threads_per_rank() const {
  if (threads > 0) return threads;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, cores / grid.size());
}

bool parse_options(const LessonInfo& info, int argc, char** argv, Options& options) {
  CLI::App app{fmt::format("{}", fmt::join(wrap_text(info.question, 0), "\n")), info.name};
  int dp = options.grid.dp(), tp = options.grid.tp(), pp = options.grid.pp();
  std::string precision = "fp32", products = "eigen", world = "processes", transport = "gloo", seed, fault;
  int threads = 0;
  bool list_bugs = false;
  app.allow_extras();  // named below, in a sentence of ours
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const auto grid_options = {app.add_option("--dp", dp, fmt::format("data-parallel ranks (default {})", dp)),
                             app.add_option("--tp", tp, fmt::format("tensor-parallel ranks (default {})", tp)),
                             app.add_option("--pp", pp, fmt::format("pipeline-parallel ranks (default {})", pp))};
  const auto* threads_option =
      app.add_option("--threads", threads, "OpenMP threads a rank (default: cores / ranks, at least 1)");
  const auto* seed_option = app.add_option("--seed", seed, "seed of the random numbers (default 1)");
  app.add_option("--precision", precision,
                 info.fp32_only ? "fp32: this lesson rounds nothing" : "fp32 or bf16 (default fp32)");
  const auto* products_option =
      app.add_option("--products", products,
                     info.fp32_only ? "nothing: this lesson multiplies no matrices"
                                    : "products of Newton–Schulz: eigen (default), or chain, the same bits everywhere");
  app.add_option("--verbose", options.verbose, "0: the result only, 1: shapes and shards (default), 2: also values");
  const auto* bug_option = app.add_option("--bug", options.bug, "switch on a planted bug and see the check catch it");
  app.add_flag("--list-bugs", list_bugs, "print the planted bugs of this lesson");
  app.add_option("--timeout", options.timeout_seconds,
                 "seconds in which nothing moves before the run is given up (default 30)");
  app.add_option("--world", world, "processes (default) or threads");
  app.add_option("--transport", transport, "gloo (default) or memory; memory needs --world threads");
  const auto* fault_option =
      app.add_option("--fault", fault, "KIND:RANK[:STEP], KIND one of kill exit throw stop hang never-connect");
  const auto* record_option = app.add_option("--record", options.record_file,
                                             "record the run (of two layouts, the first) in this file, as JSON");
  const auto* svg_option =
      app.add_option("--svg", options.svg_path, "draw the run: a picture FILE.svg, or a picture a step into FOLDER/");
  const auto* trace_option = app.add_option("--trace", options.trace_file,
                                            "trace the run (of two layouts, the first) into this file, for Perfetto");
  const auto* trace_folder_option = app.add_option("--trace-per-rank", options.trace_folder,
                                                   "trace the run into this folder, a file a rank, as PyTorch does");
  const auto* trace_events_option =
      app.add_option("--trace-events", options.trace_events,
                     fmt::format("the most events that a trace keeps of a rank (default {})", kTraceEvents));
  add_own_options(app, info);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::string help = app.help();
    while (!help.empty() && help.back() == '\n') help.pop_back();
    print_line(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(parse_error_text(error, info));
  }
  if (!app.remaining().empty())
    throw UsageError(fmt::format("{} is no option of {}; {} --help lists them",
                                 quoted_if_empty(app.remaining().front()), info.name, info.name));
  if (list_bugs) {
    for (const Bug& bug : info.bugs) print_line(fmt::format("{}  {}", bug.name, bug.what));
    return false;
  }

  const int most_ranks = plans_only(info) ? kMostPlannedRanks : kMostRanks;
  require_between("--dp", dp, 1, most_ranks);
  require_between("--tp", tp, 1, most_ranks);
  require_between("--pp", pp, 1, most_ranks);
  if (threads_option->count() > 0) require_between("--threads", threads, 1, kMostThreads);
  if (precision != "fp32" && precision != "bf16")
    throw UsageError(fmt::format("--precision {} is not known; it takes fp32 or bf16", quoted_if_empty(precision)));
  if (precision == "bf16" && info.fp32_only)
    throw UsageError(
        fmt::format("--precision bf16 would change nothing in {}, which moves float32 and multiplies nothing; try it "
                    "with lesson 04, 06 or 09",
                    info.name));
  if (products != "eigen" && products != "chain")
    throw UsageError(fmt::format("--products {} is not known; it takes eigen or chain", quoted_if_empty(products)));
  if (products_option->count() > 0 && info.fp32_only)
    throw UsageError(fmt::format(
        "--products {} would change nothing in {}, which multiplies no matrices; try it with lesson 06 or 09", products,
        info.name));
  if (world != "processes" && world != "threads")
    throw UsageError(fmt::format("--world {} is not known; it takes processes or threads", quoted_if_empty(world)));
  if (transport != "gloo" && transport != "memory")
    throw UsageError(fmt::format("--transport {} is not known; it takes gloo or memory", quoted_if_empty(transport)));

  options.grid.dp(dp).tp(tp).pp(pp);
  options.grid_given = std::any_of(grid_options.begin(), grid_options.end(), [](auto* o) { return o->count() > 0; });
  options.threads = threads;
  options.precision = precision == "bf16" ? Precision::bf16 : Precision::fp32;
  options.products = products == "chain" ? Products::chain : Products::eigen;
  options.world = world == "threads" ? WorldKind::threads : WorldKind::processes;
  options.transport = transport == "memory" ? TransportKind::memory : TransportKind::gloo;
  if (seed_option->count() > 0) options.seed = parse_seed(seed);
  if (fault_option->count() > 0) options.fault = parse_fault(fault);
  if (record_option->count() > 0 && options.record_file.empty())
    throw UsageError("--record '' names no file; try --record run.json");
  if (svg_option->count() > 0 && options.svg_path.empty())
    throw UsageError("--svg '' names no picture; try --svg run.svg, or --svg pictures/ for a picture a step");
  if (trace_option->count() > 0 && options.trace_file.empty())
    throw UsageError("--trace '' names no file; try --trace run.json");
  if (trace_folder_option->count() > 0 && options.trace_folder.empty())
    throw UsageError("--trace-per-rank '' names no folder; try --trace-per-rank traces/");
  if (trace_events_option->count() > 0 && !options.tracing())
    throw UsageError(
        "--trace-events goes with --trace or --trace-per-rank, and neither was given; add --trace run.json");
  if (bug_option->count() > 0) require_known_bug(info, options.bug);
  require_valid(info, options);
  return true;
}

namespace {

std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void require_valid(const LessonInfo& info, const Options& options) {
  if (options.verbose < 0 || options.verbose > 2)
    throw UsageError(fmt::format("--verbose {} is not known; it takes 0, 1 or 2", options.verbose));
  if (!(options.timeout_seconds >= 0.1) || options.timeout_seconds > 86400)
    throw UsageError(
        fmt::format("--timeout {} makes no sense; it takes seconds from 0.1 to 86400", options.timeout_seconds));
  if (options.threads != 0) require_between("--threads", options.threads, 1, kMostThreads);
  require_between("--trace-events", options.trace_events, 1, kMostTraceEvents);
  if (!options.trace_file.empty() &&
      (options.trace_file == options.record_file || options.trace_file == options.svg_path))
    throw UsageError(fmt::format("--trace {0} names a file that {1} is to write as well; give each a file of its own",
                                 options.trace_file, options.trace_file == options.record_file ? "--record" : "--svg"));
  if (!options.trace_folder.empty())
    for (const auto& [option, file] :
         {std::pair("--trace", options.trace_file), std::pair("--record", options.record_file)})
      if (!file.empty() && without_last_slashes(file) == without_last_slashes(options.trace_folder))
        throw UsageError(
            fmt::format("--trace-per-rank {} names the file that {} is to write; give the folder another name",
                        options.trace_folder, option));
  if (options.transport == TransportKind::memory && options.world == WorldKind::processes)
    throw UsageError(
        "--transport memory needs ranks that share their memory; add --world threads, or use --transport gloo");
  if (!options.bug.empty()) require_known_bug(info, options.bug);
  const std::string& svg = options.svg_path;
  const bool picture = svg.size() > 4 && svg.compare(svg.size() - 4, 4, ".svg") == 0;
  if (!svg.empty() && svg.back() != '/' && !picture)
    throw UsageError(
        fmt::format("--svg {0} is neither a picture nor a folder; try --svg {0}.svg, or --svg {0}/ for a picture a "
                    "step",
                    svg));
  require_bearable(info, options);
}

}  // namespace muonwalk::sim
