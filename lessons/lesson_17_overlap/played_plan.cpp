#include "lessons/lesson_17_overlap/played_plan.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <stdexcept>

namespace muonwalk::sim {
namespace {

// A message that has been posted.
struct PlayedMessage {
  bool comes_in = false;
  std::int64_t posted_ns = 0;
  std::int64_t done_ns = 0;
};

// Walks through a plan with a clock.
class Player {
 public:
  Player(const Plan& plan, const Layout& layout, const PlayedMachine& machine)
      : machine_(machine), out_(machine.link), in_(machine.link), plan_(plan) {
    int before = 0;  // buckets of earlier buffers
    for (const Buffer& buffer : layout.buffers) {
      for (const DistMeta& meta : buffer.parameters) bucket_of_[meta.parameter] = before + meta.bucket_idx;
      before += static_cast<int>(buffer.buckets.size());
    }
  }

  PlayedPlan play() {
    bool begun = false;
    for (const Operation& operation : plan_.operations) {
      const Work* work = std::get_if<Work>(&operation);
      if (work != nullptr && work->phase == phases::gather_weights) break;
      begun = begun || (work != nullptr && (work->phase == phases::dp_gather || work->phase == phases::tp_gather));
      if (!begun) continue;
      if (work != nullptr) begin(*work);
      if (const Call* call = std::get_if<Call>(&operation)) make(*call);
    }
    played_.span_ns = now_;
    played_.waiting_ns = now_ - played_.computing_ns;
    return std::move(played_);
  }

 private:
  void begin(const Work& work) {
    if (work.phase == phases::dp_gather) buckets_.emplace_back();
    if (work.phase == phases::await_gather) ++waited_for_;
    const std::int64_t took = std::llround(work.flops / machine_.gigaflops_per_second);
    if (took == 0) return;
    const int bucket = bucket_of_.at(work.parameter);
    draw(played_.processor, {bucket, {now_, now_ + took}});
    now_ += took;
    played_.computing_ns += took;
  }

  // A bar that begins where the last one of its bucket ends makes that one longer.
  static void draw(std::vector<PlayedBar>& bars, const PlayedBar& next) {
    if (!bars.empty() && bars.back().bucket == next.bucket && bars.back().stretch.end == next.stretch.begin)
      bars.back().stretch.end = next.stretch.end;
    else
      bars.push_back(next);
  }

  void make(const Call& call) {
    const std::int64_t size = element_size(call.type);
    switch (call.kind) {
      case CollectiveKind::send:
        buckets_.back().out.push_back({false, now_, out_.put(now_, call.elements_in * size).left_ns});
        return;
      case CollectiveKind::recv: {
        const std::int64_t bytes = call.elements_out * size;
        const LinkDirection::Times times = in_.put(now_, bytes);
        buckets_.back().in.push_back({true, now_, times.arrived_ns});
        const int bucket = static_cast<int>(buckets_.size()) - 1;
        const std::int64_t began =
            times.left_ns - std::llround(static_cast<double>(bytes) / machine_.link.gigabytes_per_second);
        draw(played_.link, {bucket, {began, times.left_ns}});
        return;
      }
      case CollectiveKind::wait:
        return wait();
      case CollectiveKind::all_gather: {  // over tp: posted and waited for at once
        const std::int64_t peers = group_size(call.group) - 1;
        if (peers == 0) return;
        const std::int64_t left = out_.put(now_, peers * call.elements_in * size).left_ns;
        now_ = std::max(left, in_.put(now_, (call.elements_out - call.elements_in) * size).arrived_ns);
        return;
      }
      default:
        throw std::logic_error(std::string("no played plan has a ") + collective_name(call.kind));
    }
  }

  void wait() {
    Bucket& bucket = buckets_.at(static_cast<std::size_t>(waited_for_));
    std::deque<PlayedMessage>& next = bucket.in.empty() ? bucket.out : bucket.in;
    if (next.empty()) throw std::logic_error("a played plan waits for more messages than it has posted");
    now_ = std::max(now_, next.front().done_ns);
    if (next.front().comes_in) played_.under_way.push_back({next.front().posted_ns, now_});
    next.pop_front();
  }

  int group_size(const std::string& group) const { return group == "tp" ? plan_.grid.tp() : plan_.grid.dp(); }

  struct Bucket {
    std::deque<PlayedMessage> in, out;
  };

  PlayedMachine machine_;
  LinkDirection out_, in_;
  const Plan& plan_;
  std::map<int, int> bucket_of_;  // by parameter
  std::int64_t now_ = 0;
  std::vector<Bucket> buckets_;
  int waited_for_ = -1;  // the last bucket that was waited for
  PlayedPlan played_;
};

}  // namespace

std::int64_t PlayedPlan::under_way_ns() const {
  std::int64_t sum = 0;
  for (const Interval& message : under_way) sum += message.end - message.begin;
  return sum;
}

double PlayedPlan::hidden() const {
  std::vector<Interval> computing;
  for (const PlayedBar& bar : processor) computing.push_back(bar.stretch);
  const IntervalSet all(under_way);
  if (all.empty()) return 0;
  return double(intersected(all, IntervalSet(computing)).length()) / double(all.length());
}

PlayedPlan play(const Plan& plan, const Layout& layout, const PlayedMachine& machine) {
  return Player(plan, layout, machine).play();
}

std::int64_t work_ns(const Plan& plan, const Layout& layout, int bucket, const PlayedMachine& machine) {
  std::int64_t sum = 0;
  for (const Operation& operation : plan.operations)
    if (const Work* work = std::get_if<Work>(&operation); work != nullptr && work->phase != phases::momentum)
      for (const int index : layout.bucket({0, bucket}).parameters)
        if (layout.buffers[0].parameters[std::size_t(index)].parameter == work->parameter)
          sum += std::llround(work->flops / machine.gigaflops_per_second);
  return sum;
}

PlayedPlan play_slowest(const std::vector<Plan>& plans, const Layout& layout, const PlayedMachine& machine) {
  PlayedPlan slowest;
  for (const Plan& plan : plans) {
    PlayedPlan played = play(plan, layout, machine);
    if (played.span_ns >= slowest.span_ns) slowest = std::move(played);
  }
  return slowest;
}

}  // namespace muonwalk::sim
