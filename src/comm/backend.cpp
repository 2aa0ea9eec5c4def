#include "src/comm/backend.hpp"

namespace muonwalk {

namespace {

std::string call_text(const Envelope& call, std::int64_t bytes) {
  std::string text = collective_name(call.kind);
  if (call.kind == CollectiveKind::broadcast) text += " from root " + std::to_string(call.root);
  if (call.kind != CollectiveKind::barrier) {
    text += std::string(" of ") + element_name(call.type) + " with " + std::to_string(bytes) + " bytes";
  }
  return call.from_rank_to_rank() ? text : text + " (after " + std::to_string(call.number) + " collectives)";
}

// What rank `peer` does in the same call: a send here is a recv there.
bool belong_together(const Envelope& mine, const Envelope& theirs) {
  const bool kinds = mine.kind == CollectiveKind::recv ? theirs.kind == CollectiveKind::send : mine.kind == theirs.kind;
  return kinds && mine.type == theirs.type && mine.number == theirs.number && mine.root == theirs.root;
}

}  // namespace

std::string mismatch(const std::string& group, int rank, const Envelope& call, std::int64_t bytes, int peer,
                     const Envelope& peer_call, std::int64_t peer_bytes) {
  if (belong_together(call, peer_call) && bytes == peer_bytes) return "";
  return "the ranks of group " + group + " do not make the same calls: rank " + std::to_string(rank) + " is in " +
         call_text(call, bytes) + " from rank " + std::to_string(peer) + ", which sent for " +
         call_text(peer_call, peer_bytes) +
         "; all ranks must make the same calls in the same order with the same sizes";
}

}  // namespace muonwalk
