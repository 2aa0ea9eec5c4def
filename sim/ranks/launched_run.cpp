#include "sim/ranks/launched_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <set>

#include "sim/launch/rendezvous.hpp"
#include "sim/ranks/agent_frames.hpp"
#include "sim/ranks/reports.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;

// How long the kernels of two hosts may be silent at least, however short --timeout is: a network has its moments.
constexpr double kLeastSilence = 2;
// How long who has proven itself may take to say who it is, and what is left to be sent at the end may take.
constexpr double kHelloSeconds = 5;
constexpr milliseconds kLastWords(1000);
// How long an agent that has to end lets the parent end first.
constexpr double kLastToLeave = 5;
// The most characters of another process's sentence that are shown.
constexpr int kMostOfRefusal = 600;

milliseconds in_milliseconds(double seconds) { return milliseconds(static_cast<long>(seconds * 1000)); }

// The ranks that are not there, for a sentence.
std::string missing_text(const std::vector<std::unique_ptr<FramedConnection>>& agents) {
  std::vector<std::size_t> missing;
  for (std::size_t rank = 1; rank < agents.size(); ++rank)
    if (agents[rank] == nullptr) missing.push_back(rank);
  return fmt::format("rank {}", fmt::join(missing, ", rank "));
}

std::unique_ptr<LaunchedRun>& run_of_this_program() {
  static std::unique_ptr<LaunchedRun> run;
  return run;
}

}  // namespace

LaunchedRun* launched_run() { return run_of_this_program().get(); }

int meet_launched(const Options& options, const std::string& program) {
  if (!options.launch) return 1;
  std::unique_ptr<LaunchedRun>& run = run_of_this_program();
  if (run == nullptr) {
    const Launch& launch = *options.launch;
    if (launch.rank == 0) print_error_line(fmt::format("{}: {}", program, launch_text(launch)));
    run = std::make_unique<LaunchedRun>(launch, own_hello(launch, program, options.arguments), options.timeout_seconds,
                                        options.products);
  }
  return run->hosts();
}

void refuse_launched(const std::string& why) {
  if (LaunchedRun* run = launched_run()) run->refuse(why);
}

void end_launched(int code) {
  if (LaunchedRun* run = launched_run()) run->ends_with(code);
}

void LaunchedRun::ends_with(int code) {
  if (!is_agent() && getpid() == self_) tell_end(code);
}

LaunchedRun::LaunchedRun(const Launch& launch, const Hello& own, double timeout_seconds, Products products)
    : own_(own), launcher_(launch.by_hand ? "" : launch.launcher), parent_(getppid()), self_(getpid()) {
  const double silence = std::max(timeout_seconds, kLeastSilence);
  if (own_.rank == 0) {
    meet_agents(launch, timeout_seconds, products);
    for (auto& agent : agents_)
      if (agent != nullptr) agent->end_when_host_is_silent(in_milliseconds(silence));
    return;
  }
  // A little longer than the parent waits, which then says who has not come.
  Joined joined = join_rendezvous(launch, in_milliseconds(timeout_seconds) + milliseconds(500));
  secret_ = joined.secret;
  agents_.push_back(std::make_unique<FramedConnection>(std::move(joined.socket)));
  parent().end_when_host_is_silent(in_milliseconds(silence));
  parent().send(frame_type(AgentFrame::hello), own_.text());
}

LaunchedRun::~LaunchedRun() {
  if (is_agent() || getpid() != self_) return;
  tell_end(3);  // to those who wait for a world that will not come
  // The system closes the connections, when this process has ended (end_agent). Until then they are kept.
  static auto* const kept = new std::vector<std::unique_ptr<FramedConnection>>;
  *kept = std::move(agents_);
}

// The parent's part of the meeting.
void LaunchedRun::meet_agents(const Launch& launch, double timeout_seconds, Products products) {
  struct Unnamed {
    std::unique_ptr<FramedConnection> connection;
    double until;
  };
  agents_.resize(static_cast<std::size_t>(own_.world_size));
  hellos_.resize(agents_.size());
  hellos_[0] = own_;
  if (own_.world_size == 1) {  // it meets nobody, and nobody has to know its secret
    secret_ = random_bytes();
    return;
  }
  Rendezvous rendezvous(launch);
  secret_ = rendezvous.secret();
  std::list<Unnamed> unnamed;
  const double deadline = monotonic_seconds() + timeout_seconds;
  const auto complete = [this] { return std::find(agents_.begin() + 1, agents_.end(), nullptr) == agents_.end(); };
  while (!complete()) {
    std::vector<pollfd> polled;
    rendezvous.listener().add_to(polled);
    for (const Unnamed& each : unnamed) polled.push_back({each.connection->descriptor(), POLLIN, 0});
    poll(polled.data(), polled.size(), 20);
    while (std::optional<OpenFile> socket = rendezvous.listener().take())
      unnamed.push_back({std::make_unique<FramedConnection>(std::move(*socket)), monotonic_seconds() + kHelloSeconds});
    for (auto each = unnamed.begin(); each != unnamed.end();) {
      const std::optional<Frame> frame = each->connection->receive();
      const std::optional<Hello> hello =
          frame && frame->type == frame_type(AgentFrame::hello) ? Hello::from(frame->bytes) : std::nullopt;
      if (frame && !hello) {
        const std::string why =
            frame->type == frame_type(AgentFrame::refused)
                ? visible_name(std::string(frame->bytes.begin(), frame->bytes.end()), kMostOfRefusal)
                : "a process that knows the secret of this run speaks another version of its protocol; install the "
                  "same program on all hosts";
        send_value(*each->connection, AgentFrame::world_over, 2);
        refuse(why);
        throw UsageError(why);
      }
      if (hello) take_in(std::move(each->connection), *hello, products);
      if (hello || each->connection->ended() || monotonic_seconds() > each->until)
        each = unnamed.erase(each);
      else
        ++each;
    }
    for (std::size_t rank = 1; rank < agents_.size(); ++rank) {
      if (agents_[rank] == nullptr) continue;
      agents_[rank]->receive();
      if (agents_[rank]->ended()) {
        const std::string text = fmt::format("rank {} on {} came and left again before all were there: {}", rank,
                                             hellos_[rank].host, agents_[rank]->reason());
        tell_end(3, text);
        throw RunError(text);
      }
    }
    const bool late = monotonic_seconds() > deadline;
    if (!launcher_is_gone() && !late) continue;
    const std::string text =
        late ? fmt::format(
                   "{} never came: the others waited {} s for it in step 'rendezvous', at {} port {}; see that "
                   "all ranks are started, and that every host can reach this one",
                   missing_text(agents_), timeout_seconds, launch.address, rendezvous.listener().port())
             : lost_text();
    tell_end(3, text);
    throw RunError(text);
  }
  rendezvous.close();
  if (const long strangers = rendezvous.listener().turned_away(); strangers > 0)
    print_error_line(fmt::format(
        "{}: {} to the rendezvous did not prove that they know the secret of this run, and were turned away",
        own_.program, strangers == 1 ? "1 connection" : fmt::format("{} connections", strangers)));
  std::set<std::string> hosts;
  for (const Hello& hello : hellos_) hosts.insert(hello.boot + ' ' + hello.host);
  hosts_ = static_cast<int>(hosts.size());
}

void LaunchedRun::take_in(std::unique_ptr<FramedConnection> connection, const Hello& hello, Products products) {
  const std::string refusal = refusal_of(own_, hello, products);
  const auto rank = static_cast<std::size_t>(hello.rank);
  const bool twice = refusal.empty() && agents_[rank] != nullptr;
  if (!refusal.empty() || twice) {
    const std::string why = twice ? fmt::format("rank {} was started twice, on {} and on {}; start each rank once",
                                                rank, hellos_[rank].host, hello.host)
                                  : refusal;
    send_value(*connection, AgentFrame::world_over, 2);
    connection->send(frame_type(AgentFrame::cause), why);
    connection->flush_within(kLastWords);
    refuse(why);
    throw UsageError(why);
  }
  if (const std::string odd = oddity_of(own_, hello); !odd.empty())
    print_error_line(fmt::format("{}: {}", own_.program, odd));
  agents_[rank] = std::move(connection);
  hellos_[rank] = hello;
}

void LaunchedRun::tell_end(int code, const std::string& why) {
  for (auto& agent : agents_) {
    if (agent == nullptr) continue;
    send_value(*agent, AgentFrame::world_over, code);
    if (!why.empty()) agent->send(frame_type(AgentFrame::cause), why);
  }
  for (auto& agent : agents_)
    if (agent != nullptr) agent->flush_within(kLastWords);
}

Secret LaunchedRun::begin_world() {
  const Challenge number = random_bytes();
  for (auto& agent : agents_)
    if (agent != nullptr) send_value(*agent, AgentFrame::begin, number);
  return secret_of_run(secret_, number);
}

Secret LaunchedRun::wait_for_world() {
  while (true) {
    const std::optional<Frame> frame = parent().receive_within(milliseconds(100));
    Challenge number;
    int code = 3;
    if (frame && frame->type == frame_type(AgentFrame::begin) && read_value(*frame, number))
      return secret_of_run(secret_, number);
    if (frame && frame->type == frame_type(AgentFrame::world_over) && read_value(*frame, code) && code != 0)
      end_agent(code, "");
    if (!frame) require_parent([] {});
  }
}

void LaunchedRun::end_world(bool well) {
  if (!well) return tell_end(3);
  for (auto& agent : agents_)
    if (agent != nullptr) send_value(*agent, AgentFrame::world_over, 0);
}

void LaunchedRun::leave_to_parent() {
  for (auto& agent : agents_) agent.reset();
}

bool LaunchedRun::launcher_is_gone() const { return !launcher_.empty() && getppid() != parent_; }

void LaunchedRun::end_agent(int code, const std::string& sentence) {
  // A launcher takes the first process that fails for the run's result, and ends all others: let it be the parent.
  const double until = monotonic_seconds() + kLastToLeave;
  std::string said = sentence;
  for (bool over = false; !over;) {
    over = parent().ended() || launcher_is_gone() || monotonic_seconds() >= until;
    while (const std::optional<Frame> frame = over ? parent().receive() : parent().receive_within(milliseconds(100)))
      if (frame->type == frame_type(AgentFrame::cause) && launcher_.empty() && said.empty())
        said = visible_name(std::string(frame->bytes.begin(), frame->bytes.end()), kMostOfRefusal);
  }
  if (!said.empty()) print_error_line(fmt::format("{}: {}", own_.program, said));
  _exit(code);
}

std::string LaunchedRun::lost_text() const {
  if (launcher_is_gone())
    return is_agent() ? "" : fmt::format("{}, which has started this run, is gone, so the run was ended", launcher_);
  return fmt::format("rank {} on {} has lost the process of rank 0, which leads the run: {}; the rank was ended",
                     own_.rank, own_.host, agents_[0]->reason());
}

}  // namespace muonwalk::sim
