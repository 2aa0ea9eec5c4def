#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/io/file_beside.hpp"

namespace muonwalk::sim {

/// A Chrome trace that is being written: an object of some fields and, at its end, the array of events, one a line. The
/// file takes its place with `commit`, whole or not at all. Throws UsageError as FileBeside does.
class TraceFileWriter {
 public:
  /// `fields` are what stands beside the events: `"key":value,"key":value`.
  TraceFileWriter(const std::string& path, const std::string& fields);

  /// The same into `text`, which must outlive the writer; it has no place to take.
  TraceFileWriter(std::string* text, const std::string& fields);

  /// One event, a JSON object.
  void event(const std::string& json);
  /// All events were written.
  void finish();
  /// Puts the finished file in its place.
  void commit() {
    if (file_) file_->commit();
  }

 private:
  void begin(const std::string& fields);
  void flush();

  std::optional<FileBeside> file_;
  std::string* text_ = nullptr;
  std::string unwritten_;
  bool first_ = true;
};

/// Nanoseconds since `began_ns` as microseconds: "12.345".
std::string microseconds_text(std::int64_t moment_ns, std::int64_t began_ns);

/// The text in quotes, as JSON has it.
std::string quoted(const std::string& text);

}  // namespace muonwalk::sim
