#include "tests/replay/perfetto_rules.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace muonwalk::testing {
namespace {

using Json = nlohmann::json;
using Thread = std::pair<std::int64_t, std::int64_t>;
using ArrowEnd = std::pair<std::int64_t, Thread>;  // when and where

std::int64_t nanoseconds(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

class Reader {
 public:
  explicit Reader(ReadTrace& trace) : trace_(trace) {}

  void read() {
    for (const Json& each : trace_.whole.at("traceEvents")) event(each);
    names();
    for (const auto& [thread, slices] : trace_.slices) nesting(slices);
    for (const auto& [id, ends] : arrows_) arrow(id, ends.first, ends.second);
  }

 private:
  void broken(const std::string& rule, const std::string& where) { trace_.broken += rule + ": " + where + "\n"; }

  void event(const Json& event) {
    const std::string kind = event.at("ph"), name = event.at("name");
    const Thread thread = {event.at("pid"), kind == "C" ? 0 : event.at("tid").get<std::int64_t>()};
    const Json args = event.value("args", Json::object());
    if (name.empty()) broken("an event has no name", event.dump());
    if (kind == "M") {
      const bool process = name.rfind("process_", 0) == 0;
      const Thread of = {thread.first, process ? -1 : thread.second};
      const bool added = name.find("_sort_index") != std::string::npos
                             ? places_.emplace(of, args.at("sort_index").get<int>()).second
                         : process ? trace_.processes.emplace(thread.first, args.at("name")).second
                                   : trace_.threads.emplace(thread, args.at("name")).second;
      if (!added) broken("something is named or placed twice", event.dump());
      return;
    }
    const std::int64_t now = nanoseconds(event.at("ts"));
    if (now < 0) broken("an event is before the beginning", event.dump());
    if (kind == "X") {
      const std::int64_t end = now + nanoseconds(event.at("dur"));
      if (end < now) broken("a slice ends before it begins", event.dump());
      if (event.at("cat") == "") broken("a slice has no category", event.dump());
      trace_.slices[thread].push_back({now, end, event["cat"], name, args});
    } else if (kind == "s") {
      arrows_[event.at("id")].first.emplace_back(now, thread);
      ++trace_.arrows[thread.first];
    } else if (kind == "f") {
      if (event.value("bp", "") != "e") broken("an arrow's end is not bound to the slice around it", event.dump());
      arrows_[event.at("id")].second.emplace_back(now, thread);
    } else if (kind == "C") {
      const double value = args.size() == 1 ? args.front().get<double>() : NAN;
      const auto [last, first] = counters_.emplace(std::pair(thread.first, name), std::pair(now, value));
      if (now < last->second.first) broken("a counter goes back in time", event.dump());
      if (name == "bytes sent" && !(value >= last->second.second)) broken("bytes sent get less", event.dump());
      last->second = {now, value};
    } else {
      broken("an event is of a kind that is not used", event.dump());
    }
  }

  void names() {
    std::set<std::string> processes;
    for (const auto& [process, name] : trace_.processes)
      if (!processes.insert(name).second || places_.count({process, -1}) == 0)
        broken("a process has another's name, or no place", name);
    std::set<std::pair<std::int64_t, std::string>> threads;
    for (const auto& [thread, name] : trace_.threads)
      if (!threads.emplace(thread.first, name).second || places_.count(thread) == 0)
        broken("a thread has another's name, or no place", name);
    for (const auto& [thread, slices] : trace_.slices)
      if (trace_.processes.count(thread.first) == 0 || trace_.threads.count(thread) == 0)
        broken("a process or thread has no name", std::to_string(thread.first));
  }

  // As Perfetto does: in the order of time, and of the file where the times are equal.
  void nesting(std::vector<TraceSlice> sorted) {
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::vector<const TraceSlice*> around;
    for (const TraceSlice& slice : sorted) {
      while (!around.empty() && around.back()->end <= slice.begin) around.pop_back();
      if (!around.empty() && slice.end > around.back()->end)
        broken("slices of a thread cross", slice.name + " goes on after " + around.back()->name);
      around.push_back(&slice);
    }
  }

  void arrow(std::int64_t id, const std::vector<ArrowEnd>& begins, const std::vector<ArrowEnd>& ends) {
    const auto in_a_slice = [&](const ArrowEnd& end) {
      const std::vector<TraceSlice>& slices = trace_.slices[end.second];
      return std::any_of(slices.begin(), slices.end(),
                         [&](const TraceSlice& slice) { return slice.begin <= end.first && end.first < slice.end; });
    };
    const std::string name = "arrow " + std::to_string(id);
    if (begins.size() != 1 || ends.size() != 1) return broken("an arrow has not one beginning and one end", name);
    if (ends[0].first < begins[0].first) broken("an arrow arrives before it leaves", name);
    if (!in_a_slice(begins[0]) || !in_a_slice(ends[0])) broken("an arrow ends outside of all slices", name);
  }

  ReadTrace& trace_;
  std::map<Thread, int> places_;  // of a process: thread −1
  std::map<std::int64_t, std::pair<std::vector<ArrowEnd>, std::vector<ArrowEnd>>> arrows_;
  std::map<std::pair<std::int64_t, std::string>, std::pair<std::int64_t, double>> counters_;
};

}  // namespace

const std::vector<TraceSlice>& ReadTrace::on(std::int64_t process, const std::string& thread) const {
  static const std::vector<TraceSlice> none;
  for (const auto& [which, name] : threads)
    if (which.first == process && name == thread) return slices.count(which) > 0 ? slices.at(which) : none;
  return none;
}

ReadTrace read_by_perfettos_rules(const std::string& text) {
  ReadTrace trace;
  trace.whole = Json::parse(text);
  Reader(trace).read();
  return trace;
}

}  // namespace muonwalk::testing
