#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "sim/ranks/agent.hpp"
#include "sim/ranks/launched_run.hpp"
#include "sim/ranks/private_network.hpp"
#include "sim/ranks/progress.hpp"
#include "sim/ranks/rank.hpp"
#include "sim/ranks/rank_groups.hpp"
#include "sim/ranks/rank_process.hpp"
#include "sim/ranks/rank_watch.hpp"
#include "sim/ranks/remote_rank.hpp"
#include "sim/ranks/report_stream.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/terminal.hpp"
#include "sim/transport/gloo_device.hpp"
#include "sim/transport/key_store.hpp"
#include "sim/transport/nccl_device.hpp"

namespace muonwalk::sim {
namespace {

// Ranks that are processes leave timeouts to the parent, which sees all of them and can say who is to blame.
constexpr std::chrono::milliseconds kRanksWait = std::chrono::hours(24);

// A rank leaves it to the parent to say who is to blame for a wait. It gives up by itself this many times --timeout
// after all have agreed on a call of NCCL's, whose own threads may look as if they computed. Where the parent is
// late, because the machine is busy, it still comes first.
constexpr int kNcclTimeouts = 4;

// The address at which this rank's ports are opened.
std::string gloo_address(const Options& options, int rank) {
  if (options.launch) return options.launch->address;
  if (options.set_up.host_of_rank.empty()) return "127.0.0.1";
  const int host = options.set_up.host_of_rank[static_cast<std::size_t>(rank)];
  if (link_bytes()) return host_address(host);
#if defined(__linux__)
  return "127.0.0." + std::to_string(host + 2);  // two addresses of one loopback stand in for two hosts
#else
  return "127.0.0.1";
#endif
}

// A key store with room for what the ranks of a run write while their groups connect.
std::unique_ptr<KeyStore> board_for(const Options& options) {
  std::size_t keys = 0;
  int largest = 1;
  const RunGroups all(options);
  for (const RunGroups::Named& each : all.names())
    for (const Group& group : each.groups) {
      keys += GlooDevice::board_keys(group.size()) + NcclDevice::board_keys(group.size());
      largest = std::max(largest, group.size());
    }
  return std::make_unique<KeyStore>(keys, GlooDevice::board_value_bytes(largest));
}

// Connects one rank to its groups over Gloo, a context of its own for each group, and where NCCL was asked for, over
// that as well. NCCL's waits, in which no rank computes, are limited by --timeout.
std::unique_ptr<RankGroups> connect_over_gloo(const Options& options, int rank, KeyStore& store, Progress& progress) {
  const RunGroups all(options);
  // The backends keep alive what they need of it.
  GlooDevice device(gloo_address(options, rank));
  const auto over_gloo = [&](const std::string& name, const Group& group, int number) {
    return device.connect(name, number, group.size(), store, kRanksWait);
  };
  if (options.transport != TransportKind::nccl)
    return std::make_unique<RankGroups>(all, options.set_up.link, rank, progress.slot(rank), over_gloo);
  NcclDevice gpu(options.launch ? options.launch->local_rank : rank, "");  // whoever hears of an error knows the rank
  const auto asked_for = std::chrono::milliseconds(static_cast<long>(options.timeout_seconds * 1000));
  const auto over_nccl = [&](const std::string& name, const Group& group, int number) {
    return gpu.connect(name, number, group.size(), store, over_gloo(name, group, number),
                       std::min(kRanksWait, kNcclTimeouts * asked_for));
  };
  auto groups = std::make_unique<RankGroups>(all, options.set_up.link, rank, progress.slot(rank), over_nccl);
  groups->chain_engine = gpu.chain_engine();
  groups->gpu = gpu.ordinal();
  return groups;
}

// The rank's side of a world: one rank in a process of its own, which was forked for it (fork_rank).
class RankSide {
 public:
  // Connects the rank with the others, through `key store`. It tells its records to the pipe `records`, and marks on
  // `progress` how far it is. `goodbye` is the read end of a pipe that is closed when nobody is needed any more. Where
  // something fails, here or in a step, the parent is told why, and the process ends.
  RankSide(const Options& options, int rank, int reports, int goodbye, KeyStore& store, Progress& progress)
      : slot_(progress.slot(rank)), reports_(reports), goodbye_(goodbye) {
    speaking = this;
    if (options.launch)
      store.on_set([this](const std::string& key, const std::vector<char>& value) { send(Posted{key, value}); });
    // Called on another thread, while this one connects.
    GlooDevice::on_overrun([](const char* sentence) {
      speaking->send(Failed{Failed::Kind::stranger, sentence, monotonic_seconds()});
      _exit(3);
    });
    guarded([&] {
      have_fault(options.fault, rank, 0);
      slot_.stage = ProgressSlot::Stage::connecting;
      session_.emplace(options, rank, connect_over_gloo(options, rank, store, progress), progress);
      slot_.stage = ProgressSlot::Stage::running;
    });
  }

  // Runs a step and tells what the rank has said.
  void run(int step, const std::string& title, const RankBody& body) {
    guarded([&] {
      for (Report& report : session_->run(step, title, body)) tell(report);
    });
  }

  // Waits until nobody is needed any more, and ends the process. Leaving without destroying the Gloo contexts saves
  // 10 ms a peer.
  [[noreturn]] void leave() {
    slot_.stage = ProgressSlot::Stage::finished;
    char nothing;
    while (read(goodbye_, &nothing, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }

 private:
  // Tells the parent of an exception before the sockets close, so that it is known as the cause.
  template <class Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (...) {
      send(failure_now());
      _exit(3);
    }
    send(EndOfStep());
  }

  void tell(Report& report) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reports_.write(report)) _exit(3);  // the parent is gone, and nobody would hear a reason
  }

  void send(Report last) {
    tell(last);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reports_.flush()) _exit(3);
  }

  static inline RankSide* speaking = nullptr;  // the one rank of this process
  ProgressSlot& slot_;
  std::mutex mutex_;  // of records_: while ranks connect, a thread of Gloo's may have the last word
  RecordWriter reports_;
  int goodbye_;
  std::optional<RankSession> session_;
};

// Watches ranks that are processes. Those of a launched run (`run`, else null) have a key store each, so what one
// writes is told to all others; rank 0 is a child of this process, the others are agents' children.
class ProcessWatch : public RankWatch {
 public:
  ProcessWatch(const Options& options, const Progress& progress, LaunchedRun* run, KeyStore& store)
      : RankWatch(options, progress), run_(run), store_(store) {}

  void say_goodbye() {
    for (RemoteRank* rank : remote_) rank->say_goodbye();
  }
  void add_remote(std::unique_ptr<RemoteRank> rank) {
    remote_.push_back(rank.get());
    add(std::move(rank));
  }

 protected:
  void news_taken() override {
    if (run_ == nullptr) return;
    for (std::size_t r = 0; r < ranks().size(); ++r)
      for (const Posted& posted : ranks()[r]->take_posted()) {
        if (r != 0) store_.set(posted.key, posted.value);
        for (std::size_t other = 0; other < remote_.size(); ++other)
          if (other + 1 != r) remote_[other]->tell(posted);
      }
    if (run_->launcher_is_gone()) give_up("the launcher that has started this run is gone, so the run was ended");
  }

 private:
  LaunchedRun* run_;
  KeyStore& store_;
  std::vector<RemoteRank*> remote_;  // ranks 1, 2, …
};

// Ranks that this process has forked; or, where they were launched, a world as one of the launched processes sees it,
// or as the rank that it has forked. In an agent, the constructor returns when the world is over: from there on the
// agent goes through the program as a rank that does nothing.
class ProcessWorld : public World {
 public:
  explicit ProcessWorld(const Options& options)
      : options_(options),
        run_(options.launch ? launched_run() : nullptr),
        store_(board_for(options)),
        progress_(std::make_unique<Progress>(options.grid.size())),
        goodbye_(open_pipe()),
        watch_(options, *progress_, run_, *store_) {
    std::fflush(nullptr);  // what is still in a buffer would be printed once by every process
    try {
      require_no_other_threads();
      if (is_agent())
        serve();
      else if (run_ != nullptr)
        start_launched();
      else
        start_all();
      if (is_parent()) watch_.wait_for_run(runs_, "rendezvous");
    } catch (...) {  // the destructor of an object that was never whole does not run
      watch_.end_ranks();
      throw;
    }
  }

  ~ProcessWorld() override {
    if (in_rank_) in_rank_->leave();
    if (is_agent()) return;
    let_go();
    watch_.let_leave();
    if (run_ != nullptr) run_->end_world(finished_);
  }

  bool is_parent() const override { return !in_rank_ && !is_agent(); }

  void finish() override {
    let_go();
    watch_.require_ended(runs_);
    finished_ = true;
  }

  StepReports run(const std::string& title, const RankBody& body, int step) override {
    ++runs_;
    if (is_parent()) return watch_.wait_for_run(runs_, title);
    if (in_rank_) in_rank_->run(step, title, body);
    return {};
  }

 private:
  bool is_agent() const { return run_ != nullptr && run_->is_agent(); }

  void start_all() {
    if (options_.network == NetworkKind::own) make_network();
    for (int rank = 0; rank < options_.grid.size() && !in_rank_; ++rank) {
      const int host = hosts_ > 1 ? options_.set_up.host_of_rank[static_cast<std::size_t>(rank)] : 0;
      const auto enter_network = [this, host] { return !network_ || !network_->exists() || network_->enter(host); };
      if (auto process = fork_own(rank, enter_network)) watch_.add(std::move(process));
    }
    if (!options_.set_up.host_of_rank.empty() && hosts_ == 1 && !in_rank_)
      print_error_line(
          "the two hosts of this run are two addresses of one loopback, because its ranks have no two networks with a "
          "cable between them");
    network_.reset();  // it lasts as long as the ranks that are in it
    if (!in_rank_) goodbye_.read_end.close();
  }

  // Two hosts, where the lesson asks for them and the system has them; else one network.
  void make_network() {
    if (!options_.set_up.host_of_rank.empty()) {
      hosts_ = PrivateNetwork::kMostHosts;
      network_.emplace(hosts_);
      if (network_->exists()) return;
      hosts_ = 1;
    }
    network_.emplace();
  }

  void start_launched() {
    store_->set_secret(run_->begin_world());
    auto own = fork_own(run_->rank());
    if (own == nullptr) return;
    goodbye_.read_end.close();
    own->lives_on(run_->own().host);
    watch_.add(std::move(own));
    for (int rank = 1; rank < options_.grid.size(); ++rank)
      watch_.add_remote(
          std::make_unique<RemoteRank>(run_->agent(rank), run_->hello(rank), run_->own(), progress_->slot(rank)));
  }

  void serve() {
    store_->set_secret(run_->wait_for_world());
    auto own = fork_own(run_->rank());
    if (own == nullptr) return;
    goodbye_.read_end.close();
    Agent(*run_, *own, *store_, progress_->slot(run_->rank()), goodbye_.write_end).serve();
    goodbye_.write_end.close();
  }

  // Null in the rank.
  std::unique_ptr<RankProcess> fork_own(int rank, const std::function<bool()>& first = nullptr) {
    int reports = -1;
    if (auto process = fork_rank(rank, reports, first)) return process;
    watch_.leave_to_parent();
    if (run_ != nullptr) run_->leave_to_parent();
    goodbye_.write_end.close();
    in_rank_.emplace(options_, rank, reports, goodbye_.read_end.descriptor(), *store_, *progress_);
    return nullptr;
  }

  void let_go() {
    goodbye_.write_end.close();
    watch_.say_goodbye();
  }

  Options options_;
  LaunchedRun* run_;  // null where no launcher has started the ranks
  std::unique_ptr<KeyStore> store_;
  std::unique_ptr<Progress> progress_;
  Pipe goodbye_;
  std::optional<PrivateNetwork> network_;
  int hosts_ = 1;  // that the network has
  ProcessWatch watch_;
  std::optional<RankSide> in_rank_;
  int runs_ = 1;  // the rendezvous is the first
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<World> start_process_world(const Options& options) { return std::make_unique<ProcessWorld>(options); }

}  // namespace muonwalk::sim
