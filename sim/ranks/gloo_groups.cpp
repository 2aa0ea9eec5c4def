#include "sim/ranks/gloo_groups.hpp"

#include <algorithm>

#include "sim/ranks/private_network.hpp"
#include "sim/transport/gloo_device.hpp"
#include "sim/transport/nccl_device.hpp"

namespace muonwalk::sim {
namespace {

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

}  // namespace

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

std::unique_ptr<RankGroups> connect_over_gloo(const Options& options, int rank, KeyStore& store, Progress& progress,
                                              std::chrono::milliseconds timeout) {
  const RunGroups all(options);
  // The backends keep alive what they need of it.
  GlooDevice device(gloo_address(options, rank));
  const auto over_gloo = [&](const std::string& name, const Group& group, int number) {
    return device.connect(name, number, group.size(), store, timeout);
  };
  if (options.transport != TransportKind::nccl)
    return std::make_unique<RankGroups>(all, options.set_up.link, rank, progress.slot(rank), over_gloo);
  NcclDevice gpu(options.launch ? options.launch->local_rank : rank, "");  // whoever hears of an error knows the rank
  const auto asked_for = std::chrono::milliseconds(static_cast<long>(options.timeout_seconds * 1000));
  const auto over_nccl = [&](const std::string& name, const Group& group, int number) {
    return gpu.connect(name, number, group.size(), store, over_gloo(name, group, number),
                       std::min(timeout, kNcclTimeouts * asked_for));
  };
  auto groups = std::make_unique<RankGroups>(all, options.set_up.link, rank, progress.slot(rank), over_nccl);
  groups->chain_engine = gpu.chain_engine();
  groups->gpu = gpu.ordinal();
  return groups;
}

}  // namespace muonwalk::sim
