#include "sim/ranks/rank_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/ranks/host_link.hpp"
#include "sim/transport/nccl_device.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

const char* const kUsualGroups[] = {"dp", "tp", "pp"};

// A rank leaves it to the parent to say who is to blame for a wait. It gives up by itself this many times --timeout
// after all have agreed on a call of NCCL's, whose own threads may look as if they computed. Where the parent is
// late, because the machine is busy, it still comes first.
constexpr int kNcclTimeouts = 4;

// Every group of this name, be it one that grids have or one that the lesson has listed.
std::vector<Group> groups_named(const Options& options, const std::string& name) {
  std::vector<Group> listed;
  for (const Group& group : options.groups)
    if (group.name == name && group.size() > 0) listed.push_back(group);
  return listed.empty() ? options.grid.groups(name) : listed;
}

std::vector<std::string> group_names(const Options& options) {
  std::vector<std::string> names(std::begin(kUsualGroups), std::end(kUsualGroups));
  for (const Group& group : options.groups)
    if (std::count(names.begin(), names.end(), group.name) == 0) names.push_back(group.name);
  return names;
}

void require_possible(const Options& options) {
  for (const Group& group : options.groups) {
    if (group.size() > 0 && std::count(std::begin(kUsualGroups), std::end(kUsualGroups), group.name) > 0)
      throw UsageError(fmt::format(
          "the lesson lists ranks of a group \"{0}\", but {0} is what the grid makes of it; give it another name",
          group.name));
    std::vector<int> seen;
    for (const Group& other : options.groups)
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

Group group_with(const std::vector<Group>& groups, const std::string& name, int rank) {
  for (const Group& group : groups)
    if (group.number_of(rank) >= 0) return group;
  return {name, {}};
}

// "dp 1": the second of the groups named dp.
std::string own_name(const Options& options, const Group& group) {
  const std::vector<Group> all = groups_named(options, group.name);
  const auto same = [&](const Group& other) { return other.ranks == group.ranks; };
  return fmt::format("{} {}", group.name, std::find_if(all.begin(), all.end(), same) - all.begin());
}

// The address at which this rank's ports are opened.
std::string gloo_address(const Options& options, int rank) {
  if (options.launch) return options.launch->address;
  if (options.host_of_rank.empty()) return "127.0.0.1";
  const int host = options.host_of_rank[static_cast<std::size_t>(rank)];
  if (link_bytes()) return host_address(host);
#if defined(__linux__)
  return "127.0.0." + std::to_string(host + 2);  // two addresses of one loopback stand in for two hosts
#else
  return "127.0.0.1";
#endif
}

}  // namespace

std::vector<Group> groups_of_rank(const Options& options, int rank) {
  require_possible(options);
  std::vector<Group> groups;
  for (const std::string& name : group_names(options))
    groups.push_back(group_with(groups_named(options, name), name, rank));
  return groups;
}

// One rank in one group. It observes the communicator: marks whom the rank waits for, and tells whoever traces or
// records the run.
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
      all_->on_sent({all_->rank_, peer, group.name, call.kind, call.type, message.bytes});
  }
  void waits(CollectiveKind kind, int peer) override {
    slot_->waits_in = kind;
    slot_->waits_for = peer < 0 ? ProgressSlot::kEverybody : group.ranks[static_cast<std::size_t>(peer)];
  }
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

RankGroups::RankGroups(const Options& options, int rank, ProgressSlot& slot, const MakeBackend& backend) : rank_(rank) {
  const auto link = options.link ? std::make_shared<RankLink>(*options.link) : nullptr;
  for (Group& group : groups_of_rank(options, rank)) {
    const std::size_t index = members_.size();
    auto moves = group.size() == 0 ? nullptr : backend(own_name(options, group), group, group.number_of(rank));
    if (moves != nullptr && link != nullptr) moves = over_slow_link(std::move(moves), link);
    members_.push_back(std::make_unique<Member>(*this, slot, index, std::move(group), std::move(moves)));
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

KernelTraffic RankGroups::kernel_traffic() const {
  KernelTraffic sum{true, 0, 0};
  for (const auto& member : members_) {
    if (member->backend == nullptr) continue;
    const KernelTraffic of_group = member->backend->kernel_traffic();
    sum.known = sum.known && of_group.known;
    sum.bytes_sent += of_group.bytes_sent;
    sum.bytes_received += of_group.bytes_received;
  }
  return sum;
}

std::int64_t RankGroups::header_bytes_sent() const {
  std::int64_t sum = 0;
  for (const auto& member : members_)
    if (member->backend != nullptr) sum += member->backend->header_bytes_sent();
  return sum;
}

std::unique_ptr<KeyStore> board_for(const Options& options) {
  require_possible(options);
  std::size_t keys = 0;
  int largest = 1;
  for (const std::string& name : group_names(options))
    for (const Group& group : groups_named(options, name)) {
      keys += GlooDevice::board_keys(group.size()) + NcclDevice::board_keys(group.size());
      largest = std::max(largest, group.size());
    }
  return std::make_unique<KeyStore>(keys, GlooDevice::board_value_bytes(largest));
}

std::unique_ptr<RankGroups> connect_over_gloo(const Options& options, int rank, KeyStore& store, Progress& progress,
                                              std::chrono::milliseconds timeout) {
  // The backends keep alive what they need of it.
  GlooDevice device(gloo_address(options, rank));
  const auto over_gloo = [&](const std::string& name, const Group& group, int number) {
    return device.connect(name, number, group.size(), store, timeout);
  };
  if (options.transport != TransportKind::nccl)
    return std::make_unique<RankGroups>(options, rank, progress.slot(rank), over_gloo);
  NcclDevice gpu(options.launch ? options.launch->local_rank : rank, "");  // whoever hears of an error knows the rank
  const auto asked_for = std::chrono::milliseconds(static_cast<long>(options.timeout_seconds * 1000));
  const auto over_nccl = [&](const std::string& name, const Group& group, int number) {
    return gpu.connect(name, number, group.size(), store, over_gloo(name, group, number),
                       std::min(timeout, kNcclTimeouts * asked_for));
  };
  auto groups = std::make_unique<RankGroups>(options, rank, progress.slot(rank), over_nccl);
  groups->chain_engine = gpu.chain_engine();
  groups->gpu = gpu.ordinal();
  return groups;
}

MemoryGroups::MemoryGroups(const Options& options, std::chrono::milliseconds timeout) : options_(options) {
  require_possible(options);
  for (const std::string& name : group_names(options))
    for (const Group& group : groups_named(options, name))
      groups_.emplace_back(own_name(options, group), std::make_unique<MemoryGroup>(group.size(), timeout, name));
}

std::unique_ptr<RankGroups> MemoryGroups::join(int rank, Progress& progress) {
  return std::make_unique<RankGroups>(options_, rank, progress.slot(rank),
                                      [&](const std::string& name, const Group&, int number) {
                                        const auto same = [&](const auto& known) { return known.first == name; };
                                        const auto found = std::find_if(groups_.begin(), groups_.end(), same);
                                        return found->second->backend(number);
                                      });
}

void MemoryGroups::abort(const std::string& reason) {
  for (auto& group : groups_) group.second->abort(reason);
}

}  // namespace muonwalk::sim
