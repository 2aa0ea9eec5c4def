#include "src/comm/ledger.hpp"

#include <stdexcept>

namespace muonwalk {

Traffic& Traffic::operator+=(const Traffic& other) {
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  messages_sent += other.messages_sent;
  messages_received += other.messages_received;
  return *this;
}

Traffic operator-(const Traffic& a, const Traffic& b) {
  return {a.bytes_sent - b.bytes_sent, a.bytes_received - b.bytes_received, a.messages_sent - b.messages_sent,
          a.messages_received - b.messages_received};
}

bool operator==(const Traffic& a, const Traffic& b) {
  return a.bytes_sent == b.bytes_sent && a.bytes_received == b.bytes_received && a.messages_sent == b.messages_sent &&
         a.messages_received == b.messages_received;
}

LedgerLine& Ledger::line(const std::string& group, CollectiveKind kind, ElementType type) {
  for (LedgerLine& known : lines_)
    if (known.kind == kind && known.type == type && known.group == group) return known;
  return lines_.emplace_back(LedgerLine{group, kind, type, 0, Traffic()});
}

LedgerLine Ledger::line_like(const LedgerLine& like) const {
  for (const LedgerLine& known : lines_)
    if (known.kind == like.kind && known.type == like.type && known.group == like.group) return known;
  return {like.group, like.kind, like.type, 0, Traffic()};
}

LedgerLine& Ledger::line(std::size_t number) {
  if (number >= lines_.size()) throw std::logic_error("the ledger was told of a message of no call that has begun");
  return lines_[number];
}

std::size_t Ledger::begin_call(const std::string& group, CollectiveKind kind, ElementType type) {
  LedgerLine& opened = line(group, kind, type);
  opened.calls += 1;
  return static_cast<std::size_t>(&opened - lines_.data());
}

void Ledger::count(std::size_t number, const Message& message) {
  line(number).traffic += message.sent ? Traffic{message.bytes, 0, 1, 0} : Traffic{0, message.bytes, 0, 1};
}

void Ledger::add(const std::string& group, CollectiveKind kind, ElementType type, std::int64_t calls,
                 const Traffic& traffic) {
  LedgerLine& known = line(group, kind, type);
  known.calls += calls;
  known.traffic += traffic;
}

void Ledger::add(const Ledger& other, int times) {
  const std::vector<LedgerLine> lines = other.lines();  // a copy: it may be this one
  for (int i = 0; i < times; ++i)
    for (const LedgerLine& line : lines) add(line.group, line.kind, line.type, line.calls, line.traffic);
}

Traffic Ledger::total(const std::string& group) const {
  Traffic sum;
  for (const LedgerLine& known : lines_)
    if (group.empty() || known.group == group) sum += known.traffic;
  return sum;
}

namespace {

std::string differing_number(const LedgerLine& predicted, const LedgerLine& counted) {
  const struct {
    const char* name;
    std::int64_t predicted;
    std::int64_t counted;
  } numbers[] = {
      {"calls", predicted.calls, counted.calls},
      {"bytes sent", predicted.traffic.bytes_sent, counted.traffic.bytes_sent},
      {"bytes received", predicted.traffic.bytes_received, counted.traffic.bytes_received},
      {"messages sent", predicted.traffic.messages_sent, counted.traffic.messages_sent},
      {"messages received", predicted.traffic.messages_received, counted.traffic.messages_received},
  };
  for (const auto& number : numbers) {
    if (number.predicted == number.counted) continue;
    return std::string(collective_name(predicted.kind)) + " of " + element_name(predicted.type) + " in group " +
           predicted.group + ", " + number.name + ": " + std::to_string(number.predicted) + " predicted, " +
           std::to_string(number.counted) + " counted";
  }
  return "";
}

}  // namespace

std::string first_difference(const Ledger& predicted, const Ledger& counted) {
  Ledger all = predicted;
  all.add(counted, 1);
  for (const LedgerLine& line : all.lines()) {
    const std::string difference = differing_number(predicted.line_like(line), counted.line_like(line));
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace muonwalk
