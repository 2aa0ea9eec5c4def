#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace muonwalk::sim {

/// The bytes of a file, plain or compressed with gzip, a piece at a time. Errors are UsageErrors that name the file.
class TraceInput {
 public:
  /// Throws UsageError when the file is not there, is not a regular file, can't be read or is empty.
  explicit TraceInput(const std::string& path);
  /// The bytes of a text that is in memory, not compressed; `name` stands for it in errors.
  TraceInput(const std::string& name, std::string text);
  ~TraceInput();
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  /// No byte is left; reads the next piece when this one is used up.
  bool at_end() { return at_ == end_ && !read_more(); }
  /// The byte that comes next. Only after at_end() has returned false.
  char byte() const { return *at_; }
  /// Goes on behind that byte.
  void next() { ++at_; }

  /// Bytes read so far, decompressed.
  std::int64_t position() const { return before_ + (at_ - begin_); }

  /// The reader has understood another token. A token longer than `kMostTokenBytes` is refused, so that a file of one
  /// endless string can't fill the memory.
  void token_ended() { token_began_ = position(); }
  /// 64 MiB.
  static constexpr std::int64_t kMostTokenBytes = std::int64_t{64} << 20;

 private:
  bool read_more();

  struct Stream;  // zlib's, kept out of this header
  std::string path_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<char[]> buffer_;
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::int64_t before_ = 0;
  std::int64_t token_began_ = 0;
};

/// A TraceInput as a pair of iterators, which is what the JSON parser reads from.
class TraceBytes {
 public:
  /// What the standard asks of an input iterator.
  /// @{
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;
  /// @}

  TraceBytes() = default;  ///< the end
  /// What is left of `input`, which must outlive the iterator.
  explicit TraceBytes(TraceInput& input) : input_(&input) {}

  /// The byte that comes next, the step behind it, and whether both are at the end, as input iterators have it.
  /// @{
  char operator*() const { return input_->byte(); }
  TraceBytes& operator++() {
    input_->next();
    return *this;
  }
  friend bool operator==(const TraceBytes& a, const TraceBytes& b) { return a.ended() == b.ended(); }
  friend bool operator!=(const TraceBytes& a, const TraceBytes& b) { return !(a == b); }
  /// @}

 private:
  bool ended() const { return input_ == nullptr || input_->at_end(); }

  TraceInput* input_ = nullptr;
};

/// A value in JSON that is neither an object nor an array, as the parser hands it over.
struct JsonScalar {
  /// A string, a whole number that fits into 64 bits, any other number, or none of these (true, false, null).
  enum class Kind { text, integer, decimal, nothing };
  Kind kind = Kind::nothing;          ///< which member holds the value
  const std::string* text = nullptr;  ///< of a text; of a decimal, its digits as they stand in the file
  std::int64_t integer = 0;           ///< of a whole number

  /// The text; empty when it is none.
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
