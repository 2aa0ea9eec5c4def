#include "sim/transport/slow_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include "sim/fibers/fibers.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

using SlowClock = std::chrono::steady_clock;

constexpr double kLeastBandwidth = 1e-4;  // 64 KB take less than a second
constexpr double kMostBandwidth = 1e6;
constexpr double kMostLatency = 1e6;

std::int64_t slow_clock_ns() {
  if (fiber::inside()) return fiber::clock_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SlowClock::now().time_since_epoch()).count();
}

// The number that `text` begins with; `rest` is what follows it. NaN where there is none.
double leading_number(const std::string& text, std::string& rest) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  rest = end;
  return end == text.c_str() || std::isspace(static_cast<unsigned char>(text[0])) ? std::nan("") : number;
}

class SlowMessage : public PostedMessage {
 public:
  SlowMessage(std::unique_ptr<PostedMessage> message, int peer, std::int64_t done_ns)
      : message_(std::move(message)), peer_(peer), done_ns_(done_ns) {}

  void wait(const WaitsFor& waits_for) override {
    message_->wait(waits_for);
    if (slow_clock_ns() >= done_ns_) return;
    waits_for(peer_);
    if (fiber::inside()) return fiber::sleep_until(done_ns_);
    std::this_thread::sleep_until(SlowClock::time_point(std::chrono::nanoseconds(done_ns_)));
  }

 private:
  std::unique_ptr<PostedMessage> message_;
  int peer_;
  std::int64_t done_ns_;
};

class SlowBackend : public Backend {
 public:
  SlowBackend(std::unique_ptr<Backend> backend, std::shared_ptr<RankLink> link)
      : backend_(std::move(backend)), link_(std::move(link)) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    auto message = backend_->post_send(envelope, peer, data, bytes);
    const std::int64_t done_ns = link_->out.put(slow_clock_ns(), bytes).left_ns;
    return std::make_unique<SlowMessage>(std::move(message), peer, done_ns);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    auto message = backend_->post_receive(envelope, peer, data, bytes);
    const std::int64_t done_ns = link_->in.put(slow_clock_ns(), bytes).arrived_ns;
    return std::make_unique<SlowMessage>(std::move(message), peer, done_ns);
  }
  Exchanger* exchanger() override { return backend_->exchanger(); }
  std::optional<std::int64_t> kernel_bytes_sent() const override { return backend_->kernel_bytes_sent(); }
  std::int64_t header_bytes_sent() const override { return backend_->header_bytes_sent(); }
  void close(const std::string& reason) override { backend_->close(reason); }

 private:
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<RankLink> link_;
};

}  // namespace

LinkSpeed parse_link_speed(const std::string& option, const std::string& text) {
  std::string rest, nothing;
  LinkSpeed link;
  link.gigabytes_per_second = leading_number(text, rest);
  const bool two = !rest.empty() && rest[0] == ',';
  link.latency_us = two ? leading_number(rest.substr(1), nothing) : std::nan("");
  const bool numbers = std::isfinite(link.gigabytes_per_second) && std::isfinite(link.latency_us) && nothing.empty();
  if (!numbers)
    throw UsageError(fmt::format("{} {} is not a link; it takes GB/s and microseconds, for example {} 0.05,200", option,
                                 as_typed(text), option));
  if (link.gigabytes_per_second < kLeastBandwidth || link.gigabytes_per_second > kMostBandwidth)
    throw UsageError(
        fmt::format("{} {} asks for a bandwidth of {:g} GB/s; it takes {:g} to {:g}, for example {} 0.05,200", option,
                    as_typed(text), link.gigabytes_per_second, kLeastBandwidth, kMostBandwidth, option));
  if (link.latency_us < 0 || link.latency_us > kMostLatency)
    throw UsageError(fmt::format("{} {} asks for a latency of {:g} µs; it takes 0 to {:g}, for example {} 0.05,200",
                                 option, as_typed(text), link.latency_us, kMostLatency, option));
  return link;
}

std::string link_speed_text(const LinkSpeed& link) {
  return fmt::format("{:g} GB/s, {:g} µs", link.gigabytes_per_second, link.latency_us);
}

LinkDirection::Times LinkDirection::put(std::int64_t now_ns, std::int64_t bytes) {
  const double sending_ns = static_cast<double>(bytes) / link_.gigabytes_per_second;
  free_ns_ = std::max(free_ns_, now_ns) + std::llround(sending_ns);
  return {free_ns_, free_ns_ + std::llround(link_.latency_us * 1e3)};
}

std::unique_ptr<Backend> over_slow_link(std::unique_ptr<Backend> backend, std::shared_ptr<RankLink> link) {
  return std::make_unique<SlowBackend>(std::move(backend), std::move(link));
}

}  // namespace muonwalk::sim
