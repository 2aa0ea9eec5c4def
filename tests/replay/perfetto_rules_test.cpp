// The rules that every recorded trace is held to can fail: one sound trace, and one for each way to break it.

#include "tests/replay/perfetto_rules.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace muonwalk::testing;
using Json = nlohmann::json;

namespace {

Json named(const char* what, int process, int thread, const Json& args) {
  return {{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", what}, {"args", args}};
}
Json slice(int process, double begin, double duration, const char* name) {
  return {{"ph", "X"},    {"pid", process}, {"tid", 1},       {"cat", "phase"},
          {"name", name}, {"ts", begin},    {"dur", duration}};
}
Json arrow(const char* end, int id, int process, double moment) {
  Json event = {{"ph", end},         {"id", id},         {"pid", process}, {"tid", 1},
                {"name", "message"}, {"cat", "message"}, {"ts", moment}};
  if (*end == 'f') event["bp"] = "e";
  return event;
}
Json sent(double moment, int bytes) {
  return {{"ph", "C"}, {"pid", 0}, {"name", "bytes sent"}, {"ts", moment}, {"args", {{"bytes", bytes}}}};
}

enum Event { outer = 8, inner, beside, elsewhere, leaves, arrives, first_count, second_count };

Json sound_trace() {
  Json events = Json::array();
  for (int process : {0, 1}) {
    events.push_back(named("process_name", process, 0, {{"name", "rank " + std::to_string(process)}}));
    events.push_back(named("process_sort_index", process, 0, {{"sort_index", process}}));
    events.push_back(named("thread_name", process, 1, {{"name", "communication"}}));
    events.push_back(named("thread_sort_index", process, 1, {{"sort_index", 1}}));
  }
  events.push_back(slice(0, 10, 20, "outer"));
  events.push_back(slice(0, 10, 5.001, "inner"));
  events.push_back(slice(0, 15.001, 14.999, "beside"));
  events.push_back(slice(1, 12, 4, "elsewhere"));
  events.push_back(arrow("s", 7, 0, 10));
  events.push_back(arrow("f", 7, 1, 15.999));
  events.push_back(sent(10, 0));
  events.push_back(sent(30, 100));
  return {{"traceEvents", events}};
}

}  // namespace

TEST_CASE("a sound trace breaks no rule and is read as it was written") {
  const ReadTrace trace = read_by_perfettos_rules(sound_trace().dump());
  CHECK(trace.broken == "");
  CHECK(trace.processes.at(1) == "rank 1");
  REQUIRE(trace.on(0, "communication").size() == 3);
  CHECK(trace.on(0, "communication")[1].end == 15001);
  CHECK(trace.on(0, "computation").empty());
  CHECK(trace.arrows.at(0) == 1);
}

TEST_CASE("every planted fault is found, and found to be what it is") {
  struct Fault {
    const char* sentence;
    std::function<void(Json& events)> plant;
  };
  const std::vector<Fault> faults = {
      {"slices of a thread cross", [](Json& e) { e[inner]["dur"] = 30; }},
      {"slices of a thread cross", [](Json& e) { std::swap(e[outer], e[inner]); }},
      {"a slice ends before it begins", [](Json& e) { e[inner]["dur"] = -1; }},
      {"a slice has no category", [](Json& e) { e[inner]["cat"] = ""; }},
      {"an event has no name", [](Json& e) { e[inner]["name"] = ""; }},
      {"an event is before the beginning", [](Json& e) { e[outer]["ts"] = -1; }},
      {"an event is of a kind that is not used", [](Json& e) { e[outer]["ph"] = "B"; }},
      {"an arrow has not one beginning and one end", [](Json& e) { e.erase(arrives); }},
      {"an arrow has not one beginning and one end", [](Json& e) { e.push_back(e[leaves]); }},
      {"an arrow ends outside of all slices", [](Json& e) { e[leaves]["ts"] = 9.999; }},
      {"an arrow ends outside of all slices", [](Json& e) { e[arrives]["ts"] = 16; }},
      {"an arrow ends outside of all slices", [](Json& e) { e[arrives]["tid"] = 2; }},
      {"an arrow arrives before it leaves",
       [](Json& e) {
         e[leaves]["ts"] = 15.9999;
         e[arrives]["ts"] = 15;
       }},
      {"an arrow's end is not bound to the slice around it", [](Json& e) { e[arrives].erase("bp"); }},
      {"a counter goes back in time", [](Json& e) { e[second_count]["ts"] = 5; }},
      {"bytes sent get less", [](Json& e) { e[second_count]["args"]["bytes"] = -1; }},
      {"a process or thread has no name", [](Json& e) { e.erase(0); }},
      {"a process has another's name, or no place", [](Json& e) { e.erase(1); }},
      {"a process or thread has no name", [](Json& e) { e.erase(2); }},
      {"a thread has another's name, or no place", [](Json& e) { e.erase(3); }},
      {"a process has another's name, or no place", [](Json& e) { e[4]["args"]["name"] = "rank 0"; }},
      {"something is named or placed twice", [](Json& e) { e.push_back(e[2]); }}};
  for (const Fault& fault : faults) {
    Json trace = sound_trace();
    fault.plant(trace["traceEvents"]);
    CAPTURE(fault.sentence);
    CHECK(read_by_perfettos_rules(trace.dump()).broken.find(std::string(fault.sentence) + ": ") != std::string::npos);
  }
}
