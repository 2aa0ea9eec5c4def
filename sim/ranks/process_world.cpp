#include <unistd.h>

#include <cstdio>
#include <optional>

#include "sim/ranks/gloo_groups.hpp"
#include "sim/ranks/private_network.hpp"
#include "sim/ranks/rank_process.hpp"
#include "sim/ranks/rank_side.hpp"
#include "sim/ranks/rank_watch.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/terminal.hpp"

namespace muonwalk::sim {
namespace {

// Ranks that this process has forked.
class ProcessWorld : public World {
 public:
  explicit ProcessWorld(const Options& options)
      : store_(board_for(options)),
        progress_(std::make_unique<Progress>(options.grid.size())),
        goodbye_(open_pipe()),
        watch_(options, *progress_) {
    std::fflush(nullptr);  // what is still in a buffer would be printed once by every process
    try {
      require_no_other_threads();
      if (options.network == NetworkKind::own) make_network(options);
      for (int rank = 0; rank < options.grid.size() && !in_rank_; ++rank) start(options, rank);
      if (!options.set_up.host_of_rank.empty() && hosts_ == 1 && !in_rank_)
        print_error_line(
            "the two hosts of this run are two addresses of one loopback, because its ranks have no two networks with "
            "a cable between them");
      network_.reset();  // it lasts as long as the ranks that are in it
      if (in_rank_) return;
      close(goodbye_.read_end);
      goodbye_.read_end = -1;
      watch_.wait_for_run(runs_, "rendezvous");
    } catch (...) {  // the destructor of an object that was never whole does not run
      watch_.end_ranks();
      close_pipe(goodbye_);
      throw;
    }
  }

  ~ProcessWorld() override {
    if (in_rank_) in_rank_->leave();
    close_pipe(goodbye_);
    watch_.let_leave();
  }

  bool is_parent() const override { return !in_rank_; }

  void finish() override {
    close_pipe(goodbye_);
    watch_.require_ended(runs_);
  }

  StepReports run(const std::string& title, const RankBody& body, int step) override {
    ++runs_;
    if (!in_rank_) return watch_.wait_for_run(runs_, title);
    in_rank_->run(step, title, body);
    return {};
  }

 private:
  // Two hosts, where the lesson asks for them and the system has them; else one network.
  void make_network(const Options& options) {
    if (!options.set_up.host_of_rank.empty()) {
      hosts_ = PrivateNetwork::kMostHosts;
      network_.emplace(hosts_);
      if (network_->exists()) return;
      hosts_ = 1;
    }
    network_.emplace();
  }

  void start(const Options& options, int rank) {
    int reports = -1;
    const int host = hosts_ > 1 ? options.set_up.host_of_rank[static_cast<std::size_t>(rank)] : 0;
    const auto enter_network = [this, host] { return !network_ || !network_->exists() || network_->enter(host); };
    if (auto process = fork_rank(rank, reports, enter_network)) {
      watch_.add(std::move(process));
      return;
    }
    watch_.leave_to_parent();
    close(goodbye_.write_end);
    in_rank_.emplace(options, rank, reports, goodbye_.read_end, *store_, *progress_);
  }

  std::unique_ptr<KeyStore> store_;
  std::unique_ptr<Progress> progress_;
  Pipe goodbye_;
  std::optional<PrivateNetwork> network_;
  int hosts_ = 1;  // that the network has
  RankWatch watch_;
  std::optional<RankSide> in_rank_;
  int runs_ = 1;  // the rendezvous is the first
};

}  // namespace

std::unique_ptr<World> start_process_world(const Options& options) { return std::make_unique<ProcessWorld>(options); }

}  // namespace muonwalk::sim
