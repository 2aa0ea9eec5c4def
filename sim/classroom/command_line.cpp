#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "sim/fibers/fibers.hpp"
#include "sim/ranks/launched_process.hpp"
#include "sim/ranks/options.hpp"
#include "sim/terminal/reading_program.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

const Words<Fault::Kind> kFaultKinds = {{"kill", Fault::Kind::kill},
                                        {"exit", Fault::Kind::exit},
                                        {"throw", Fault::Kind::raise},
                                        {"stop", Fault::Kind::stop},
                                        {"hang", Fault::Kind::hang},
                                        {"spin", Fault::Kind::spin},
                                        {"never-connect", Fault::Kind::never_connect}};

template <class Value>
std::string listed(const Words<Value>& words, const char* between) {
  std::string list;
  for (const auto& [word, value] : words) list += (list.empty() ? "" : between) + word;
  return list;
}

// "kill:3:2" → rank 3 is killed in step 2; the step may be left out.
Fault parse_fault(const std::string& text) {
  std::vector<std::string> words = split_at(text, ':');
  words.resize(std::max<std::size_t>(words.size(), 2));
  const auto kind = std::find_if(kFaultKinds.begin(), kFaultKinds.end(), [&](auto& k) { return k.first == words[0]; });
  const std::optional<int> rank = number_from<int>(words[1]);
  const std::optional<int> step = words.size() > 2 ? number_from<int>(words[2]) : 1;
  if (kind == kFaultKinds.end() || !rank || !step || *step < 0 || words.size() > 3)
    throw UsageError(
        fmt::format("--fault {} names no fault; it takes KIND:RANK or KIND:RANK:STEP with KIND one of {} and STEP 1 "
                    "or later, or 0 for the rendezvous, for example --fault kill:3:2",
                    as_typed(text), listed(kFaultKinds, ", ")));
  return {kind->second, *rank, *step};
}

// What CLI11 is to refuse. It puts the option's name before the words that a validator returns.

std::function<std::string(const std::string&)> whole_number(int least, int most) {
  return [=](const std::string& text) -> std::string {
    if (text.empty()) return fmt::format("'' is not a number; it takes a whole number of at least {}", least);
    const std::optional<int> number = number_from<int>(text);
    return number ? range_complaint(*number, least, most) : "";  // what is not a number can't be converted
  };
}

std::string seed_complaint(const std::string& text) {
  if (number_from<std::uint64_t>(text)) return "";
  return fmt::format("{} is not a seed; it takes a whole number from 0 to {}", as_typed(text),
                     std::numeric_limits<std::uint64_t>::max());
}

// Adds an option that takes one of these words, which becomes the number of the value that it stands for.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const char* name, Value& target, const std::string& help, Words<Value> words) {
  const auto to_number = [words = std::move(words)](std::string& text) -> std::string {
    const auto known = std::find_if(words.begin(), words.end(), [&](auto& word) { return word.first == text; });
    if (known == words.end()) return fmt::format("{} is not known; it takes {}", as_typed(text), listed(words, " or "));
    text = fmt::format("{}", static_cast<int>(known->second));
    return "";
  };
  return app.add_option(name, target, help)->transform(CLI::Validator(to_number, ""))->type_name("TEXT");
}

// Adds a lesson's own options to the common ones.
void add_own_options(CLI::App& app, const LessonInfo& info) {
  app.option_defaults()->group("This lesson");
  for (const LessonOption& option : info.options) {
    const auto add = [&](auto* target) {
      using Target = std::remove_pointer_t<decltype(target)>;
      if constexpr (std::is_same_v<Target, bool>)
        app.add_flag(option.name, *target, option.help);
      else if constexpr (std::is_same_v<Target, std::vector<std::string>>)
        app.add_option(option.name, *target, option.help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      else
        app.add_option(option.name, *target, option.help);
    };
    std::visit(add, option.target);
  }
}

}  // namespace

bool parse_options(const LessonInfo& info, int argc, char** argv, Options& options) {
  CLI::App app{fmt::format("{}", fmt::join(wrap_text(info.question, 0), "\n")), info.name};
  int dp = options.grid.dp(), tp = options.grid.tp(), pp = options.grid.pp();
  bool list_bugs = false;
  options.products = info.products;
  app.allow_extras();  // named below, in a sentence of ours
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const auto sizes = {app.add_option("--dp", dp, fmt::format("data-parallel ranks (default {})", dp)),
                      app.add_option("--tp", tp, fmt::format("tensor-parallel ranks (default {})", tp)),
                      app.add_option("--pp", pp, fmt::format("pipeline-parallel ranks (default {})", pp))};
  const int most_ranks = may_plan_only(info) ? kMostPlannedRanks : kMostFibers;
  for (CLI::Option* size : sizes) size->check(whole_number(1, most_ranks));
  app.add_option("--threads", options.threads, "OpenMP threads per rank (default: cores / ranks, at least 1)")
      ->check(whole_number(1, kMostThreads));
  app.add_option("--seed", options.seed, "seed of the random numbers (default 1)")->check(seed_complaint);
  add_choice(app, "--precision", options.precision,
             info.fp32_only ? "fp32: this lesson rounds nothing" : "fp32 or bf16 (default fp32)",
             {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}});
  const auto* products = add_choice(
      app, "--products", options.products,
      info.fp32_only                     ? "nothing: this lesson multiplies no matrices"
      : info.products == Products::chain ? "what multiplies in Newton–Schulz: chain (default), with the same\n"
                                           "bits on any processor and any GPU, tiles, on any processor, or eigen"
                                         : "what multiplies in Newton–Schulz: eigen (default), or chain or\n"
                                           "tiles, which give the same bits on any processor",
      {{"eigen", Products::eigen}, {"chain", Products::chain}, {"tiles", Products::tiles}});
  app.add_option("--verbose", options.verbose,
                 "0: the result only, 1: shapes and shards (default), 2: also\nvalues and details");
  auto* bug = app.add_option("--bug", options.bug, "switch on a planted bug and see the check catch it");
  app.add_flag("--list-bugs", list_bugs, "print the planted bugs of this lesson");
  app.add_option("--timeout", options.timeout_seconds,
                 fmt::format("seconds in which nothing moves before a run is given up (default 30);\n"
                             "a rank that does nothing but compute may take {} times as long",
                             kComputeTimeouts));
  add_choice(app, "--world", options.world,
             "processes (default), or fibers, which take turns on one thread\nand talk through memory; of these "
             "there may be more",
             {{"processes", WorldKind::processes}, {"fibers", WorldKind::fibers}});
  app.add_option("--turns", options.turns,
                 "with fibers, the seed of the order in which they take turns\n(default: they go round)");
  const auto* transport =
      add_choice(app, "--transport", options.transport, "gloo (default), or nccl, which needs a GPU per rank",
                 {{"gloo", TransportKind::gloo}, {"nccl", TransportKind::nccl}});
  const auto* network = add_choice(app, "--network", options.network,
                                   "private (default): processes get a network that nobody else can\n"
                                   "reach, where the system allows it; shared: this machine's loopback",
                                   {{"private", NetworkKind::own}, {"shared", NetworkKind::shared}});
  app.add_option_function<std::string>(
         "--fault", [&](const std::string& text) { options.fault = parse_fault(text); },
         "KIND:RANK[:STEP], KIND one of\n" + listed(kFaultKinds, " "))
      ->check([](const std::string& text) {
        if (text.empty()) parse_fault(text);  // which says what it takes
        return std::string();
      });
  app.add_option("--record", options.record_file, "record the run (of two layouts, the first) in this file, as JSON");
  app.add_option("--trace", options.trace_file,
                 "trace the run (of two layouts, the first) into this file, for Perfetto");
  const auto* trace_events =
      app.add_option("--trace-events", options.trace_events,
                     fmt::format("the most events that a trace keeps of a rank (default {})", kTraceEvents));
  LaunchOptions launch;
  app.option_defaults()->group("Started as several processes, by hand or by a launcher (mpirun, srun, torchrun)");
  app.add_option("--rank", launch.rank, "by hand: which of them this process is, from 0");
  app.add_option("--world-size", launch.world_size, "by hand: how many there are");
  app.add_option("--rendezvous", launch.rendezvous,
                 "HOST:PORT where they meet: the host of rank 0, and a free port there");
  app.add_option("--interface", launch.interface, "the network interface that they talk over, or its address");
  app.add_option("--secret-file", launch.secret_file, "a file with the secret that they know each other by");
  add_own_options(app, info);
  bug->check([&info](const std::string& name) {
    if (name.empty()) require_known_bug(info, name);  // which lists them
    return std::string();
  });
  if (!parse_command_line(app, argc, argv)) return false;
  if (!app.remaining().empty())
    throw UsageError(fmt::format("{} is not an option of {}; {} --help lists them", as_typed(app.remaining().front()),
                                 info.name, info.name));
  if (list_bugs) {
    for (const Bug& known : info.bugs) print_line(fmt::format("{}  {}", known.name, known.what));
    return false;
  }
  if (options.precision == Precision::bf16 && info.fp32_only)
    throw UsageError(
        fmt::format("--precision bf16 would change nothing in {}, which moves float32 and multiplies nothing; try it "
                    "with lesson 04, 06 or 09",
                    info.name));
  if (options.products == Products::eigen)
    eigen_code();  // refuses a MUONWALK_EIGEN that can't be run
  else
    chain_kernel();  // and this a MUONWALK_CHAIN
  if (products->count() > 0 && info.fp32_only)
    throw UsageError(fmt::format(
        "--products {} would change nothing in {}, which multiplies no matrices; try it with lesson 06 or 09",
        products_name(options.products), info.name));
  if (trace_events->count() > 0 && !options.tracing())
    throw UsageError("--trace-events goes with --trace, which was not given; add --trace run.json");
  options.grid.dp(dp).tp(tp).pp(pp);
  if (options.world == WorldKind::fibers && transport->count() > 0)
    throw UsageError(
        fmt::format("--world fibers keeps all ranks in one process, where they talk through memory; leave "
                    "--transport {} out",
                    transport_name(options.transport)));
  options.arguments.assign(argv, argv + argc);
  if (!plans_only(info)) options.launch = launch_of_this_process(launch);
  if (options.launch && network->count() > 0 && options.network == NetworkKind::own)
    throw UsageError(fmt::format(
        "--network private is for ranks that this program starts itself, but this one is rank {} of {} ({}); "
        "leave it out",
        options.launch->rank, options.launch->world_size, options.launch->told_by));
  options.grid_given = std::any_of(sizes.begin(), sizes.end(), [](auto* size) { return size->count() > 0; });
  if (bug->count() > 0) require_known_bug(info, options.bug);
  require_valid(info, options);
  return true;
}

}  // namespace muonwalk::sim
