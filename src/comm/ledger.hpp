#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/comm/call.hpp"

namespace muonwalk {

/// Bytes and messages that one rank hands to, and takes from, the transport. Headers are not in it.
struct Traffic {
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t messages_sent = 0;  ///< Empty messages count.
  std::int64_t messages_received = 0;

  Traffic& operator+=(const Traffic& other);
  friend Traffic operator+(Traffic a, const Traffic& b) { return a += b; }
  friend Traffic operator-(const Traffic& a, const Traffic& b);
  friend bool operator==(const Traffic& a, const Traffic& b);
  friend bool operator!=(const Traffic& a, const Traffic& b) { return !(a == b); }
};

/// One line of the ledger: all calls of one kind with one element type in one group.
struct LedgerLine {
  std::string group;  ///< "dp", as Communicator::group() has it
  CollectiveKind kind = CollectiveKind::barrier;
  ElementType type = ElementType::bytes;
  std::int64_t calls = 0;
  Traffic traffic;  ///< The traffic of all these calls together.
};

/// What one rank moved, line by line in the order of first use. The communicator opens an entry for each call and adds
/// to it each message as it is handed over, so the count is of what was sent and not of what should be. Also used for
/// predictions, so that the two can be compared line by line.
class Ledger {
 public:
  /// A call begins. Returns the number of its line, for the messages that belong to it.
  std::size_t begin_call(const std::string& group, CollectiveKind kind, ElementType type);
  /// A message was handed to the backend, or has arrived: one message more in this line. Throws std::logic_error where
  /// there is no such line (any more).
  void count(std::size_t line, const Message& message);

  /// Adds `calls` calls with `traffic` to the line (made when new): how predictions are written.
  void add(const std::string& group, CollectiveKind kind, ElementType type, std::int64_t calls, const Traffic& traffic);

  /// Adds all lines of another ledger, `times` times.
  void add(const Ledger& other, int times);

  /// The line of that one's group, kind and type; one of no calls where there is none.
  LedgerLine line_like(const LedgerLine& like) const;
  /// The lines in the order of first use.
  const std::vector<LedgerLine>& lines() const { return lines_; }
  /// The sum of all lines, or of one group's.
  Traffic total(const std::string& group = {}) const;

 private:
  LedgerLine& line(const std::string& group, CollectiveKind kind, ElementType type);
  LedgerLine& line(std::size_t number);
  std::vector<LedgerLine> lines_;
};

/// The first line in which what was counted differs from what was predicted, as a sentence that names group, call,
/// element type and both numbers; empty when every line is equal to the byte. The order of the lines does not matter.
std::string first_difference(const Ledger& predicted, const Ledger& counted);

}  // namespace muonwalk
