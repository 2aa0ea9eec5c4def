// Of several ranks that fail, the watch names the one with which it began. Its ranks are made up here: each has already
// told how it ended.
#include "sim/ranks/rank_watch.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// A rank that is as a test wants it to be.
class MadeUpRank : public WatchedRank {
 public:
  MadeUpRank() { ended_ = false; }
  int file() const override { return -1; }
  void take_news() override {
    if (at_look) at_look(++looks_);
  }
  void end() override { ++times_ended; }
  void leave_to_parent() override {}
  bool wait_for_end(double) override { return ended_; }
  double cpu_seconds() const override { return used += uses; }
  bool wants_processor() const override { return silent || busy; }
  bool heard_of() override { return !silent; }
  bool host_answers() const override { return answers; }
  std::string out_of_sight() const override { return lost_sight; }

  MadeUpRank& ended_with(int wait_status) {
    ended_ = true;
    status_ = wait_status;
    return *this;
  }
  MadeUpRank& exited(int code) { return ended_with(code << 8); }
  MadeUpRank& failed(Failed::Kind kind, const char* words, double at = 1) { return tell(Failed{kind, words, at}); }
  MadeUpRank& stopped_by(int signal) {
    stop_signal_ = signal;
    return *this;
  }
  MadeUpRank& done(int steps) {
    for (; steps > 0; --steps) tell(EndOfStep());
    return *this;
  }

  std::string lost_sight;
  std::function<void(int look)> at_look;  // what happens before each look at it; there are 20 ms between two
  bool silent = false;                    // nobody hears of it any more, though it may well compute
  bool answers = true;                    // its host does
  bool busy = false;                      // it could go on at any moment
  double uses = 0;                        // seconds of processor time between two looks
  int times_ended = 0;

 private:
  template <class Kind>
  MadeUpRank& tell(Kind kind) {
    std::vector<Report> told;
    told.emplace_back(std::move(kind));
    sort_in(std::move(told));
    return *this;
  }
  mutable double used = 0;
  int looks_ = 0;
};

// Ranks in their second run, each in a step of its own.
struct MadeUpRun {
  Options options;
  Progress store;
  std::vector<MadeUpRank*> ranks;
  std::unique_ptr<RankWatch> watch;

  explicit MadeUpRun(double timeout = 0.1, int count = 3) : store(count) {
    options.grid = Grid().dp(count);
    options.threads = 1;
    options.timeout_seconds = timeout;
    watch = std::make_unique<RankWatch>(options, store);
    for (int rank = 0; rank < count; ++rank) {
      auto made = std::make_unique<MadeUpRank>();
      ranks.push_back(made.get());
      watch->add(std::move(made));
      store.enter_step(rank, "step " + std::to_string(rank));
      store.slot(rank).stage = ProgressSlot::Stage::running;
    }
  }
  MadeUpRank& operator[](std::size_t rank) { return *ranks[rank]; }
  void waits(int rank, CollectiveKind kind, int for_rank) {
    store.slot(rank).waits_in = kind;
    store.slot(rank).waits_for = for_rank;
  }
  // What is said when the ranks are waited for; by then all have been ended.
  std::string said(int run = 2) {
    return error_of([&] { watch->wait_for_run(run, "the step"); });
  }
  std::string said_at_the_end() {
    return error_of([&] { watch->require_ended(1); });
  }

 private:
  std::string error_of(const std::function<void()>& work) {
    std::string words = "nothing";
    try {
      work();
    } catch (const UsageError& error) {
      words = std::string("usage: ") + error.what();
    } catch (const StrangerError& error) {
      words = std::string("stranger: ") + error.what();
    } catch (const RunError& error) {
      words = error.what();
    }
    for (const MadeUpRank* rank : ranks) CHECK(rank->times_ended == (words == "nothing" ? 0 : 1));
    return words;
  }
};

// What the watch says of ranks that failed like this, in rank order.
std::string said_of(const std::vector<Failed>& failures) {
  MadeUpRun run(0.1, static_cast<int>(failures.size()));
  for (std::size_t rank = 0; rank < failures.size(); ++rank)
    run[rank].failed(failures[rank].kind, failures[rank].message.c_str(), failures[rank].at);
  return run.said();
}

}  // namespace

TEST_CASE("of several ranks that failed for one kind of reason, the first one is named, whatever its number") {
  std::vector<double> times = {4, 2, 3, 1};
  std::sort(times.begin(), times.end());
  do {
    for (const auto kind : {Failed::Kind::other, Failed::Kind::peer_lost}) {
      std::vector<Failed> failures;
      for (const double at : times) failures.push_back({kind, "words", at});
      const auto first = std::min_element(times.begin(), times.end()) - times.begin();
      const std::string said = said_of(failures);
      CAPTURE(said);
      CHECK(said.find("rank " + std::to_string(first) + " failed") == 0);
    }
  } while (std::next_permutation(times.begin(), times.end()));
}

TEST_CASE("a rank that nobody hears of is given up after --timeout, and not before two seconds") {
  for (const double timeout : {0.2, 3.0}) {
    CAPTURE(timeout);
    MadeUpRun run(timeout, 1);
    run[0].silent = true;
    run[0].answers = timeout > 1;
    const std::string said = run.said();
    CAPTURE(said);
    const std::string words = "rank 0 was not heard of in step 'step 0' for ";
    REQUIRE(said.find(words) == 0);
    CHECK(std::stod(said.substr(words.size())) >= std::max(timeout, 2.0));
    CHECK(said.substr(said.find(" s: ") + 4) ==
          (timeout > 1 ? "the process that a launcher or you have started for it is stopped, or gets no processor"
                       : "its host does not answer, because it is gone or the network between the hosts is"));
  }
}

TEST_CASE(
    "of ranks that are lost, the sentence names the one that was killed, then the one out of sight, then others") {
  const auto lost = [](const std::function<void(MadeUpRun&)>& how) {
    MadeUpRun run;
    for (MadeUpRank* rank : run.ranks) rank->failed(Failed::Kind::peer_lost, "a peer is gone");
    how(run);
    return run.said();
  };
  CHECK(lost([](MadeUpRun&) {}) == "rank 0 failed in step 'step 0': a peer is gone");
  CHECK(lost([](MadeUpRun& run) { run[2].failed(Failed::Kind::other, "it broke", 9); }) ==
        "rank 2 failed in step 'step 2': it broke");
  CHECK(lost([](MadeUpRun& run) { run[1].failed(Failed::Kind::usage, "a wrong word").lives_on("ada"); }) ==
        "usage: a wrong word");
  CHECK(lost([](MadeUpRun& run) { run[1].failed(Failed::Kind::stranger, "somebody else"); }) ==
        "stranger: somebody else");
  CHECK(lost([](MadeUpRun& run) { run[1].failed(Failed::Kind::timed_out, "it waited").lives_on("ada"); }) ==
        "rank 1 on ada failed in step 'step 1': it waited");

  const auto all_kinds = [](int kinds) {  // of those who did not say that they failed, the worst last
    MadeUpRun run;
    run[0].failed(Failed::Kind::other, "it broke");
    run[1].exited(7);
    run[2].exited(0);
    if (kinds > 1) run[2].ended_with(WatchedRank::kUnknownStatus);
    if (kinds > 2) run[1].lost_sight = "its host is gone", run[1].lives_on("ada");
    if (kinds > 3) run[2].ended_with(SIGSEGV);
    return run.said();
  };
  CHECK(all_kinds(1) == "rank 1 exited early with code 7 in step 'step 1'");
  CHECK(all_kinds(2) ==
        "rank 2 is gone in step 'step 2', and the system does not say how it ended: something else in this program has "
        "waited for it");
  CHECK(all_kinds(3) == "rank 1 on ada was lost in step 'step 1': its host is gone");
  CHECK(all_kinds(4) == "rank 2 was killed by signal 11 (SIGSEGV) in step 'step 2'");

  MadeUpRun well;
  for (MadeUpRank* rank : well.ranks) rank->done(2);
  well[1].exited(1);  // when it had done all that was asked for
  CHECK(well.said() == "nothing");
}

TEST_CASE("a rank that is stopped twice for a moment is not given up, however far apart the moments are") {
  MadeUpRun run(1.1);  // a look counts for 1 s at most
  for (MadeUpRank* rank : run.ranks) rank->uses = 0.1;
  run[1].at_look = [&](int look) {
    run[1].stopped_by(look == 1 || look == 60 ? SIGSTOP : 0);
    if (look == 61)
      for (MadeUpRank* rank : run.ranks) rank->done(2);
  };
  CHECK(run.said() == "nothing");
}

TEST_CASE(
    "of ranks that do not get on, the sentence says who is stopped, computes, idles or waits, where and how long") {
  const auto stands = [](const std::function<void(MadeUpRun&)>& how, int run_number = 2) {
    MadeUpRun run;
    how(run);
    return run.said(run_number);
  };
  CHECK(stands([](MadeUpRun& run) { run[1].stopped_by(SIGSTOP); }) ==
        "rank 1 was stopped by signal 19 (SIGSTOP) in step 'step 1' and did not go on within 0.1 s");
  CHECK(stands([](MadeUpRun& run) {
          for (MadeUpRank* rank : run.ranks) rank->uses = 0.4;
          run[2].uses = 2;
        }) ==
        "rank 2 did nothing but compute in step 'step 2' for 1 s of processor time, without a call, a phase or the "
        "step's end; if it needs more, try a longer --timeout");
  CHECK(stands([](MadeUpRun& run) { run[0].done(2), run.waits(1, CollectiveKind::recv, 0); }) ==
        "rank 2 did nothing in step 'the step' for 0.1 s, alive but neither computing nor talking");
  CHECK(stands([](MadeUpRun& run) { run[0].done(2); }) ==
        "ranks 1–2 did nothing in step 'the step' for 0.1 s, alive but neither computing nor talking");
  CHECK(stands([](MadeUpRun& run) {
          run[0].done(2), run[1].done(2);
          run.waits(2, CollectiveKind::recv, 0);
        }) ==
        "nothing moved in step 'the step' for 0.1 s: rank 2 waits for messages that nobody sends; ranks 0–1 have left "
        "the step");
  CHECK(stands([](MadeUpRun& run) {
          run[1].done(2);
          run.waits(0, CollectiveKind::recv, 1), run.waits(2, CollectiveKind::recv, ProgressSlot::kEverybody);
        }) ==
        "nothing moved in step 'the step' for 0.1 s: ranks 0, 2 wait for messages that nobody sends; rank 1 has left "
        "the step");
  CHECK(stands([](MadeUpRun& run) {
          for (int rank = 0; rank < 3; ++rank) run.waits(rank, CollectiveKind::recv, (rank + 1) % 3);
        }) ==
        "nothing moved in step 'the step' for 0.1 s: every rank waits for messages that nobody sends; rank 0 waits in "
        "recv for rank 1, which waits in recv for rank 2, which waits in recv for rank 0");

  const auto starting = [](MadeUpRun& run, std::initializer_list<int> missing) {
    for (const int rank : missing) run.store.slot(rank).stage = ProgressSlot::Stage::starting;
  };
  CHECK(stands(
            [&](MadeUpRun& run) {
              starting(run, {0, 2}), run[2].lives_on("ada");
            },
            1) == "rank 0, rank 2 on ada never connected: the others waited 0.1 s for it in step 'rendezvous'");
  CHECK(stands([&](MadeUpRun& run) { starting(run, {}); }, 1) ==
        "the ranks did not all connect within 0.1 s in step 'rendezvous'; try a longer --timeout");

  // One that sends and one that receives have met: that is not a deadlock.
  CHECK(stands([](MadeUpRun& run) {
          run[2].done(2);
          run.waits(0, CollectiveKind::recv, 1), run.waits(1, CollectiveKind::send, 0);
        }) ==
        "nothing moved in step 'the step' for 0.1 s: ranks 0–1 wait for messages that do not get through; rank 2 has "
        "left the step");

  // Ranks that send to each other never go on, however much time there is.
  MadeUpRun hopeless(30);
  hopeless[2].done(2);
  hopeless.waits(0, CollectiveKind::send, 1), hopeless.waits(1, CollectiveKind::send, 0);
  CHECK(hopeless.said() ==
        "nothing can move in step 'the step': rank 0 waits in send for rank 1, which waits in send for rank 0; a send "
        "returns when its receiver has taken the message, so ranks that send to each other post it with isend, call "
        "recv, and then wait for the isend");
}

TEST_CASE("ranks that wait for each other are given all their time again after one was stopped") {
  // For 1.5 s rank 1 is stopped, with the others in what would be a deadlock if nothing had happened to it.
  MadeUpRun run(30);
  run.waits(0, CollectiveKind::send, 1), run.waits(1, CollectiveKind::send, 0);
  run[1].at_look = [&](int look) {
    run[1].stopped_by(look < 75 ? SIGSTOP : 0);
    if (look == 85)
      for (MadeUpRank* rank : run.ranks) rank->done(2);
  };
  CHECK(run.said() == "nothing");
}

TEST_CASE(
    "at the end, a rank that is stopped or traced, or that nobody hears of, has --timeout, and is not said to go on") {
  for (const std::string how : {"stopped", "traced", "silent"}) {
    CAPTURE(how);
    MadeUpRun run(30);
    for (int rank = 0; rank < 3; ++rank) {
      run[static_cast<std::size_t>(rank)].done(1);
      run.store.slot(rank).stage = ProgressSlot::Stage::finished;
      if (rank != 1) run[static_cast<std::size_t>(rank)].exited(0);
    }
    run[1].at_look = [&](int look) {  // 20 ms apart: 6 s, which is more than ranks have to leave
      const bool back = look > 300;
      if (how == "stopped") run[1].stopped_by(back ? 0 : SIGSTOP);
      run[1].silent = how == "silent" && !back;
      run[1].busy = how == "traced" && !back;  // and gets no processor, as on a machine with other work
      if (back) run[1].exited(0);
    };
    CHECK(run.said_at_the_end() == "nothing");
  }
  {
    MadeUpRun endless(30);  // one that computes instead of leaving is not waited for
    for (MadeUpRank* rank : endless.ranks) rank->done(1);
    endless[0].busy = true;
    endless[0].uses = 0.02;
    CHECK(endless.said_at_the_end().find("rank 0 went on to 'step 0'") == 0);
    MadeUpRun held;  // nor is one that a debugger never lets go
    for (MadeUpRank* rank : held.ranks) rank->done(1);
    held[0].busy = true;
    CHECK(held.said_at_the_end() == "rank 0 has not ended within 5 s: a debugger holds it, or it gets no processor");
  }
  MadeUpRun run(0.1);
  for (MadeUpRank* rank : run.ranks) rank->done(1);
  run[0].stopped_by(SIGSTOP);
  CHECK(run.said_at_the_end() ==
        "rank 0 was stopped by signal 19 (SIGSTOP) in step 'step 0' and did not go on within 0.1 s");
}

TEST_CASE("at the end, a rank that goes on, or that left without having finished, is named") {
  const auto ends = [](const std::function<void(MadeUpRun&)>& how) {
    MadeUpRun run;
    for (int rank = 0; rank < 3; ++rank) {
      run[static_cast<std::size_t>(rank)].done(1).exited(0);
      run.store.slot(rank).stage = ProgressSlot::Stage::finished;
    }
    how(run);
    return run.said_at_the_end();
  };
  const std::string goes_on =
      "rank 1 went on to 'step 1' when this program had come to its end: something that only this program knows, such "
      "as the outcome of a check, decided what a rank does";
  CHECK(ends([](MadeUpRun&) {}) == "nothing");
  CHECK(ends([](MadeUpRun& run) { run[1].done(1); }) == goes_on);
  CHECK(ends([](MadeUpRun& run) { run[1].failed(Failed::Kind::peer_lost, "nobody is there"); }) == goes_on);
  CHECK(ends([](MadeUpRun& run) {
          run[2].exited(5);
          run.store.slot(2).stage = ProgressSlot::Stage::running;
        }) == "rank 2 exited early with code 5 in step 'step 2'");
}
