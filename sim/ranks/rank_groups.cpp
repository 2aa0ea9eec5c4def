#include "sim/ranks/rank_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

const char* const kUsualGroups[] = {"dp", "tp", "pp"};

void require_possible(const Options& options) {
  for (const Group& group : options.set_up.groups) {
    if (group.size() > 0 && std::count(std::begin(kUsualGroups), std::end(kUsualGroups), group.name) > 0)
      throw UsageError(fmt::format(
          "the lesson lists ranks of a group \"{0}\", but {0} is what the grid makes of it; give it another name",
          group.name));
    std::vector<int> seen;
    for (const Group& other : options.set_up.groups)
      if (other.name == group.name) seen.insert(seen.end(), other.ranks.begin(), other.ranks.end());
    for (const int rank : group.ranks) {
      if (rank < 0 || rank >= options.grid.size())
        throw UsageError(
            fmt::format("the group \"{}\" is to have rank {}, but {} has the ranks 0 to {}; ask for a larger grid",
                        group.name, rank, options.grid.text(), options.grid.size() - 1));
      if (std::count(seen.begin(), seen.end(), rank) > 1)
        throw UsageError(
            fmt::format("rank {} is twice in groups named \"{}\"; a rank is in one of them, once", rank, group.name));
    }
  }
}

}  // namespace

RunGroups::RunGroups(const Options& options) {
  require_possible(options);
  for (const char* name : kUsualGroups) names_.push_back({name, {}});
  for (const Group& group : options.set_up.groups) {
    auto known = std::find_if(names_.begin(), names_.end(), [&](const auto& each) { return each.name == group.name; });
    if (known == names_.end()) known = names_.insert(names_.end(), {group.name, {}});
    if (group.size() > 0) known->groups.push_back(group);
  }
  for (Named& each : names_)
    if (each.groups.empty()) each.groups = options.grid.groups(each.name);
}

std::vector<Group> RunGroups::of_rank(int rank) const {
  std::vector<Group> groups;
  for (const Named& each : names_) {
    const int number = each.number_of(rank);
    groups.push_back(number < 0 ? Group{each.name, {}} : each.groups[static_cast<std::size_t>(number)]);
  }
  return groups;
}

int RunGroups::Named::number_of(int rank) const {
  const auto has = [rank](const Group& group) { return group.number_of(rank) >= 0; };
  const auto found = std::find_if(groups.begin(), groups.end(), has);
  return found == groups.end() ? -1 : static_cast<int>(found - groups.begin());
}

// One rank in one group. It observes the communicator: marks whom it waits for, and tells who traces or records it.
class RankGroups::Member : public CallObserver {
 public:
  Member(RankGroups& all, ProgressSlot& slot, std::size_t index, Group its_group, std::unique_ptr<Backend> its_backend)
      : group(std::move(its_group)),
        backend(std::move(its_backend)),
        all_(&all),
        slot_(&slot),
        index_(static_cast<int>(index)) {
    if (backend == nullptr) return;
    communicator =
        std::make_unique<Communicator>(group.name, group.number_of(all.rank_), group.size(), *backend, all.ledger);
    communicator->observe(*this);
  }

  void begins(const Call& call) override {
    ++all_->calls;
    if (all_->trace != nullptr) entry_ = all_->trace->open_call(index_, call);
  }
  // Where a call throws, the run has failed and leaves no trace, so nothing is closed.
  void ended(const Call&) override {
    if (all_->trace != nullptr) all_->trace->close(entry_);
  }
  void moved(const Call& call, const Message& message) override {
    const int peer = group.ranks[static_cast<std::size_t>(message.peer)];
    if (all_->trace != nullptr) all_->trace->message(index_, call, message, peer);
    if (all_->on_sent && message.sent)
      all_->on_sent({all_->rank_, peer, group.name, collective_name(call.kind), element_name(call.type),
                     message.bytes / element_size(call.type), message.bytes, all_->calls - 1});
  }
  void waits(CollectiveKind kind, int peer) override {
    slot_->waits_in = kind;
    slot_->waits_for = peer < 0 ? ProgressSlot::kEverybody : group.ranks[static_cast<std::size_t>(peer)];
  }
  std::int64_t now_ns() override { return all_->trace != nullptr ? all_->trace->now_ns() : 0; }
  void goes_on() override {
    slot_->waits_for = ProgressSlot::kNobody;
    ++slot_->signs;
  }

  Group group;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;  // null where the rank is not in the group

 private:
  RankGroups* all_;
  ProgressSlot* slot_;
  int index_;
  std::ptrdiff_t entry_ = SpanBuffer::kNoRoom;
};

RankGroups::RankGroups(const RunGroups& all, const std::optional<LinkSpeed>& speed, int rank, ProgressSlot& slot,
                       const MakeBackend& backend)
    : rank_(rank) {
  const auto link = speed ? std::make_shared<RankLink>(*speed) : nullptr;
  for (const RunGroups::Named& each : all.names()) {
    const int number = each.number_of(rank);
    Group group = number < 0 ? Group{each.name, {}} : each.groups[static_cast<std::size_t>(number)];
    const std::string own_name = fmt::format("{} {}", each.name, number);  // "dp 1"
    auto moves = number < 0 ? nullptr : backend(own_name, group, group.number_of(rank));
    if (moves != nullptr && link != nullptr) moves = over_slow_link(std::move(moves), link);
    members_.push_back(std::make_unique<Member>(*this, slot, members_.size(), std::move(group), std::move(moves)));
  }
}

RankGroups::~RankGroups() = default;

Communicator& RankGroups::communicator(const std::string& name) {
  std::string known;
  for (const auto& member : members_) {
    if (member->group.name == name && member->communicator != nullptr) return *member->communicator;
    if (member->group.name == name)
      throw UsageError(fmt::format("rank {} asked for the group \"{}\", but is not in it", rank_, name));
    known += (known.empty() ? "" : ", ") + member->group.name;
  }
  throw UsageError(fmt::format("rank {} asked for the group \"{}\", but this run has {}; name it in LessonInfo::groups",
                               rank_, name, known));
}

void RankGroups::require_whole() const {
  for (const auto& member : members_)
    if (member->communicator != nullptr) member->communicator->require_whole();
}

std::optional<std::int64_t> RankGroups::kernel_bytes_sent() const {
  std::optional<std::int64_t> sum = 0;
  for (const auto& member : members_) {
    if (member->backend == nullptr) continue;
    const std::optional<std::int64_t> of_group = member->backend->kernel_bytes_sent();
    sum = sum && of_group ? std::optional(*sum + *of_group) : std::nullopt;
  }
  return sum;
}

std::int64_t RankGroups::header_bytes_sent() const {
  std::int64_t sum = 0;
  for (const auto& member : members_)
    if (member->backend != nullptr) sum += member->backend->header_bytes_sent();
  return sum;
}

}  // namespace muonwalk::sim
