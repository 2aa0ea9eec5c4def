#include "sim/analyser/name_match.hpp"

#include <cctype>
#include <vector>

namespace muonwalk::sim {
namespace {

// Letters in lower case, without underscores and hyphens: "all_gather", "allgather_", "all-gather" and "AllGather" are
// the same to it.
std::string plain(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (c != '_' && c != '-') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// [name]: it holds the text.
std::vector<bool> names_with(const TraceFile& file, const std::string& text) {
  std::vector<bool> matches;
  for (const std::string& name : file.names) matches.push_back(plain(name).find(plain(text)) != std::string::npos);
  return matches;
}

void add_event(NameTally& tally, const TraceEvent& event) {
  ++tally.events;
  tally.total_ns += event.duration_ns;
}

}  // namespace

NameMatch match_names(const TraceFile& file, const std::string& text) {
  NameMatch match;
  const std::vector<bool> matches = names_with(file, text);
  for (std::size_t name = 0; name < file.names.size(); ++name) {
    if (!matches[name]) continue;
    match.all.events += file.tallies[name].events;
    match.all.total_ns += file.tallies[name].total_ns;
  }
  for (const TraceEvent& event : file.events)
    if (matches[static_cast<std::size_t>(event.name)])
      add_event(match.of_class[static_cast<std::size_t>(event.event_class)], event);
  return match;
}

NameMatch match_names(const TraceFile& file, const std::string& text, int rank) {
  NameMatch match;
  const std::vector<bool> matches = names_with(file, text);
  for (const TraceEvent& event : file.events) {
    if (file.rank_of(event) != rank || !matches[static_cast<std::size_t>(event.name)]) continue;
    add_event(match.all, event);
    add_event(match.of_class[static_cast<std::size_t>(event.event_class)], event);
  }
  return match;
}

}  // namespace muonwalk::sim
