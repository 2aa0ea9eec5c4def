#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sim/transport/gloo_mesh.hpp"
#include "sim/transport/lost_peer_watch.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// Gloo keeps the slots below 0x40 in the top byte for its own calls. Every message of ours names one: that of an
// envelope is always the same, that of a long payload holds its number and its length. Messages of send and recv have
// slots of their own, since their order is their own.
constexpr std::int64_t payload_limit = std::int64_t{1} << 40;

std::uint64_t envelope_slot(bool from_rank_to_rank) { return std::uint64_t{from_rank_to_rank ? 0x42u : 0x40u} << 56; }

std::uint64_t payload_slot(bool from_rank_to_rank, std::int64_t sequence, std::int64_t bytes) {
  return (std::uint64_t{from_rank_to_rank ? 0x43u : 0x41u} << 56) |
         (static_cast<std::uint64_t>(sequence & 0xffff) << 40) | static_cast<std::uint64_t>(bytes);
}

// An envelope as it travels.
struct WrittenEnvelope {
  std::int64_t sequence = 0;  // messages of its kind from this sender to this receiver before
  std::int64_t bytes = 0;     // of payload
  std::int64_t number = 0;
  std::int32_t root = 0;
  std::int32_t kind = 0;
  std::int32_t type = 0;
  std::int32_t inlined = 0;  // 1 when the payload is in the same message
};
static_assert(sizeof(WrittenEnvelope) == GlooHeaders::envelope, "the header count relies on the envelope's size");

bool is_inlined(std::int64_t bytes) { return bytes <= GlooHeaders::inline_limit; }

// The memory of an envelope's message, and Gloo's handle on it. There may be many of them, of which most are never
// full: memory that was never written takes no room.
struct Mail {
  static constexpr std::size_t size = sizeof(WrittenEnvelope) + static_cast<std::size_t>(GlooHeaders::inline_limit);
  std::unique_ptr<char[]> memory;
  Buffer buffer;
  bool posted = false;  // where it is kept ready for the next one: Gloo knows of it

  char* payload() { return memory.get() + sizeof(WrittenEnvelope); }
};

class GlooBackend;

struct GlooMessage : PostedMessage {
  GlooMessage(GlooBackend& its_backend, const Envelope& its_envelope, int its_peer, bool it_is_sent, void* its_data,
              std::int64_t its_bytes)
      : backend(&its_backend),
        envelope(its_envelope),
        peer(its_peer),
        sent(it_is_sent),
        data(its_data),
        bytes(its_bytes) {}
  ~GlooMessage() override;
  void wait(const WaitsFor& waits_for) override;

  GlooBackend* backend;
  Envelope envelope;
  int peer;
  bool sent;
  void* data;  // only read from where it is sent
  std::int64_t bytes;
  std::int64_t sequence = 0;
  Mail own_mail;         // of send and recv
  Mail* mail = nullptr;  // this, or that of the peer
  Buffer payload;        // null where it is in the envelope, or has not been handed to Gloo yet
};

class GlooBackend : public Backend {
 public:
  GlooBackend(std::string name, int rank, int size, std::shared_ptr<void> device, LostPeerWatch& watch, GlooMesh mesh,
              milliseconds timeout)
      : name_(std::move(name)),
        rank_(rank),
        timeout_(timeout),
        device_(std::move(device)),
        watch_(&watch),
        context_(std::move(mesh.context)),
        sockets_(std::move(mesh.sockets)),
        outbox_(static_cast<std::size_t>(size)),
        inbox_(static_cast<std::size_t>(size)) {
    for (auto& directions : sequences_)
      for (auto& by_peer : directions) by_peer.resize(static_cast<std::size_t>(size), 0);
    baseline_ = count_sent();
  }

  ~GlooBackend() override {
    let_bytes_arrive();
    // Closed before the buffers go, so that the event loop no longer knows of them.
    close("the group " + name_ + " is gone");
  }

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    // Gloo has one type for memory that is read and memory that is written.
    auto message = new_message(envelope, peer, true, const_cast<void*>(data), bytes);
    with_peer(peer, envelope.kind, [&] {
      // Also a rank that only sends has room for what comes back in the next collective.
      if (!envelope.from_rank_to_rank()) keep_ready_for_envelope(peer);
      send_envelope(*message);
      if (is_inlined(bytes)) return;
      // Nobody knows when a posted send will be waited for, so that it leaves at once; those of a collective are waited
      // for soon, and leave when there is room in the window.
      if (envelope.from_rank_to_rank())
        send_payload(*message);
      else
        waiting_for_room_.push_back(message.get());
    });
    return message;
  }

  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    auto message = new_message(envelope, peer, false, data, bytes);
    const bool apart = envelope.from_rank_to_rank();
    with_peer(peer, envelope.kind, [&] {
      if (apart) {
        message->mail->buffer->recv(peer, envelope_slot(true));
        headers_sent_ += GlooHeaders::preamble;
      } else {
        keep_ready_for_envelope(peer);
        unopened_.push_back(message.get());
      }
      if (is_inlined(bytes)) return;
      message->payload = buffer_over(data, static_cast<std::size_t>(bytes));
      message->payload->recv(peer, payload_slot(apart, message->sequence, bytes));
      headers_sent_ += GlooHeaders::preamble;
    });
    return message;
  }

  void wait(GlooMessage& message, const PostedMessage::WaitsFor& waits_for) {
    require_open();
    deadline_ = Clock::now() + timeout_;
    try {
      if (message.envelope.from_rank_to_rank()) {
        if (!message.sent) open_envelope(message, waits_for);
      } else {
        // First every rank says what it is doing and hears what the others do; only when all agree, long payloads move.
        while (!unopened_.empty()) open_envelope(*unopened_.front(), waits_for);
        send_payloads(waits_for);
      }
      if (message.payload && !message.sent) wait_until_received(message, *message.payload, waits_for);
      if (message.sent) wait_until_sent(message, waits_for);
    } catch (const Mismatch& wrong) {
      let_envelopes_leave();
      close(wrong.what());
      throw RunError(wrong.what());
    }
  }

  // A message is gone; where it was not waited for, the connections have been closed.
  void forget(GlooMessage* message) {
    for (auto* list : {&waiting_for_room_, &under_way_, &unopened_})
      list->erase(std::remove(list->begin(), list->end(), message), list->end());
  }

  std::optional<std::int64_t> kernel_bytes_sent() const override {
    if (closed_) return at_close_;
    std::optional<std::int64_t> sent = since_baseline();
    // What Gloo could not hand over at once its event loop hands over as soon as there is room.
    for (int i = 0; i < 100 && sent && *sent < payload_sent_ + headers_sent_; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
      sent = since_baseline();
    }
    // The kernel counts here, and a connection is gone: its rank has died. Unknown would leave the check out silently.
    if (baseline_ && !sent)
      throw PeerLostError(
          "what the kernel has sent in group " + name_ +
          " can't be counted any more: a connection is closed, the rank at its other end has died or left");
    return sent;
  }

  std::int64_t header_bytes_sent() const override { return headers_sent_; }

  void close(const std::string& reason) override {
    if (closed_) return;
    at_close_ = since_baseline();
    closed_ = true;
    reason_ = reason;
    for (int peer = 0; peer < static_cast<int>(inbox_.size()); ++peer) {
      if (peer == rank_) continue;
      try {
        context_->getPair(peer)->close();
      } catch (const std::exception&) {
        // It is closed already, which is all that was wanted.
      }
    }
  }

 private:
  struct Mismatch : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  void require_open() const {
    if (closed_) throw RunError(reason_);
  }

  milliseconds time_left() const {
    // Gloo takes 0 for "no limit".
    return std::max(std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()), milliseconds(1));
  }

  Buffer buffer_over(void* memory, std::size_t bytes) { return context_->createUnboundBuffer(memory, bytes); }

  void make(Mail& mail) {
    if (mail.buffer) return;
    mail.memory.reset(new char[Mail::size]);
    mail.buffer = buffer_over(mail.memory.get(), Mail::size);
  }

  std::unique_ptr<GlooMessage> new_message(const Envelope& envelope, int peer, bool sent, void* data,
                                           std::int64_t bytes) {
    require_open();
    deadline_ = Clock::now() + timeout_;
    if (bytes >= payload_limit)
      throw std::invalid_argument("a message of " + std::to_string(bytes) + " bytes was to be sent in group " + name_ +
                                  ", but a message may have at most " + std::to_string(payload_limit - 1) + " bytes");
    auto message = std::make_unique<GlooMessage>(*this, envelope, peer, sent, data, bytes);
    const auto p = static_cast<std::size_t>(peer);
    const bool apart = envelope.from_rank_to_rank();
    message->sequence = sequences_[apart][sent][p]++;
    message->mail = apart ? &message->own_mail : sent ? &outbox_[p] : &inbox_[p];
    make(*message->mail);
    return message;
  }

  void keep_ready_for_envelope(int peer) {
    Mail& in = inbox_[static_cast<std::size_t>(peer)];
    if (in.posted) return;
    make(in);
    in.buffer->recv(peer, envelope_slot(false));
    in.posted = true;
    headers_sent_ += GlooHeaders::preamble;
  }

  void send_envelope(GlooMessage& message) {
    WrittenEnvelope written;
    written.sequence = message.sequence;
    written.bytes = message.bytes;
    written.number = message.envelope.number;
    written.root = message.envelope.root;
    written.kind = static_cast<std::int32_t>(message.envelope.kind);
    written.type = static_cast<std::int32_t>(message.envelope.type);
    written.inlined = is_inlined(message.bytes) ? 1 : 0;
    std::memcpy(message.mail->memory.get(), &written, sizeof(written));
    const std::size_t payload = written.inlined ? static_cast<std::size_t>(message.bytes) : 0;
    if (payload > 0) std::memcpy(message.mail->payload(), message.data, payload);
    message.mail->buffer->send(message.peer, envelope_slot(message.envelope.from_rank_to_rank()), 0,
                               sizeof(written) + payload);
    headers_sent_ += 2 * GlooHeaders::preamble + GlooHeaders::envelope;
    payload_sent_ += static_cast<std::int64_t>(payload);
    under_way_.push_back(&message);
  }

  void send_payload(GlooMessage& message) {
    message.payload = buffer_over(message.data, static_cast<std::size_t>(message.bytes));
    message.payload->send(message.peer,
                          payload_slot(message.envelope.from_rank_to_rank(), message.sequence, message.bytes));
    headers_sent_ += 2 * GlooHeaders::preamble;
    payload_sent_ += message.bytes;
  }

  // Sends the long payloads of a collective in the order in which they were posted, with a bounded number of bytes
  // under way: each rank's list begins with another peer, so few pairs talk at a time and what they say stays in the
  // cache. Measured: 64 MiB over 4 and 8 ranks on 2 cores takes about 1.5 times as long when all are under way at once.
  void send_payloads(const PostedMessage::WaitsFor& waits_for) {
    constexpr std::int64_t window = std::int64_t{1} << 20;
    std::vector<GlooMessage*> sending;
    std::int64_t bytes_under_way = 0;
    std::size_t oldest = 0;
    for (; !waiting_for_room_.empty(); waiting_for_room_.erase(waiting_for_room_.begin())) {
      GlooMessage& next = *waiting_for_room_.front();
      for (; bytes_under_way > 0 && bytes_under_way + next.bytes > window; ++oldest) {
        wait_until_sent(*sending[oldest], waits_for);
        bytes_under_way -= sending[oldest]->bytes;
      }
      with_peer(next.peer, next.envelope.kind, [&] { send_payload(next); });
      sending.push_back(&next);
      bytes_under_way += next.bytes;
    }
  }

  void wait_until_sent(GlooMessage& message, const PostedMessage::WaitsFor& waits_for) {
    if (std::find(under_way_.begin(), under_way_.end(), &message) == under_way_.end()) return;
    waits_for(message.peer);
    with_peer(message.peer, message.envelope.kind, [&] {
      if (message.payload) wait_in_gloo(message, *message.payload, LostPeerWatch::End::sent);
      wait_in_gloo(message, *message.mail->buffer, LostPeerWatch::End::sent);
    });
    under_way_.erase(std::find(under_way_.begin(), under_way_.end(), &message));
  }

  void wait_until_received(const GlooMessage& message, gloo::transport::UnboundBuffer& buffer,
                           const PostedMessage::WaitsFor& waits_for) {
    waits_for(message.peer);
    with_peer(message.peer, message.envelope.kind,
              [&] { wait_in_gloo(message, buffer, LostPeerWatch::End::received); });
  }

  void wait_in_gloo(const GlooMessage& message, gloo::transport::UnboundBuffer& buffer, LostPeerWatch::End end) {
    static const TcpSocket unseen;  // never looked at: where sockets can't be told apart, Gloo has the last word
    const bool seen = sockets_.size() + 1 == inbox_.size();
    const auto nth = static_cast<std::size_t>(message.peer < rank_ ? message.peer : message.peer - 1);
    if (!watch_->wait(buffer, end, seen ? sockets_[nth] : unseen, time_left()))
      throw PeerLostError(closed_text(message.peer, message.envelope.kind));
  }

  std::string closed_text(int peer, CollectiveKind kind) const {
    return "the connection to rank " + std::to_string(peer) + " of group " + name_ + " was closed while rank " +
           std::to_string(rank_) + " was in " + collective_name(kind) + ": the rank has died or left";
  }

  // Waits for the envelope, compares it with what was expected, and takes the payload in it.
  void open_envelope(GlooMessage& message, const PostedMessage::WaitsFor& waits_for) {
    Mail& in = *message.mail;
    wait_until_received(message, *in.buffer, waits_for);
    const bool apart = message.envelope.from_rank_to_rank();
    if (!apart) {
      in.posted = false;
      unopened_.erase(std::find(unopened_.begin(), unopened_.end(), &message));
    }
    WrittenEnvelope written;
    std::memcpy(&written, in.memory.get(), sizeof(written));
    const Envelope theirs{static_cast<CollectiveKind>(written.kind), static_cast<ElementType>(written.type),
                          written.number, written.root};
    const std::string wrong =
        mismatch(name_, rank_, message.envelope, message.bytes, message.peer, theirs, written.bytes);
    if (!wrong.empty()) throw Mismatch(wrong);
    if (written.sequence != message.sequence)
      throw Mismatch("rank " + std::to_string(rank_) + " of group " + name_ + " expected message " +
                     std::to_string(message.sequence) + " of rank " + std::to_string(message.peer) +
                     " and got message " + std::to_string(written.sequence) + "; one has been lost");
    if (written.inlined && written.bytes > 0)
      std::memcpy(message.data, in.payload(), static_cast<std::size_t>(written.bytes));
    if (apart) return;
    try {
      keep_ready_for_envelope(message.peer);
    } catch (const std::exception&) {
      // The peer has left since, which concerns the next call, if any, and not this: it will fail in the same way.
    }
  }

  // Does something that may fail because of `peer`, and says so in our words.
  template <class Action>
  void with_peer(int peer, CollectiveKind kind, const Action& action) {
    try {
      action();
    } catch (const gloo::IoException& error) {
      const std::string where = "rank " + std::to_string(peer) + " of group " + name_;
      if (Clock::now() + milliseconds(1) >= deadline_ || std::strstr(error.what(), "Timed out") != nullptr)
        throw TimeoutError("rank " + std::to_string(rank_) + " waited " + std::to_string(timeout_.count()) + " ms in " +
                           collective_name(kind) + " for " + where +
                           ", which has stopped, makes other calls, or needs a longer timeout");
      throw PeerLostError(closed_text(peer, kind));
    } catch (const RunError&) {
      throw;
    } catch (const std::invalid_argument&) {
      throw;
    } catch (const std::exception& error) {
      throw RunError("Gloo failed between rank " + std::to_string(rank_) + " and rank " + std::to_string(peer) +
                     " of group " + name_ + " in " + collective_name(kind) + ": " + error.what());
    }
  }

  // Gloo counts a message as sent when the kernel has taken it, and resets its connections when it closes them, which
  // destroys what the kernel still holds: a rank that left at once after its last send took the message with it, and
  // the receiver waited for the rest of it until its timeout.
  void let_bytes_arrive() const {
    if (closed_) return;
    const Clock::time_point deadline = Clock::now() + timeout_;
    for (const TcpSocket& socket : sockets_)
      while (holds_unsent_bytes(socket) && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
  }

  // The peers shall read what this rank was about to do before they see its connection closed: then they can say what
  // was wrong. Not longer than half a second, because one of them may never come to read.
  void let_envelopes_leave() {
    deadline_ = std::min(deadline_, Clock::now() + milliseconds(500));
    for (const GlooMessage* message : under_way_) {
      if (message->envelope.from_rank_to_rank()) continue;
      try {
        message->mail->buffer->waitSend(time_left());
      } catch (const std::exception&) {
        return;  // Gloo closes all connections of a context in which a wait has failed
      }
    }
  }

  // The sum over the sockets; nothing when one is gone, or where they can't be told apart.
  std::optional<std::int64_t> count_sent() const {
    if (sockets_.size() + 1 != inbox_.size()) return std::nullopt;
    std::int64_t sum = 0;
    for (const TcpSocket& socket : sockets_) {
      const std::optional<std::int64_t> sent = bytes_sent(socket);
      if (!sent) return std::nullopt;
      sum += *sent;
    }
    return sum;
  }

  // Without what was said while the group was connected.
  std::optional<std::int64_t> since_baseline() const {
    const std::optional<std::int64_t> sent = count_sent();
    return sent && baseline_ ? std::optional(*sent - *baseline_) : std::nullopt;
  }

  std::string name_;
  int rank_;
  milliseconds timeout_;
  std::shared_ptr<void> device_;
  LostPeerWatch* watch_;  // the device's
  std::shared_ptr<gloo::Context> context_;
  std::vector<TcpSocket> sockets_;
  // Of collectives, by peer. There is at most one of their messages under way to and from each.
  std::vector<Mail> outbox_;
  std::vector<Mail> inbox_;
  std::vector<std::int64_t> sequences_[2][2];   // [from rank to rank or of collectives][in or out][peer]
  std::vector<GlooMessage*> unopened_;          // of a collective: receives whose envelope has not been looked at
  std::vector<GlooMessage*> waiting_for_room_;  // of a collective: long payloads that Gloo has not been given yet
  std::vector<GlooMessage*> under_way_;         // sent, and not waited for
  Clock::time_point deadline_;
  std::optional<std::int64_t> baseline_, at_close_;  // what the kernel counted as sent
  std::int64_t headers_sent_ = 0;
  std::int64_t payload_sent_ = 0;
  bool closed_ = false;
  std::string reason_;
};

GlooMessage::~GlooMessage() { backend->forget(this); }
void GlooMessage::wait(const WaitsFor& waits_for) { backend->wait(*this, waits_for); }

}  // namespace

std::unique_ptr<Backend> over_mesh(const std::string& name, int rank, int size, std::shared_ptr<void> device,
                                   LostPeerWatch& watch, GlooMesh mesh, milliseconds timeout) {
  return std::make_unique<GlooBackend>(name, rank, size, std::move(device), watch, std::move(mesh), timeout);
}

}  // namespace muonwalk::sim
