#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "sim/cluster/interrupt.hpp"
#include "sim/cluster/private_network.hpp"
#include "sim/cluster/rank_process.hpp"
#include "sim/cluster/record_stream.hpp"
#include "sim/cluster/standstill.hpp"
#include "sim/cluster/world.hpp"
#include "src/errors.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Ranks that are processes leave timeouts to the parent, which sees all of them and can name the one that is to blame.
constexpr std::chrono::milliseconds kRanksWait = std::chrono::hours(24);
// How long the parent listens after the first sign of a failure, so that the cause is told from its consequences.
constexpr double kGraceSeconds = 0.3;
// How much longer, while all who failed did so because they lost another rank: the cause must be on its way.
constexpr double kCauseSeconds = 3;
// How long ranks must have stood still for it to be certain that those that wait for each other will never go on.
constexpr double kHopelessSeconds = 1;
// How long ranks that are not needed any more may take to leave by themselves, all together.
constexpr double kLeaveSeconds = 5;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe open_pipe() {
  int ends[2];
  if (pipe(ends) != 0)
    throw RunError(
        fmt::format("no pipe to the ranks could be opened: {}; allow more open files (ulimit -n) or ask for fewer "
                    "ranks",
                    std::strerror(errno)));
  for (int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return {ends[0], ends[1]};
}

// A process that is forked from one with threads has the memory of them all and only one of them: locks that the others
// hold are held forever, and OpenMP waits for a team that does not exist.
void require_no_other_threads() {
#ifdef __linux__
  std::error_code unreadable;
  std::ptrdiff_t threads = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/task", unreadable), end; !unreadable && entry != end;
       ++entry)
    ++threads;
  if (threads > 1)
    throw RunError(
        fmt::format("ranks that are processes have to be started before this program has threads, and it has {}; "
                    "start them earlier, or use --world threads",
                    threads));
#endif
}

// The ranks' side of the world: one rank in its own process.
class RankSide {
 public:
  RankSide(const Options& options, int rank, int records, int goodbye, Board& board, ProgressBoard& progress)
      : rank_(rank), records_(records), goodbye_(goodbye), progress_(&progress) {
    speaking = this;
    GlooDevice::on_overrun([](const char* sentence) { speaking->end_with(sentence); });
    guarded([&] {
      have_fault(options.fault, rank, 0);
      progress_->slot(rank).stage = ProgressSlot::Stage::connecting;
      auto groups = connect_over_gloo(options, rank, board, progress, kRanksWait);
      session_.emplace(options, rank, std::move(groups), progress);
      progress_->slot(rank).stage = ProgressSlot::Stage::running;
    });
    send(EndOfStep());
  }

  void run(int step, const std::string& title, const RankBody& body) {
    guarded([&] {
      for (Record& record : session_->run(step, title, body)) tell(record);
    });
    send(EndOfStep());
  }

  // Waits until the parent needs nobody any more. Leaving without destroying the Gloo contexts saves 10 ms a peer.
  [[noreturn]] void leave() {
    progress_->slot(rank_).stage = ProgressSlot::Stage::finished;
    char nothing;
    while (read(goodbye_, &nothing, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }

 private:
  void tell(Record& record) {
    if (!records_.write(record)) _exit(3);  // the parent is gone, and nobody would hear a reason
  }
  void send(Record last) {
    tell(last);
    if (!records_.flush()) _exit(3);
  }

  // Tells the parent of an exception before the sockets close, so that it is known as the cause.
  template <class Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (...) {
      send(failure_now());
      _exit(3);
    }
  }

  // Called on another thread, while this one connects and tells nothing.
  [[noreturn]] void end_with(const std::string& sentence) {
    send(Failed{Failed::Kind::stranger, sentence, monotonic_seconds()});
    _exit(3);
  }

  static inline RankSide* speaking = nullptr;  // the one rank of this process
  int rank_;
  RecordWriter records_;
  int goodbye_;
  ProgressBoard* progress_;
  std::optional<RankSession> session_;
};

class ProcessWorld : public World {
 public:
  explicit ProcessWorld(const Options& options)
      : options_(options),
        board_(board_for(options)),
        progress_(std::make_unique<ProgressBoard>(options.grid.size())),
        goodbye_(open_pipe()) {
    std::fflush(nullptr);  // what is still in a buffer would be printed once by every process
    try {
      require_no_other_threads();
      if (options.network == NetworkKind::own) network_.emplace();
      for (int rank = 0; rank < options.grid.size() && !in_rank_; ++rank) fork_rank(rank);
      network_.reset();  // it lasts as long as the ranks that are in it
      if (in_rank_) return;
      close(goodbye_.read_end);
      goodbye_.read_end = -1;
      wait_for_run(runs_, "rendezvous");
    } catch (...) {  // the destructor of an object that was never whole does not run
      end_ranks();
      close_goodbye();
      throw;
    }
    for (RankProcess& rank : ranks_) rank.take_step(runs_);
  }

  ~ProcessWorld() override {
    if (in_rank_) in_rank_->leave();
    close_goodbye();
    const double deadline = monotonic_seconds() + kLeaveSeconds;
    for (RankProcess& rank : ranks_) rank.wait_for_end(deadline - monotonic_seconds());
    end_ranks();
  }

  bool reporting() const override { return !in_rank_; }

  void finish() override {
    close_goodbye();
    const double deadline = monotonic_seconds() + kLeaveSeconds;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      while (ranks_[r].pipe() >= 0 && monotonic_seconds() < deadline) wait_for_news();
      const bool ended = ranks_[r].wait_for_end(deadline - monotonic_seconds());
      const bool astray = !ended || ranks_[r].failure() || ranks_[r].finished(runs_ + 1);
      if (!astray && progress_->slot(static_cast<int>(r)).stage == ProgressSlot::Stage::finished) continue;
      if (!astray) give_up(cause_of_loss());
      give_up(fmt::format(
          "rank {} went on to '{}' when this program had come to its end: something that only this program knows, such "
          "as the outcome of a check, decided what a rank does",
          r, progress_->step(static_cast<int>(r))));
    }
  }

  StepRecords run(const std::string& title, const RankBody& body, int step) override {
    ++runs_;
    if (in_rank_) {
      in_rank_->run(step, title, body);
      return {};
    }
    wait_for_run(runs_, title);
    StepRecords records;
    for (RankProcess& rank : ranks_) records.push_back(rank.take_step(runs_));
    return records;
  }

 private:
  void fork_rank(int rank) {
    const Pipe records = open_pipe();
    const InterruptHold hold;
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
      close(records.read_end);
      close(records.write_end);
      throw RunError(
          fmt::format("rank {} could not be started: the system allows no further process; allow more (ulimit -u) or "
                      "ask for fewer ranks",
                      rank));
    }
    if (pid > 0) {
      close(records.write_end);
      fcntl(records.read_end, F_SETFL, O_NONBLOCK);
#ifdef F_SETPIPE_SZ
      fcntl(records.read_end, F_SETPIPE_SZ, 1 << 20);
#endif
      register_rank_process(pid);
      ranks_.emplace_back(pid, records.read_end);
      return;
    }
    leave_interrupts_to_the_parent();
    signal(SIGPIPE, SIG_IGN);
    if (network_ && network_->exists() && !network_->enter()) _exit(3);  // another process could, a moment ago
#ifdef __linux__  // elsewhere a rank notices the parent's end when it next writes to its pipe
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(3);  // it died before we asked to be told
    for (RankProcess& earlier : ranks_) earlier.leave_to_parent();
    ranks_.clear();
    close(records.read_end);
    close(goodbye_.write_end);
    in_rank_.emplace(options_, rank, records.write_end, goodbye_.read_end, *board_, *progress_);
  }

  // Returns when every rank has finished run number `run`; throws when one can't any more. The rendezvous is the first
  // run.
  void wait_for_run(int run, const std::string& title) {
    AwakeClock clock;
    StandstillWatch standstill;
    ComputeWatch computing(*progress_, options_.threads_per_rank());
    stopped_since_.assign(ranks_.size(), -1);
    double first_sign = -1;
    while (true) {
      wait_for_news();
      bool all = true, all_lost = true, some_lost = false, cause_known = false;
      for (RankProcess& rank : ranks_) {
        if (rank.finished(run)) continue;
        all = false;
        some_lost = some_lost || rank.lost();
        all_lost = all_lost && rank.lost();
        cause_known = cause_known || (rank.lost() && !rank.lost_peer());
      }
      if (all) return;
      const double now = clock.seconds();
      if (some_lost && first_sign < 0) first_sign = now;
      if (some_lost && (all_lost || now - first_sign > (cause_known ? kGraceSeconds : kCauseSeconds)))
        give_up(cause_of_loss());
      check_stopped(run, now);
      const double still = standstill.seconds(ranks_, now);
      if (still >= options_.timeout_seconds)
        give_up(run == 1 ? cause_of_no_rendezvous() : cause_of_standstill(run, title));
      const int busy = computing.rank_beyond(kComputeTimeouts * options_.timeout_seconds, ranks_, now);
      if (busy >= 0) give_up(cause_of_endless_work(busy));
      if (still >= kHopelessSeconds && run > 1) give_up_if_hopeless(title);
    }
  }

  void wait_for_news() {
    std::vector<pollfd> files;
    for (const RankProcess& rank : ranks_)
      if (rank.pipe() >= 0) files.push_back({rank.pipe(), POLLIN, 0});
    poll(files.data(), files.size(), 20);
    for (RankProcess& rank : ranks_) {
      rank.observe();  // before reading: whatever an ended process wrote is in the pipe by then
      rank.read_records();
    }
  }

  void check_stopped(int run, double now) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].stopped() || ranks_[r].finished(run)) {
        stopped_since_[r] = -1;
      } else if (stopped_since_[r] < 0) {
        stopped_since_[r] = now;
      } else if (now - stopped_since_[r] >= options_.timeout_seconds) {
        give_up(cause_stopped(r));
      }
    }
  }

  std::string where(std::size_t rank) const {
    return fmt::format("in step '{}'", progress_->step(static_cast<int>(rank)));
  }

  std::string cause_stopped(std::size_t r) const {
    return fmt::format("rank {} was stopped by signal {} {} and did not go on within {} s", r,
                       signal_text(ranks_[r].stop_signal()), where(r), options_.timeout_seconds);
  }

  std::string cause_of_endless_work(int rank) const {
    return fmt::format(
        "rank {} did nothing but compute in step '{}' for {} s of processor time, without a call, a "
        "phase or the step's end; if it needs more, try a longer --timeout",
        rank, progress_->step(rank), kComputeTimeouts * options_.timeout_seconds);
  }

  // Of all ranks that are lost, the one that was lost first for a reason of its own.
  std::string cause_of_loss() {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].ended() && WIFSIGNALED(ranks_[r].status()))
        return fmt::format("rank {} was killed by signal {} {}", r, signal_text(WTERMSIG(ranks_[r].status())),
                           where(r));
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].ended() && !ranks_[r].failure() && ranks_[r].status() == RankProcess::kUnknownStatus)
        return fmt::format(
            "rank {} is gone {}, and the system does not say how it ended: something else in this program has waited "
            "for it",
            r, where(r));
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].ended() && !ranks_[r].failure())
        return fmt::format("rank {} exited early with code {} {}", r, WEXITSTATUS(ranks_[r].status()), where(r));
    std::size_t first = ranks_.size();
    const auto earlier = [&](const RankProcess& a, const RankProcess& b) {  // a cause is before its consequences
      return a.lost_peer() != b.lost_peer() ? b.lost_peer() : a.failure()->at < b.failure()->at;
    };
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].failure() && (first == ranks_.size() || earlier(ranks_[r], ranks_[first]))) first = r;
    end_ranks();
    raise(*ranks_[first].failure(), static_cast<int>(first), progress_->step(static_cast<int>(first)));
  }

  std::string cause_of_no_rendezvous() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].stopped()) return cause_stopped(r);
    std::vector<std::size_t> missing;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (progress_->slot(static_cast<int>(r)).stage == ProgressSlot::Stage::starting) missing.push_back(r);
    if (missing.empty())
      return fmt::format("the ranks did not all connect within {} s in step 'rendezvous'; try a longer --timeout",
                         options_.timeout_seconds);
    return fmt::format("rank {} never connected: the others waited {} s for it in step 'rendezvous'",
                       fmt::join(missing, ", rank "), options_.timeout_seconds);
  }

  std::string cause_of_standstill(int run, const std::string& title) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].stopped()) return cause_stopped(r);
    std::vector<int> idle, waiting;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].finished(run)) continue;
      (progress_->slot(static_cast<int>(r)).waits_for != ProgressSlot::kNobody ? waiting : idle)
          .push_back(static_cast<int>(r));
    }
    const int all = static_cast<int>(ranks_.size());
    if (!idle.empty())
      return fmt::format("{} did nothing in step '{}' for {} s, alive but neither computing nor talking",
                         ranks_text(idle, all), title, options_.timeout_seconds);
    const std::string cycle = progress_->cycle();
    return fmt::format("nothing moved in step '{}' for {} s: {} {} for messages that nobody sends{}{}", title,
                       options_.timeout_seconds, ranks_text(waiting, all),
                       waiting.size() == 1 || static_cast<int>(waiting.size()) == all ? "waits" : "wait",
                       cycle.empty() ? "" : "; ", cycle);
  }

  // There is nothing to wait for when ranks wait for each other. (A rank that was stopped may have what it waits for.)
  void give_up_if_hopeless(const std::string& title) {
    for (const RankProcess& rank : ranks_)
      if (rank.stopped()) return;
    const std::string cycle = progress_->cycle(true);
    if (!cycle.empty()) give_up(fmt::format("nothing can move in step '{}': {}", title, cycle));
  }

  [[noreturn]] void give_up(const std::string& cause) {
    end_ranks();
    throw RunError(cause);
  }

  void end_ranks() {
    for (RankProcess& rank : ranks_) rank.end();
  }

  void close_goodbye() {
    for (int* end : {&goodbye_.read_end, &goodbye_.write_end}) {
      if (*end >= 0) close(*end);
      *end = -1;
    }
  }

  Options options_;
  std::unique_ptr<Board> board_;
  std::unique_ptr<ProgressBoard> progress_;
  Pipe goodbye_;
  std::optional<PrivateNetwork> network_;
  std::vector<RankProcess> ranks_;
  std::vector<double> stopped_since_;
  std::optional<RankSide> in_rank_;
  int runs_ = 1;  // the rendezvous is the first
};

}  // namespace

std::unique_ptr<World> start_process_world(const Options& options) { return std::make_unique<ProcessWorld>(options); }

}  // namespace muonwalk::sim
