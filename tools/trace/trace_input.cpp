#include "tools/trace/trace_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "src/errors.hpp"
#include "src/io/unfinished.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr const char* kNameATrace = "name a file that torch.profiler or a lesson's --trace wrote";
constexpr unsigned kPiece = 1u << 20;

UsageError unreadable(const std::string& path, const std::string& reason) {
  return UsageError(fmt::format("{} can't be read as a trace: {}; {}", in_quotes(path), reason, kNameATrace));
}

// In nanoseconds, a begin and a duration of this size still fit into 64 bits together.
constexpr std::int64_t kMostMicroseconds = 4'000'000'000'000'000;

// "5002216834593.415" → 5002216834593415. Nothing for digits with an exponent, or too many of them.
std::optional<std::int64_t> fixed_point_as_ns(const std::string& digits) {
  std::int64_t ns = 0;
  std::size_t i = 0;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative) ++i;
  const auto is_digit = [&](std::size_t at) { return at < digits.size() && digits[at] >= '0' && digits[at] <= '9'; };
  for (; is_digit(i); ++i) {
    ns = ns * 10 + (digits[i] - '0');
    if (ns > kMostMicroseconds) return std::nullopt;
  }
  if (i < digits.size() && digits[i] == '.') ++i;
  for (int place = 0; place < 3; ++place) ns = ns * 10 + (is_digit(i) ? digits[i++] - '0' : 0);
  if (is_digit(i) && digits[i] >= '5') ++ns;
  while (is_digit(i)) ++i;
  if (i != digits.size()) return std::nullopt;
  return negative ? -ns : ns;
}

}  // namespace

TraceInput::TraceInput(const std::string& name, std::string text) : path_(name), text_(std::move(text)) {
  setg(text_.data(), text_.data(), text_.data() + text_.size());
}

TraceInput::TraceInput(const std::string& path) : path_(path) {
  if (is_unfinished_name(path)) throw unreadable(path, "a run that was killed left it unfinished");
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw unreadable(path, std::strerror(errno));
  struct stat status = {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(descriptor);
    throw unreadable(path, !known                     ? "the system does not say what it is"
                           : S_ISDIR(status.st_mode)  ? "it is a folder"
                           : !S_ISREG(status.st_mode) ? "it is not a regular file"
                                                      : "it is empty");
  }
  file_ = gzdopen(descriptor, "rb");  // reads files that are not compressed as they are
  if (file_ == nullptr) {
    ::close(descriptor);
    throw unreadable(path, "there is no memory left for decompressing it");
  }
  gzbuffer(file_, kPiece);
  text_.resize(kPiece);
}

TraceInput::~TraceInput() {
  if (file_ != nullptr) gzclose_r(file_);
}

TraceInput::int_type TraceInput::underflow() {
  if (file_ == nullptr) return traits_type::eof();
  if (position() - token_began_ > kMostTokenBytes)
    throw unreadable(path_, fmt::format("from byte {} on, more than {} MiB follow without an end of the text or number",
                                        token_began_, kMostTokenBytes >> 20));
  before_ = position();
  char* const piece = text_.data();
  const int got = gzread(file_, piece, kPiece);
  setg(piece, piece, piece + std::max(0, got));
  int code = Z_OK;
  const char* reason = gzerror(file_, &code);
  if (got < 0)
    throw unreadable(path_, code == Z_ERRNO
                                ? std::strerror(errno)
                                : fmt::format("its gzip data are damaged after {} bytes ({})", before_, reason));
  if (got > 0) return traits_type::to_int_type(*gptr());
  if (code == Z_BUF_ERROR) throw unreadable(path_, fmt::format("its gzip data are cut off after {} bytes", before_));
  return traits_type::eof();
}

void TraceBudget::require_short(const std::string& text) const {
  if (static_cast<std::int64_t>(text.size()) <= kMostTextBytes) return;
  throw UsageError(fmt::format("{} holds a name of {} bytes, and no more than {} are kept of a name; {}",
                               in_quotes(path_), text.size(), kMostTextBytes, kNameATrace));
}

void TraceBudget::require_flat(std::size_t depth) const {
  if (depth <= kMostDepth) return;
  throw UsageError(fmt::format("{} nests its values more than {} deep, as no trace does; {}", in_quotes(path_),
                               kMostDepth, kNameATrace));
}

void TraceBudget::refuse() const {
  throw UsageError(fmt::format(
      "{} holds more events and names than are kept in memory: they would take more than {} MiB; record fewer steps",
      in_quotes(path_), kMostKeptBytes >> 20));
}

const std::string& JsonScalar::as_text() const {
  static const std::string none;
  return kind == Kind::text ? *text : none;
}

std::optional<std::int64_t> JsonScalar::as_integer() const {
  if (kind == Kind::integer) return integer;
  return kind == Kind::text ? number_from<std::int64_t>(*text) : std::nullopt;
}

std::optional<std::int64_t> JsonScalar::microseconds_as_ns() const {
  if (kind == Kind::integer) {
    if (integer > kMostMicroseconds || integer < -kMostMicroseconds) return std::nullopt;
    return integer * 1000;
  }
  if (kind != Kind::decimal) return std::nullopt;
  if (const auto exact = fixed_point_as_ns(*text)) return exact;
  const double value = std::strtod(text->c_str(), nullptr);
  if (!(std::fabs(value) <= static_cast<double>(kMostMicroseconds))) return std::nullopt;
  return std::llround(value * 1000);
}

std::string JsonScalar::as_label() const {
  if (kind == Kind::text || kind == Kind::decimal) return *text;
  return kind == Kind::integer ? std::to_string(integer) : "";
}

}  // namespace muonwalk::sim
