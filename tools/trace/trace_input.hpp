#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <streambuf>
#include <string>
#include <utility>

struct gzFile_s;  // zlib's, kept out of this header

namespace muonwalk::sim {

/// Reads the bytes of a file, plain or compressed with gzip, a piece at a time. Errors are UsageErrors that name the
/// file.
class TraceInput : public std::streambuf {
 public:
  /// Opens a file. Throws UsageError when it is not there, is not a regular file, can't be read or is empty.
  explicit TraceInput(const std::string& path);
  /// Reads from a text in memory, which is not compressed. Errors call it `name`.
  TraceInput(const std::string& name, std::string text);
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;
  ~TraceInput() override;

  /// Tells whether all bytes have been read.
  bool at_end() { return sgetc() == traits_type::eof(); }
  /// How many bytes have been read so far, decompressed.
  std::int64_t position() const { return before_ + (gptr() - eback()); }

  /// Tells that the parser has understood another token. A token longer than `kMostTokenBytes` is refused, so that a
  /// file of one endless string can't fill the memory.
  void token_ended() { token_began_ = position(); }
  /// The longest token that is read, 64 MiB.
  static constexpr std::int64_t kMostTokenBytes = std::int64_t{64} << 20;

 protected:
  int_type underflow() override;

 private:
  std::string path_;
  gzFile_s* file_ = nullptr;  // none for a text in memory
  std::string text_;          // the text, or the piece that was read last
  std::int64_t before_ = 0, token_began_ = 0;
};

/// Limits what may be kept of one trace. A file of a few megabytes can unpack to any size, so all that is kept of it is
/// paid from here first: events, names, calls, tracks. What is copied later on, such as a name that goes into tables,
/// is charged for all of its copies.
class TraceBudget {
 public:
  /// Begins with all of kMostKeptBytes. Errors call the trace `path`.
  explicit TraceBudget(std::string path) : path_(std::move(path)) {}

  /// Pays for `bytes` that are about to be kept. Throws UsageError, one sentence, when they are too many.
  void take(std::int64_t bytes) {
    left_ -= bytes;
    if (left_ < 0) refuse();
  }
  /// Pays for a text that is kept once more, and for its entry in a table.
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
  /// takes up to 1.2 GB in all.
  static constexpr std::int64_t kMostKeptBytes = std::int64_t{1280} << 20;
  /// 1 MiB. The longest names of kernels have some thousand characters.
  static constexpr std::int64_t kMostTextBytes = std::int64_t{1} << 20;
  /// What torch.profiler writes is at most a dozen deep.
  static constexpr std::size_t kMostDepth = 256;
  /// A text is in the table of names, in tables of ranks or calls, in a summary, and in what is printed or drawn.
  static constexpr std::int64_t kCopiesOfText = 6;
  /// An event is kept as it was read, as it is given to others, and as intervals of the times that it counts into.
  static constexpr std::int64_t kBytesPerEvent = 40 + 32 + 5 * 16;
  /// What an entry of a table takes besides its text.
  static constexpr std::int64_t kBytesPerEntry = 64;

 private:
  [[noreturn]] void refuse() const;

  std::string path_;
  std::int64_t left_ = kMostKeptBytes;
};

/// A value in JSON that is neither an object nor an array, as the parser hands it over.
struct JsonScalar {
  /// A string; a whole number that fits into 64 bits; any other number; or none of these (true, false, null).
  enum class Kind { text, integer, decimal, nothing };
  Kind kind = Kind::nothing;
  const std::string* text = nullptr;  ///< A decimal has here its digits as they stand in the file.
  std::int64_t integer = 0;

  /// The text; empty when the value is none.
  const std::string& as_text() const;
  /// The whole number, also where it is written as a text ("4"); nothing when it is none.
  std::optional<std::int64_t> as_integer() const;
  /// Microseconds as whole nanoseconds, rounded half away from zero and exact up to three decimals, for a double would
  /// not hold the last digit of a clock that counts from 1970. Nothing when it is not a number, or more than 126 years.
  std::optional<std::int64_t> microseconds_as_ns() const;
  /// The text, or the number in digits: process and thread ids are either.
  std::string as_label() const;
};

}  // namespace muonwalk::sim
