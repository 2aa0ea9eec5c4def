// # Lesson 23 · Two hosts
//
// All ranks so far lived on one machine. Here the step of lesson 09 is taken by ranks on two hosts: each host has a
// network of its own, and one cable joins them. On your machine these are two network namespaces of Linux; on a cluster
// they are two machines, and the program is the same (the page "On your cluster" says how to start it there).
//
// You need to know the full step, lesson 09, and who is in which group, lesson 01.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>

#include "lessons/lesson_23_two_hosts/link_table.hpp"
#include "sim/classroom/lesson.hpp"
#include "sim/classroom/shown_phases.hpp"
#include "sim/ranks/private_network.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Of the groups that a rank belongs to, one can stay on its host and one has to cross the cable. Rank order puts a TP
// group on one host, as tp varies fastest:
//
//     host A    rank 0  dp 0 tp 0  ── tp ──  rank 1  dp 0 tp 1
//                  │                            │
//                  dp                           dp          ← the cable
//                  │                            │
//     host B    rank 2  dp 1 tp 0  ── tp ──  rank 3  dp 1 tp 1
//
// `--placement tp-across` puts ranks 0 and 2 on host A instead. Then dp stays at home and tp crosses.

// The cable is slower than the memory of a host, and longer. Whether that matters depends on two numbers of a step: how
// many bytes cross, and how often somebody waits for them. Both are in the plan of the step, before anything runs.

// What you asked for with options of this lesson.
std::string placement = "tp-inside";
std::string own_link;
bool vanish = false;

// So many optimizer steps are taken.
constexpr int kSteps = 5;

// What one rank holds.
struct Local {
  Layout layout;    // who owns what
  MuonState state;  // weights: whole buckets; momentum: my DP shards
  int step = 0;     // optimizer steps done
  Matrix link;      // 1 × 1: 1 where the kernel's counter of the cable fits to the ledger, else 0
};

// The small matrices of lesson 09, and random gradients for them. Each rank makes only those that it needs.
std::unique_ptr<Training> data;

// The layout knows of dp and tp, and not of hosts.
Layout layout_of(const RankInfo& rank) { return plan_layout(data->parameters(), rank.grid); }
MuonSettings settings_of(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }

// On which host each rank lives, 0 for A and 1 for B: each has half of the ranks, in rank order or, with `tp-across`,
// by their coordinate in tp. What has no halves is refused.
std::vector<int> hosts_of(const Grid& grid) {
  const bool across = placement == "tp-across";
  if (!across && placement != "tp-inside")
    throw UsageError(fmt::format("--placement {} is not known; it takes tp-inside or tp-across", as_typed(placement)));
  if (grid.pp() > 1)
    throw UsageError(fmt::format("--pp {} has no place on two hosts, which share dp and tp; try lesson 09", grid.pp()));
  const int shared = across ? grid.tp() : grid.size();
  if (shared % 2 != 0)
    throw UsageError(
        fmt::format("{} has {} {} with --placement {}, and two hosts can't have one half each; try --dp 2 --tp 2",
                    grid.text(), shared, across ? "in each TP group" : "ranks", placement));
  std::vector<int> hosts;
  for (int rank = 0; rank < grid.size(); ++rank) hosts.push_back(2 * (across ? grid.place(rank).tp : rank) / shared);
  return hosts;
}
int host_of(const RankInfo& rank) { return hosts_of(rank.grid)[static_cast<std::size_t>(rank.place.rank)]; }

// ## The reference
//
// One process, whole matrices, no hosts: that of lesson 09. The parent computes it, on your machine or on
// the host of rank 0. Where ranks live must not change a bit.
std::unique_ptr<ReferenceRun> reference;

std::vector<NamedMatrix> expected_slices(const RankInfo& rank, int step) {
  return reference->slices_after(step, rank.grid, rank.place);
}
std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.state.weights, rank.place.tp);
}

// ## What crosses
//
// The plan of a step lists every call of every rank ([muon_plan]). Whatever a rank sends to one on the other host
// crosses the cable. In an all-gather it sends its own elements to each other rank of its group, in a reduce-scatter
// each other rank its piece: as many as that rank gets out.
std::int64_t bytes_to(const Call& own, const Call& of_peer) {
  const Index elements = own.kind == CollectiveKind::all_gather ? own.elements_in : of_peer.elements_out;
  return elements * static_cast<std::int64_t>(element_size(own.type));
}

// Now add that up, phase by phase. No rank has to run for it, so we can ask for the real sizes as well as for the small
// ones. The n-th call of a group is the same call on all of its ranks.
LinkUse use_of(const std::vector<Parameter>& parameters, const RankInfo& info, const LayoutOptions& options = {}) {
  const Layout layout = plan_layout(parameters, info.grid, options);
  const std::vector<int> hosts = hosts_of(info.grid);
  LinkUse use;
  std::vector<std::map<std::string, std::vector<PlannedCall>>> calls;  // [rank][group]
  for (int rank = 0; rank < info.grid.size(); ++rank) {
    const Plan plan = muon_plan(layout, info.grid.place(rank), settings_of(info));
    calls.emplace_back();
    for (const PlannedCall& each : calls_of(plan)) calls.back()[each.call.group].push_back(each);
    for (const Operation& operation : plan.operations)
      if (const Work* work = std::get_if<Work>(&operation)) use.of(work->phase);  // in the order of a step
  }
  for (int rank = 0; rank < info.grid.size(); ++rank) {
    const auto me = static_cast<std::size_t>(rank);
    std::map<Phase, int> waits;
    for (const auto& [group, own] : calls[me])
      for (std::size_t n = 0; n < own.size(); ++n) {
        bool crosses = false;
        for (const int peer : info.grid.group(group, rank).ranks) {
          const auto other = static_cast<std::size_t>(peer);
          if (hosts[other] == hosts[me]) continue;
          crosses = true;
          use.of(own[n].phase).bytes_out[hosts[me]] += bytes_to(own[n].call, calls[other].at(group).at(n).call);
        }
        if (crosses) ++waits[own[n].phase];
      }
    for (const auto& [phase, count] : waits) use.of(phase).waits = std::max(use.of(phase).waits, count);
  }
  return use;
}

// ## The steps
//
// Lay out the parameters, as in lesson 09: one bucket, of which each DP rank owns an equal part, and the TP slices of
// all matrices in it.
void start(Rank& rank, Local& local) {
  local.layout = layout_of(rank);
  local.state = {first_buckets(local.layout, *data, rank.place.tp), zero_shards(local.layout, rank.place.dp)};
}

// Everybody says where it lives. A rank learns nothing of the other host but the addresses of those that it talks to.
void say_host(Rank& rank, Local&) { rank.say(std::string("on host ") + "AB"[host_of(rank)]); }

// The gradients that this rank computed itself.
//
// The planted bug `lost_host` loses those of host B, as happens to a sum that is made within each host only.
Buckets own_gradients(const Rank& rank, const Local& local) {
  std::vector<Matrix> slices = data->own_gradients(local.step, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  if (rank.bug("lost_host") && host_of(rank) == 1)
    for (Matrix& slice : slices) slice = Matrix(slice.rows(), slice.cols());
  return pack_slices(local.layout, slices);
}

// One optimizer step: that of lesson 09 ([full_step]). Nothing in it knows of hosts.
//
// The planted bug `stale_host` lets host B go on with its old weights.
void optimizer_step(Rank& rank, Local& local) {
  const Buckets gradients = own_gradients(rank, local);
  const Buckets before = rank.bug("stale_host") && host_of(rank) == 1 ? local.state.weights : Buckets();
  rank.memory().restart_peak();           // what is counted from here on is the step itself
  ShownPhases shown(rank, local.layout);  // told of each phase: for its time, and for the player
  const StepContext context{local.layout, rank.place, rank.dp(), rank.tp(), std::ref(shown)};
  full_step(context, settings_of(rank), gradients, local.state);
  if (!before.empty()) local.state.weights = before;
  ++local.step;
}

// ### The cable, asked
//
// The kernel counts every byte that goes through an interface, with all headers. So what this host has sent must be at
// least what the plan says, and not much more: headers of Ethernet, IP and TCP, receipts for what came from the other
// side, Gloo's own words, and the first meeting of the ranks. The exact number differs from run to run, so it is on
// standard error.
//
// Look for what is *not* there: the bytes of the group that stays at home never reach the cable. Run it once more with
// `--placement tp-across`: other bytes cross, and the count follows the plan again.
void ask_the_cable(Rank& rank, Local& local) {
  local.link = Matrix(1, 1);
  local.link(0, 0) = 1;
  const int host = host_of(rank);
  const std::int64_t planned = kSteps * use_of(data->parameters(), rank).total().bytes_out[host];
  const std::optional<LinkBytes> counted = link_bytes(planned);
  if (!counted) return;  // threads, or a system that has no such cable: there is nobody to ask

  // Half as much again, and what it costs to meet.
  const std::int64_t most = planned + planned / 2 + 64 * 1024;
  local.link(0, 0) = counted->sent >= planned && counted->sent <= most ? 1.0f : 0.0f;
  const std::vector<int> hosts = hosts_of(rank.grid);
  if (std::find(hosts.begin(), hosts.end(), host) - hosts.begin() == rank.rank())  // one of them speaks for its host
    print_error_line(fmt::format("host {}: planned for the other host {} B, counted by the kernel {} B", "AB"[host],
                                 number_text(planned), number_text(counted->sent)));
}

// What every rank should have found. Where there is no cable, because ranks are fibers or two addresses of one
// loopback stand in for two hosts, nothing was asked, and nothing is found wrong.
Matrix it_fits(const RankInfo&) {
  Matrix link(1, 1);
  link(0, 0) = 1;
  return link;
}

// ### A host that is gone
//
// With `--vanish`, host B is gone in the middle: its end of the cable is pulled out, and its ranks say no more. No
// connection is closed, so nobody is told: for TCP, a host that is gone and one that has nothing to say look the same.
// The ranks on host A wait for bytes that never come. After `--timeout` seconds the run ends with exit code 3, and no
// process is left. Look at the sentence: it names the ranks that were not heard of, and the step. On a cluster it names
// the host as well, and there the connection between the launched processes is watched by the kernel, which asks the
// other host's kernel every now and then whether it is still there.
void vanish_with_host_b(Rank& rank, Local&) {
  rank.tp().barrier();  // so that everybody is here
  rank.dp().barrier();
  if (host_of(rank) == 0) return;
  cut_host_link();
  while (true) pause();
}

// All steps, each with its check, as in lesson 09: ranks do not wait for the process that compares. Host B vanishes in
// the middle, if it was asked to.
void take_steps(Lesson<Local>& lesson) {
  for (int step = 1; step <= kSteps; ++step) {
    if (vanish && step == 3) lesson.quiet_step("host B vanishes", vanish_with_host_b);
    lesson.quiet_step(fmt::format("optimizer step {}", step), optimizer_step);
    lesson.quiet_check(fmt::format("weights after step {}", step), held_slices,
                       [step](const RankInfo& rank) { return expected_slices(rank, step); });
  }
  lesson.sum_up_checks(fmt::format("weights after steps 1–{}", kSteps));
}

// ## The cost
//
// The plan again, as in lesson 09: where the ranks live changes nothing of what they send, only the way that it takes.
// The line "kernel" in that table is the count of the ranks' own connections, of those that stay on a host as well; the
// cable's count is another one, made by another part of the kernel, for all connections of a host together.
Prediction predict(const RankInfo& rank) {
  const Plan plan = muon_plan(layout_of(rank), rank.place, settings_of(rank));
  Prediction prediction;
  prediction.ledger.add(ledger_of(plan), kSteps);
  prediction.peak_elements = peak_elements(plan);
  return prediction;
}

// ## Two links
//
// What a step takes at least on a link, by formula: each call that crosses waits for the delay once, and all bytes of a
// host share the rate. A link of 1 Gbit/s has little delay and little rate; one of 10 ms, say to another city, may have
// any rate and still makes everybody wait. Both columns are predicted; measured times of your machine's cable are on
// standard error.
//
// Why "at least"? Collectives here talk directly, so a call that crosses needs one delay if nobody is late and nothing
// is asked back. Gloo does ask back: it announces a long message before it sends it. And a link that was idle starts
// slowly. So a real step takes longer; none is faster.
//
// The first table takes one step apart, at the real sizes of lesson 09. Compare the two columns: where the bytes are
// many, the rate decides, and where the calls are many, the delay.
std::string phases_on_links(const RankInfo& rank, const std::vector<Link>& links) {
  return link_table("a step at real sizes", {{placement, use_of(proof_of_concept_parameters(), rank)}}, links, true);
}

// The second one puts ways to lay out the same step side by side: few large calls, many small ones, or matrices with
// one owner each.
//
// One bucket means three calls over dp for everything. Buckets of 50,000 elements mean three for each of them, with the
// same bytes. With an owner for each matrix there is no DP gather, as nobody needs the shards of others.
std::string strategies_on_links(const RankInfo& rank, const std::vector<Link>& links) {
  LayoutOptions buckets, matrices;
  buckets.bucket_capacity = 50000;
  matrices.ownership = parse_ownership("matrices");
  const std::vector<Parameter> parameters = proof_of_concept_parameters();
  return link_table("the same, laid out otherwise",
                    {{"one bucket", use_of(parameters, rank)},
                     {"buckets of 50,000 elements", use_of(parameters, rank, buckets)},
                     {"each matrix has one owner in dp", use_of(parameters, rank, matrices)}},
                    links, false);
}

// Before any rank is started: refuse what can't work, such as a rank too many for two hosts, or a link that is not one,
// and make what all ranks share: weights, gradients, and the reference that knows nothing of hosts. A lesson that finds
// out later would have to end ranks that are already running.
void prepare(const RankInfo& rank) {
  hosts_of(rank.grid);
  if (!own_link.empty()) parse_link(own_link);
  data = std::make_unique<RandomTraining>(small_parameters(), kSteps, rank.seed);
  layout_of(rank);
  reference = std::make_unique<ReferenceRun>(*data, std::make_unique<Muon>(settings_of(rank)));
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_23_two_hosts";
  info.title = "Two hosts";
  info.question = "what changes when the ranks of a step live on two hosts, and which of its bytes cross the cable?";
  info.bugs = {{"lost_host", "the gradients that host B computed never arrive"},
               {"stale_host", "host B goes on with the weights from before the step"}};
  info.also_try = {"--placement tp-across", "--link 100mbit,2ms", "--vanish --timeout 2"};
  info.options = {
      {"--placement", "tp-inside (default): a TP group lives on one host;\ntp-across: a DP group does", &placement},
      {"--link", "a rate, a delay or both, for a column of your own:\n100mbit,2ms", &own_link},
      {"--vanish", "host B is gone in the middle of the run", &vanish}};

  // Where the ranks live is the only line that lesson 09 does not have.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(prepare);
  lesson.set_up().host_of_rank = hosts_of(lesson.rank_info().grid);
  lesson.quiet_step("lay out the parameters", start);
  lesson.step("who lives where", say_host);
  take_steps(lesson);
  lesson.quiet_step("ask the cable", ask_the_cable);

  // The cable's check compares one number per rank: whether the kernel's count of its host fits to the plan.
  lesson.check("the cable's count fits the plan", &Local::link, it_fits);
  lesson.cost(predict);

  // What crosses in each of the small steps, and then the real sizes on two links, and on one of yours.
  std::vector<Link> links = {parse_link("1gbit", "1 Gbit/s"), parse_link("10ms", "10 ms")};
  if (!own_link.empty()) links.push_back(parse_link(own_link));
  lesson.say("waits: calls that cross the cable, and wait for its delay; tp-inside: a TP group has one host");
  lesson.say(
      link_table("each of these steps", {{placement, use_of(data->parameters(), lesson.rank_info())}}, {}, true));
  lesson.say(phases_on_links(lesson.rank_info(), links) + '\n' + strategies_on_links(lesson.rank_info(), links));
  lesson.timings();

  // ## Exercises
  //
  // 1. `--placement tp-across` sends fewer bytes over the cable than `tp-inside`. Why do people keep TP on one host all
  //    the same? Hint: what else does a model do with its TP groups? Answer: This is only the optimizer, which gathers
  //    each matrix once per step. The forward and the backward pass of a model add up activations over tp in every
  //    layer, for every micro-batch, and wait for it each time. Those are many more bytes, and many more waits.
  // 2. At 10 ms, a step in buckets of 50,000 elements takes longer than one in a single bucket, though both send the
  //    same bytes. What would have to change for small buckets to be worth it? Hint: who could do what while bytes are
  //    on their way? Answer: Here every call is waited for before the next one begins. If the calls of several
  //    buckets were on their way at the same time, the delays would overlap, and the link would be busy while a rank
  //    computes.
  // 3. With `--link 8mbit` and with `--link 80mbit`, which of the three layouts is the best, and does that depend on
  //    the rate? Hint: which columns of the last table have a rate in them? Answer: The one with an owner for each
  //    matrix. It sends a third less, at any rate, as it does without the DP gather. And it waits least often, so no
  //    delay changes that either.
  return lesson.answer(
      "no bit changes, and the ledger does not either: the same ranks send the same bytes. What changes is the way "
      "that they take. The groups that stay on a host never touch the cable, and the kernel's counters show it; those "
      "that cross it share its rate, and pay its delay once for each call that they wait for. So a slow link asks for "
      "fewer bytes, and a long one for fewer calls: that is what the layout decides, and the placement of the groups "
      "decides which of them have to cross at all.");
}
