#include "sim/ranks/reports.hpp"

#include <fmt/format.h>
#include <time.h>
#include <xxhash.h>

#include <algorithm>

#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// The name of a tensor may come from a file; "w, orthogonal" is such a name and in which state it is.
std::string shown_name(const std::string& name) {
  const std::size_t comma = std::min(name.find(", "), name.size());
  return visible_name(name.substr(0, comma)) + visible_name(name.substr(comma));
}

}  // namespace

Shown::Shown(const std::string& name, Shape shape) {
  block.name = shown_name(name);
  block.rows = shape.rows;
  block.cols = shape.cols;
  block.bytes = 4 * shape.size();
}

Shown& Shown::is_part(const char* unit, Range part, Index of) {
  has_bar = true;
  block.unit = unit;
  block.begin = part.begin;
  block.end = part.end;
  block.of = of;
  return *this;
}

Shown& Shown::spans(Range part, const Buffer& buffer) {
  parameters.clear();
  block.spans.emplace();
  for (const DistMeta& meta : buffer.parameters) {
    const Range held = intersection(meta.global_range, part);
    if (!held.empty())
      block.spans->push_back({static_cast<int>(parameters.size()), held.begin - part.begin, held.end - part.begin,
                              held.begin - meta.global_range.begin});
    parameters.push_back({shown_name(meta.name), meta.parameter});
  }
  return *this;
}

Shown& Shown::note(const std::string& words) {
  block.note = words;
  return *this;
}

Shown& Shown::from(const std::string& name) {
  made_of.push_back(shown_name(name));
  return *this;
}

Shown& Shown::bytes(Index count) {
  block.bytes = count;
  return *this;
}

Failed failure_now() {
  Failed failure{Failed::Kind::other, kUnknownError, monotonic_seconds()};
  try {
    throw;
  } catch (const std::exception& error) {
    failure.message = error_text(error);
    if (dynamic_cast<const UsageError*>(&error) != nullptr) failure.kind = Failed::Kind::usage;
    if (dynamic_cast<const PeerLostError*>(&error) != nullptr) failure.kind = Failed::Kind::peer_lost;
    if (dynamic_cast<const TimeoutError*>(&error) != nullptr) failure.kind = Failed::Kind::timed_out;
    if (dynamic_cast<const StrangerError*>(&error) != nullptr) failure.kind = Failed::Kind::stranger;
  } catch (...) {
  }
  return failure;
}

void raise(const Failed& failure, const std::string& rank, const std::string& step) {
  if (failure.kind == Failed::Kind::usage) throw UsageError(failure.message);
  if (failure.kind == Failed::Kind::stranger) throw StrangerError(failure.message);
  throw RunError(fmt::format("{} failed in step '{}': {}", rank, step, failure.message));
}

double monotonic_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string digest_text(const std::vector<float>& values) {
  return fmt::format("{:016x}", XXH3_64bits(values.data(), values.size() * sizeof(float)));
}

std::string digest_text(const std::string& bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace muonwalk::sim
