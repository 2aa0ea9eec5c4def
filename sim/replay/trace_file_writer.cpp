#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/replay/trace_writers.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {

TraceFileWriter::TraceFileWriter(std::string* text, const std::string& fields, std::int64_t began_ns)
    : text_(text), began_ns_(began_ns), unwritten_(fmt::format("{{{},\n\"traceEvents\":[", fields)) {}

TraceFileWriter::TraceFileWriter(const std::string& path, const std::string& fields, std::int64_t began_ns)
    : TraceFileWriter(nullptr, fields, began_ns) {
  file_ = std::make_unique<FileBeside>(path);
}

void TraceFileWriter::event(const std::string& json) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  unwritten_ += first_ ? "\n" : ",\n";
  unwritten_ += json;
  first_ = false;
  if (unwritten_.size() >= kPiece) flush();
}

void TraceFileWriter::slice(int process, int thread, const char* category, const std::string& name,
                            std::int64_t begin_ns, std::int64_t end_ns, const std::string& arguments) {
  event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":{},"ts":{},"dur":{},"args":{{{}}}}})", process,
                    thread, category, quoted(name), time(begin_ns), microseconds_text(end_ns - begin_ns), arguments));
}

void TraceFileWriter::name(const char* what, int process, int thread, const std::string& text, int place) {
  event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_name","args":{{"name":{}}}}})", process, thread, what,
                    quoted(text)));
  event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_sort_index","args":{{"sort_index":{}}}}})", process,
                    thread, what, place));
}

std::string TraceFileWriter::time(std::int64_t moment_ns) const { return microseconds_text(moment_ns - began_ns_); }

std::unique_ptr<FileBeside> TraceFileWriter::finish() {
  unwritten_ += "\n]}\n";
  flush();
  return std::move(file_);
}

void TraceFileWriter::flush() {
  if (file_)
    file_->write(unwritten_.data(), unwritten_.size());
  else
    *text_ += unwritten_;
  unwritten_.clear();
}

std::string microseconds_text(std::int64_t ns) {
  const std::int64_t size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string quoted(const std::string& text) {
  return nlohmann::json(visible_name(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muonwalk::sim
