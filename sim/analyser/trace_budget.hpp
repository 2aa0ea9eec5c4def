#pragma once

#include <cstdint>
#include <string>

namespace muonwalk::sim {

/// What may be kept of one trace. A file of a few megabytes can unpack to any size, so all that is kept of it is paid
/// from here first: events, names, calls, tracks, and how deep its values nest. What costs a multiple of itself later
/// on, such as a name that is copied into tables and pages, is charged with that multiple.
class TraceBudget {
 public:
  /// The budget of the trace that errors call `path`.
  explicit TraceBudget(std::string path) : path_(std::move(path)) {}

  /// Pays for `bytes` that are about to be kept. Throws UsageError, one sentence, when they are too many.
  void take(std::int64_t bytes) {
    left_ -= bytes;
    if (left_ < 0) refuse();
  }
  /// Pays for a text that is kept once more, and for the table that it is kept in.
  void take_text(const std::string& text) {
    take(kCopiesOfText * (static_cast<std::int64_t>(text.size()) + kBytesPerEntry));
  }
  /// Pays for an event.
  void take_event() { take(kBytesPerEvent); }
  /// Refuses a text of more than kMostTextBytes.
  void require_short(const std::string& text) const;
  /// Refuses values that lie in more than kMostDepth others.
  void require_flat(std::size_t depth) const;

  /// 1.25 GiB, enough for 8 million events and some hundred thousand names. Measured at that limit, muonwalk-trace
  /// takes up to 1.2 GB in all, and up to 2.2 GB where it draws a page or a picture.
  static constexpr std::int64_t kMostKeptBytes = std::int64_t{1280} << 20;
  /// 1 MiB. The longest names of kernels have some thousand characters.
  static constexpr std::int64_t kMostTextBytes = std::int64_t{1} << 20;
  /// What torch.profiler writes is at most a dozen deep.
  static constexpr std::size_t kMostDepth = 256;
  /// A text is in the table of names, in tables of ranks or calls, in a summary, and in what is printed or drawn.
  static constexpr std::int64_t kCopiesOfText = 6;
  /// An event as it was read, as it is given to others, and as intervals of the times that it counts into.
  static constexpr std::int64_t kBytesPerEvent = 40 + 32 + 5 * 16;
  /// An entry of a table, beside its text.
  static constexpr std::int64_t kBytesPerEntry = 64;

 private:
  [[noreturn]] void refuse() const;

  std::string path_;
  std::int64_t left_ = kMostKeptBytes;
};

}  // namespace muonwalk::sim
