#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/replay/recording.hpp"
#include "sim/replay/span_buffer.hpp"
#include "src/comm/ledger.hpp"
#include "src/layout/buffer.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// What one rank has counted since the start, beside what was predicted for it, which the rank does not tell.
struct RankCost {
  Ledger predicted;                         ///< the prediction
  Ledger counted;                           ///< the rank's own count
  Index predicted_peak = -1;                ///< elements; −1: not predicted
  Index counted_peak = 0;                   ///< elements, as its MemoryMeter counted them
  std::optional<std::int64_t> kernel_sent;  ///< bytes of all groups, headers included, where the kernel counts them
  long long header_sent = 0;                ///< bytes of headers, as the transport counted them
  long kilobytes = 0;                       ///< the most memory that its process had
};

/// A parameter of a buffer that was shown.
struct ShownParameter {
  std::string name;  ///< the name that is printed
  int number = 0;    ///< its place in the list that the layout was planned from; maps colour it by this
};

/// One line of output about something that a rank holds, while it is being written and on its way to the parent:
/// `rank.show("w1", slice).rows(range, of)`. The calls say which part of the whole it is, for the range in brackets and
/// the bar at the end of the line.
struct Shown {
  /// Of something with a name and a shape.
  explicit Shown(const std::string& name = "", Shape shape = {});
  /// It can be handed on, but not copied.
  /// @{
  Shown(Shown&&) = default;
  Shown& operator=(Shown&&) = default;
  /// @}

  /// It holds these of `of` rows, columns or elements.
  /// @{
  Shown& rows(Range part, Index of) { return is_part("rows", part, of); }
  Shown& columns(Range part, Index of) { return is_part("columns", part, of); }
  Shown& elements(Range part, Index of) { return is_part("elements", part, of); }
  /// @}
  /// It holds this range of a buffer, and of the parameters that lie in it what is in that range.
  Shown& elements(Range part, const Buffer& buffer) { return elements(part, buffer.size).spans(part, buffer); }
  /// The same, where the line says nothing of a range: it is for recordings: the player draws the parameters.
  Shown& spans(Range part, const Buffer& buffer);
  /// It is all of it: a full bar and no range.
  Shown& whole() { return is_part("", {0, 1}, 1); }
  /// Free words at the end of the line.
  Shown& note(const std::string& words);
  /// It was made of what was shown under this name before, besides what it was itself: recorded, not printed.
  Shown& from(const std::string& name);
  /// The bytes of the line, where they are not 4 per element.
  Shown& bytes(Index count);

  RecordedBlock block;               ///< name, shape, part and note; nothing that only a recording knows
  bool has_bar = false;              ///< it was said which part of the whole it is
  std::vector<std::string> made_of;  ///< names, as from() was told
  /// All parameters of the buffer that spans() was told, in order. RecordedSpan::tensor of `block` is an index into
  /// these, until there is a recording.
  std::vector<ShownParameter> parameters;
  std::vector<float> values;  ///< row-major; empty where nobody asked for them

 private:
  Shown& is_part(const char* unit, Range part, Index of);
};

/// A line of words that a rank says.
struct Said {
  std::string line;  ///< the printed text, without the rank's label
};

/// A phase of a step that has ended (Rank::phase).
struct PhaseEnded {
  std::string name;    ///< the rank's name for it
  double seconds = 0;  ///< its duration
};

/// What a traced rank recorded in a step.
struct Traced {
  SpanBatch batch;  ///< this step's spans
  Ledger ledger;    ///< all steps so far
};

/// What a rank has written to its key store (KeyStore), where each rank has one of its own: the others have to hear of
/// it.
struct Posted {
  std::string key;          ///< the name in the key store
  std::vector<char> value;  ///< the key's value
};

/// An exception that ended a rank's step.
struct Failed {
  /// What the exception was: a UsageError, a PeerLostError (what happened to another rank is the cause), a
  /// TimeoutError, a StrangerError (no rank is to blame), or any other.
  enum class Kind : std::uint8_t { usage, peer_lost, other, timed_out, stranger };
  Kind kind = Kind::other;  ///< what was thrown
  std::string message;      ///< what it says
  double at = 0;            ///< when, on the monotonic clock
};

/// What the exception that is being handled says, and when.
Failed failure_now();

/// Throws what made a rank ("rank 3") fail in this step: a UsageError and a StrangerError as they are, anything else as
/// a RunError that names both.
[[noreturn]] void raise(const Failed& failure, const std::string& rank, const std::string& step);

/// Seconds on the clock that all processes of the machine share.
double monotonic_seconds();

/// The rank has done its step: nothing more of it will come.
struct EndOfStep {};

/// What a rank tells the parent: what it showed and said, what it sent (RecordedMove), moved in a step (Traffic) and
/// holds (NamedMatrix), and so on. Ranks that are processes send records through a pipe (report_stream.hpp), threads
/// hand them over.
using Report = std::variant<Shown, Said, PhaseEnded, RecordedMove, Traffic, NamedMatrix, RankCost, Traced, Posted,
                            Failed, EndOfStep>;

/// What all ranks told in a step: [rank], each in the order in which it told it.
using StepReports = std::vector<std::vector<Report>>;

/// Calls visit(rank, record) for all records of type `Kind`, in rank order.
template <class Kind, class Visit>
void for_each(const StepReports& reports, const Visit& visit) {
  for (std::size_t rank = 0; rank < reports.size(); ++rank)
    for (const Report& report : reports[rank])
      if (const Kind* of_kind = std::get_if<Kind>(&report)) visit(static_cast<int>(rank), *of_kind);
}

/// 16 hex digits that tell values from others: their 64-bit XXH3.
std::string digest_text(const std::vector<float>& values);
/// As above, for bytes.
std::string digest_text(const std::string& bytes);

}  // namespace muonwalk::sim
