#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sim/ranks/reports.hpp"

namespace muonwalk::sim {

/// Writes records to a pipe, of which the other end belongs to the same program: two lengths, then what the record has
/// besides its values, then these, from where they lie. Small records are written together.
class RecordWriter {
 public:
  /// `pipe` is a file that can be written, and stays the caller's.
  explicit RecordWriter(int pipe) : pipe_(pipe) {}
  /// The bytes of a record, which stays as it is; all of them by the time of the next flush. False: nobody reads it.
  bool write(Report& report);
  /// Writes what was kept back. False when nobody reads any more.
  bool flush();

 private:
  int pipe_;
  std::vector<std::byte> kept_;
};

/// Puts records together again from bytes that come in pieces of any size. Long values are read to where they will
/// stay: reader.room() says where the next bytes belong, and reader.took(n) that n of them have come.
class ReportReader {
 public:
  /// Where to put the next bytes, and how many at most.
  std::pair<std::byte*, std::size_t> room();
  /// So many bytes have been put there. Throws RunError when they are not records.
  void took(std::size_t count);
  /// The records that are whole by now, in order; they are handed over.
  std::vector<Report> take() { return std::exchange(whole_, {}); }

 private:
  bool next_piece();

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what has come and was not yet looked at
  std::optional<Report> open_;       // lacks some of its values
  std::byte* missing_ = nullptr;     // where the first of them belongs
  std::size_t missing_bytes_ = 0;
  std::vector<Report> whole_;
};

}  // namespace muonwalk::sim
