#include "tests/replay/perfetto_rules.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace muonwalk::testing {
namespace {

using Json = nlohmann::json;
using Thread = std::pair<std::int64_t, std::int64_t>;

// Sentences by kind, so that a thousand events that break the same rule are one line.
class Broken {
 public:
  void rule(const std::string& kind, const std::string& where) {
    if (counts_[kind]++ == 0) {
      kinds_.push_back(kind);
      first_[kind] = where;
    }
  }
  void hand_over(std::vector<std::string>& sentences) const {
    for (const std::string& kind : kinds_) {
      const int more = counts_.at(kind) - 1;
      sentences.push_back(kind + ": " + first_.at(kind).substr(0, 300) +
                          (more > 0 ? " (and " + std::to_string(more) + " more)" : ""));
    }
  }

 private:
  std::vector<std::string> kinds_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::string> first_;
};

std::int64_t nanoseconds(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

struct ArrowEnd {
  std::int64_t moment = 0;
  Thread thread;
};

class Reader {
 public:
  explicit Reader(ReadTrace& trace) : trace_(trace) {}

  void event(const Json& event) {
    const std::string text = event.dump();
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string())
      return broken.rule("an event is not an object with a \"ph\"", text);
    const std::string kind = event["ph"];
    if (!event.contains("pid") || !event["pid"].is_number_integer())
      return broken.rule("an event has no process", text);
    if (kind != "C" && (!event.contains("tid") || !event["tid"].is_number_integer()))
      return broken.rule("an event has no thread", text);
    if (!event.contains("name") || !event["name"].is_string() || event["name"].get<std::string>().empty())
      return broken.rule("an event has no name", text);
    if (kind == "M") return metadata(event, text);
    if (!event.contains("ts") || !event["ts"].is_number()) return broken.rule("an event has no time", text);
    if (event["ts"] < 0) broken.rule("an event is before the beginning", text);
    if (kind == "X") return slice(event, text);
    if (kind == "s" || kind == "f") return arrow(event, text);
    if (kind == "C") return counter(event, text);
    broken.rule("an event is of a kind that is not used", text);
  }

  void whole_file() {
    names();
    for (auto& [thread, slices] : trace_.slices) nesting(thread, slices);
    for (const auto& [id, ends] : arrows_) whole_arrow(id, ends.first, ends.second);
  }

  Broken broken;

 private:
  static Thread thread_of(const Json& event) { return {event["pid"], event.value("tid", std::int64_t{0})}; }

  void metadata(const Json& event, const std::string& text) {
    const std::string what = event["name"];
    const Json args = event.value("args", Json::object());
    const Thread thread = thread_of(event);
    const auto named = [&] { return args.contains("name") && args["name"].is_string() && args["name"] != ""; };
    const auto placed = [&] { return args.contains("sort_index") && args["sort_index"].is_number_integer(); };
    if (what == "process_name" && named()) {
      if (!trace_.processes.emplace(thread.first, args["name"]).second) broken.rule("a process is named twice", text);
    } else if (what == "thread_name" && named()) {
      if (!trace_.threads.emplace(thread, args["name"]).second) broken.rule("a thread is named twice", text);
    } else if (what == "process_sort_index" && placed()) {
      if (!process_places_.emplace(thread.first, args["sort_index"]).second)
        broken.rule("a process has two places", text);
    } else if (what == "thread_sort_index" && placed()) {
      if (!thread_places_.emplace(thread, args["sort_index"]).second) broken.rule("a thread has two places", text);
    } else {
      broken.rule("metadata is not understood", text);
    }
  }

  void slice(const Json& event, const std::string& text) {
    if (!event.contains("dur") || !event["dur"].is_number()) return broken.rule("a slice has no duration", text);
    if (event["dur"] < 0) return broken.rule("a slice ends before it begins", text);
    if (!event.contains("cat") || !event["cat"].is_string() || event["cat"] == "")
      return broken.rule("a slice has no category", text);
    const std::int64_t begin = nanoseconds(event["ts"]);
    trace_.slices[thread_of(event)].push_back(
        {begin, begin + nanoseconds(event["dur"]), event["cat"], event["name"], event.value("args", Json::object())});
  }

  void arrow(const Json& event, const std::string& text) {
    if (!event.contains("id") || !event["id"].is_number_integer()) return broken.rule("an arrow has no id", text);
    const bool begins = event["ph"] == "s";
    if (!begins && event.value("bp", "") != "e")
      broken.rule("an arrow's end is not bound to the slice around it", text);
    auto& ends = arrows_[event["id"]];
    (begins ? ends.first : ends.second).push_back({nanoseconds(event["ts"]), thread_of(event)});
    if (begins) ++trace_.arrows[event["pid"]];
  }

  void counter(const Json& event, const std::string& text) {
    const Json args = event.value("args", Json::object());
    if (args.size() != 1 || !args.begin()->is_number()) return broken.rule("a counter has not one value", text);
    const auto now = std::pair(nanoseconds(event["ts"]), args.begin()->get<double>());
    const auto [last, first] =
        counters_.emplace(std::pair(event["pid"].get<std::int64_t>(), event["name"].get<std::string>()), now);
    if (first) return;
    if (now.first < last->second.first) broken.rule("a counter goes back in time", text);
    if (event["name"] == "bytes sent" && now.second < last->second.second) broken.rule("bytes sent get less", text);
    last->second = now;
  }

  void names() {
    std::set<std::string> processes;
    for (const auto& [process, name] : trace_.processes) {
      if (!processes.insert(name).second) broken.rule("two processes have the same name", name);
      if (process_places_.count(process) == 0) broken.rule("a process has no place among the others", name);
    }
    std::set<std::pair<std::int64_t, std::string>> threads;
    for (const auto& [thread, name] : trace_.threads) {
      if (!threads.emplace(thread.first, name).second) broken.rule("two threads of a process have the same name", name);
      if (thread_places_.count(thread) == 0) broken.rule("a thread has no place among the others", name);
    }
    for (const auto& [thread, slices] : trace_.slices) {
      if (trace_.processes.count(thread.first) == 0) broken.rule("a process has no name", std::to_string(thread.first));
      if (trace_.threads.count(thread) == 0) broken.rule("a thread has no name", std::to_string(thread.second));
    }
    for (const auto& [counter, value] : counters_)
      if (trace_.processes.count(counter.first) == 0)
        broken.rule("a process has no name", std::to_string(counter.first));
  }

  // As Perfetto does: in the order of time, and of the file where the times are equal.
  void nesting(const Thread& thread, const std::vector<TraceSlice>& slices) {
    std::vector<TraceSlice> sorted = slices;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::vector<const TraceSlice*> around;
    for (const TraceSlice& slice : sorted) {
      while (!around.empty() && around.back()->end <= slice.begin) around.pop_back();
      if (!around.empty() && slice.end > around.back()->end)
        broken.rule("slices of a thread cross", "\"" + slice.name + "\" goes on after \"" + around.back()->name +
                                                    "\", in which it began, on process " +
                                                    std::to_string(thread.first));
      around.push_back(&slice);
    }
  }

  bool in_a_slice(const ArrowEnd& end) const {
    const auto slices = trace_.slices.find(end.thread);
    if (slices == trace_.slices.end()) return false;
    return std::any_of(slices->second.begin(), slices->second.end(),
                       [&](const TraceSlice& slice) { return slice.begin <= end.moment && end.moment < slice.end; });
  }

  void whole_arrow(std::int64_t id, const std::vector<ArrowEnd>& begins, const std::vector<ArrowEnd>& ends) {
    const std::string name = "arrow " + std::to_string(id);
    if (begins.size() != 1 || ends.size() != 1)
      return broken.rule("an arrow has not one beginning and one end",
                         name + " has " + std::to_string(begins.size()) + " and " + std::to_string(ends.size()));
    if (ends[0].moment < begins[0].moment) broken.rule("an arrow arrives before it leaves", name);
    if (!in_a_slice(begins[0])) broken.rule("an arrow begins outside of all slices", name);
    if (!in_a_slice(ends[0])) broken.rule("an arrow ends outside of all slices", name);
  }

  ReadTrace& trace_;
  std::map<std::int64_t, std::int64_t> process_places_;
  std::map<Thread, std::int64_t> thread_places_;
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

ReadTrace read_by_perfettos_rules(const std::string& text, std::vector<std::string>& broken) {
  ReadTrace trace;
  trace.whole = Json::parse(text, nullptr, false);
  if (trace.whole.is_discarded()) {
    broken.push_back("it is not JSON");
  } else if (!trace.whole.is_object() || !trace.whole.contains("traceEvents") ||
             !trace.whole["traceEvents"].is_array()) {
    broken.push_back("it is not an object with an array \"traceEvents\"");
  } else {
    Reader reader(trace);
    for (const Json& event : trace.whole["traceEvents"]) reader.event(event);
    reader.whole_file();
    reader.broken.hand_over(broken);
  }
  return trace;
}

std::string all_of(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& sentence : sentences) all += sentence + "\n";
  return all;
}

}  // namespace muonwalk::testing
