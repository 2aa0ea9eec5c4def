#include "sim/ranks/report_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "src/errors.hpp"
#include "src/io/open_file.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;  // what most pipes hold
constexpr std::size_t kLongValues = 4096;                   // bytes: from here on values are not copied
// More than this no record holds, so that bytes that are not a record can't ask for memory that no machine has.
constexpr std::size_t kMostValueBytes = std::size_t{1} << 32;

struct Lengths {
  std::uint64_t front = 0;   // which kind of record, and its fields
  std::uint64_t values = 0;  // bytes of its one long array
};

[[noreturn]] void refuse() { throw RunError("what a rank sent to its parent is not a record"); }

// Takes a record's fields, one after the other, and either appends them to `to` or fills them with what is at `next`.
// One list of fields serves both directions.
class Fields {
 public:
  explicit Fields(std::vector<std::byte>& to) : to_(&to) {}
  Fields(const std::byte* next, const std::byte* end, std::size_t values)
      : value_bytes(values), next_(next), end_(end) {}

  // What is small.
  template <class... All>
  void operator()(All&... all) {
    (one(all), ...);
  }

  // The one long array that a record may have. It is not copied: `at` says where it lies, or where it belongs.
  template <class T>
  void values(std::vector<T>& array) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (to_ == nullptr && value_bytes % sizeof(T) != 0) refuse();
    if (to_ == nullptr) array.resize(value_bytes / sizeof(T));
    at = reinterpret_cast<std::byte*>(array.data());
    value_bytes = array.size() * sizeof(T);
  }
  void values(Matrix& matrix) {
    Index rows = matrix.rows(), cols = matrix.cols();
    (*this)(rows, cols);
    const auto size = static_cast<Index>(value_bytes / sizeof(float));
    const auto fits = [&] {
      return rows >= 0 && cols >= 0 && (cols == 0 || rows <= size / cols) && rows * cols == size;
    };
    if (to_ == nullptr && (!fits() || value_bytes % sizeof(float) != 0)) refuse();
    if (to_ == nullptr) matrix = Matrix(rows, cols);
    at = reinterpret_cast<std::byte*>(matrix.data());
    value_bytes = static_cast<std::size_t>(matrix.bytes());
  }

  // When reading: everything was read, and values that come have a place.
  void expect_end() const {
    if (next_ != end_ || (value_bytes > 0 && at == nullptr)) refuse();
  }

  std::byte* at = nullptr;
  std::size_t value_bytes = 0;

 private:
  void bytes(void* data, std::size_t count) {
    if (to_ != nullptr) {
      const auto* first = static_cast<const std::byte*>(data);
      to_->insert(to_->end(), first, first + count);
    } else {
      if (count > static_cast<std::size_t>(end_ - next_)) refuse();
      if (count > 0) std::memcpy(data, next_, count);
      next_ += count;
    }
  }
  template <class T>
  void one(T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes(&value, sizeof value);
  }
  void one(bool& value) {  // of a byte that is neither 0 nor 1, a bool would be neither true nor false
    std::uint8_t byte = value ? 1 : 0;
    one(byte);
    value = byte != 0;
  }
  template <class Container>
  void size_of(Container& container) {
    std::size_t size = container.size();
    one(size);
    if (to_ == nullptr && size > static_cast<std::size_t>(end_ - next_)) refuse();  // each takes a byte at least
    container.resize(size);
  }
  void one(std::string& text) {
    size_of(text);
    bytes(text.data(), text.size());
  }
  template <class T>
  void one(std::optional<T>& value) {
    bool there = value.has_value();
    one(there);
    if (there && !value) value.emplace();
    if (there) one(*value);
  }
  template <class T>
  void one(std::vector<T>& all) {
    size_of(all);
    for (T& each : all) one(each);
  }
  void one(RecordedSpan& span) { (*this)(span.tensor, span.begin, span.end, span.first); }
  void one(ShownParameter& parameter) { (*this)(parameter.name, parameter.number); }
  void one(Ledger& ledger) {
    std::vector<LedgerLine> lines = ledger.lines();
    size_of(lines);
    for (LedgerLine& line : lines) {
      (*this)(line.group, line.kind, line.type, line.calls, line.traffic);
      if (to_ == nullptr) ledger.add(line.group, line.kind, line.type, line.calls, line.traffic);
    }
  }
  void one(Traffic& moved) {
    (*this)(moved.bytes_sent, moved.bytes_received, moved.messages_sent, moved.messages_received);
  }

  std::vector<std::byte>* to_ = nullptr;
  const std::byte* next_ = nullptr;
  const std::byte* end_ = nullptr;
};

void list(Fields& fields, Shown& shown) {
  RecordedBlock& block = shown.block;
  fields(block.name, block.rows, block.cols, block.flat, block.bytes, block.unit, block.begin, block.end, block.of,
         block.note, block.spans, shown.has_bar, shown.made_of, shown.parameters);
  fields.values(shown.values);
}
void list(Fields& fields, Said& said) { fields(said.line); }
void list(Fields& fields, PhaseEnded& phase) { fields(phase.name, phase.seconds); }
void list(Fields& fields, RecordedMove& move) {
  fields(move.from, move.to, move.group, move.collective, move.type, move.elements, move.bytes, move.call);
}
void list(Fields& fields, Traffic& moved) { fields(moved); }
void list(Fields& fields, NamedMatrix& held) {
  fields(held.name, held.first_row, held.first_col);
  fields.values(held.matrix);
}
void list(Fields& fields, RankCost& cost) {
  fields(cost.counted, cost.counted_peak, cost.kernel_sent, cost.header_sent, cost.kilobytes);
}
void list(Fields& fields, Traced& traced) {
  SpanBatch& batch = traced.batch;
  fields(batch.names, batch.dropped, batch.full_since_ns, traced.ledger);
  fields.values(batch.spans);
}
void list(Fields& fields, Posted& posted) {
  fields(posted.key);
  fields.values(posted.value);
}
void list(Fields& fields, Failed& failed) { fields(failed.kind, failed.message, failed.at); }
void list(Fields&, EndOfStep&) {}

// Makes a record of the kind with this number in the variant.
template <std::size_t Kind = 0>
Report record_of_kind(std::size_t kind) {
  if constexpr (Kind == std::variant_size_v<Report>) {
    refuse();
  } else {
    if (kind != Kind) return record_of_kind<Kind + 1>(kind);
    return Report(std::in_place_index<Kind>);
  }
}

}  // namespace

bool RecordWriter::write(Report& report) {
  const std::size_t begin = kept_.size();
  kept_.resize(begin + sizeof(Lengths));
  kept_.push_back(static_cast<std::byte>(report.index()));
  Fields fields(kept_);
  std::visit([&](auto& kind) { list(fields, kind); }, report);
  if (fields.value_bytes > kMostValueBytes) {
    kept_.resize(begin);
    throw RunError("a rank was to hand over " + std::to_string(fields.value_bytes) +
                   " bytes at once, but a record holds at most 4 GiB; hand over smaller matrices");
  }
  const Lengths lengths{kept_.size() - begin - sizeof lengths, fields.value_bytes};
  std::memcpy(&kept_[begin], &lengths, sizeof lengths);
  if (fields.value_bytes >= kLongValues) return flush() && write_all(pipe_, fields.at, fields.value_bytes);
  kept_.insert(kept_.end(), fields.at, fields.at + fields.value_bytes);
  return kept_.size() < kBufferBytes || flush();
}

bool RecordWriter::flush() {
  const bool heard = write_all(pipe_, kept_.data(), kept_.size());
  kept_.clear();
  return heard;
}

std::pair<std::byte*, std::size_t> ReportReader::room() {
  if (open_) return {missing_, missing_bytes_};
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  end_ -= std::exchange(begin_, 0);
  buffer_.resize(end_ + kBufferBytes);
  return {buffer_.data() + end_, buffer_.size() - end_};
}

void ReportReader::took(std::size_t count) {
  if (open_) {
    missing_ += count;
    missing_bytes_ -= count;
  } else {
    end_ += count;
  }
  while (next_piece()) {
  }
}

// Looks at one record, or at one more piece of its values; false when that has to wait for more bytes.
bool ReportReader::next_piece() {
  if (open_) {
    const std::size_t here = std::min(end_ - begin_, missing_bytes_);
    if (here > 0) std::memcpy(missing_, &buffer_[begin_], here);
    begin_ += here;
    missing_ += here;
    missing_bytes_ -= here;
    if (missing_bytes_ > 0) return false;
    whole_.push_back(std::move(*open_));
    open_.reset();
    return true;
  }
  Lengths lengths;
  if (end_ - begin_ < sizeof lengths) return false;
  std::memcpy(&lengths, &buffer_[begin_], sizeof lengths);
  if (lengths.front == 0 || lengths.values > kMostValueBytes) refuse();
  if (end_ - begin_ - sizeof lengths < lengths.front) return false;
  const std::byte* front = &buffer_[begin_ + sizeof lengths];
  open_ = record_of_kind(std::to_integer<std::size_t>(*front));
  Fields fields(front + 1, front + lengths.front, lengths.values);
  std::visit([&](auto& kind) { list(fields, kind); }, *open_);
  fields.expect_end();
  begin_ += sizeof lengths + lengths.front;
  missing_ = fields.at;
  missing_bytes_ = lengths.values;
  return true;
}

}  // namespace muonwalk::sim
