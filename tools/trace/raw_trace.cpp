#include "tools/trace/raw_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// The fields of one event, as far as any figure needs them.
struct EventFields {
  std::string phase, category, name, process;
  std::optional<std::int64_t> begin_ns, duration_ns;
  bool has_duration = false;
  // Of its arguments.
  std::string named, collective, type, group_name, group_ranks;
  std::int64_t group_size = 0, in_elements = -1, out_elements = -1, message_bytes = -1, sent_bytes = -1;
};

// The places of a file at which something is read.
enum class Place { outside, root, events, event, arguments, distributed, other_data, muonwalk, without_room, ignored };

// What an object or array is that opens in a place, under a key; an empty key stands for any.
struct Opening {
  Place in;
  bool array;
  const char* key;
  Place place;
};
constexpr Opening kOpenings[] = {{Place::events, false, "", Place::event},
                                 {Place::event, false, "args", Place::arguments},
                                 {Place::outside, false, "", Place::root},
                                 {Place::outside, true, "", Place::events},  // a trace may be the array alone
                                 {Place::root, true, "traceEvents", Place::events},
                                 {Place::root, false, "distributedInfo", Place::distributed},
                                 {Place::root, false, "otherData", Place::other_data},
                                 {Place::root, false, "muonwalk", Place::muonwalk},
                                 {Place::other_data, false, "muonwalk", Place::muonwalk},
                                 {Place::muonwalk, true, "dropped_events", Place::without_room}};

std::int64_t or_unknown(const JsonScalar& value) { return value.as_integer().value_or(-1); }

// A text or a number that is kept, by its place and key; the two dialects call some by different names.
struct Field {
  Place in;
  std::string_view key;
  void (*take)(EventFields& event, RawTrace& trace, const JsonScalar& value);
};
template <std::string EventFields::*field>
void text(EventFields& event, RawTrace&, const JsonScalar& value) {
  event.*field = value.as_text();
}
template <std::int64_t EventFields::*field>
void number(EventFields& event, RawTrace&, const JsonScalar& value) {
  event.*field = or_unknown(value);
}
template <std::string EventFields::*field>
void label(EventFields& event, RawTrace&, const JsonScalar& value) {
  event.*field = value.as_label();
}
void title(EventFields&, RawTrace& trace, const JsonScalar& value) { trace.file.title = value.as_text(); }
void backend(EventFields&, RawTrace& trace, const JsonScalar& value) { trace.file.backend = value.as_text(); }
void world_size(EventFields&, RawTrace& trace, const JsonScalar& value) { trace.world_size = or_unknown(value); }
void rank(EventFields&, RawTrace& trace, const JsonScalar& value) {
  trace.rank = value.as_integer().value_or(trace.rank);
}
void begin(EventFields& event, RawTrace&, const JsonScalar& value) { event.begin_ns = value.microseconds_as_ns(); }
void duration(EventFields& event, RawTrace&, const JsonScalar& value) {
  event.has_duration = true;
  event.duration_ns = value.microseconds_as_ns();
}
using E = EventFields;
constexpr Field kFields[] = {{Place::event, "ph", text<&E::phase>},
                             {Place::event, "cat", text<&E::category>},
                             {Place::event, "name", text<&E::name>},
                             {Place::event, "pid", label<&E::process>},
                             {Place::event, "ts", begin},
                             {Place::event, "dur", duration},
                             {Place::arguments, "Collective name", text<&E::collective>},
                             {Place::arguments, "collective", text<&E::collective>},
                             {Place::arguments, "dtype", text<&E::type>},
                             {Place::arguments, "type", text<&E::type>},
                             {Place::arguments, "Process Group Ranks", text<&E::group_ranks>},
                             {Place::arguments, "group_ranks", text<&E::group_ranks>},
                             {Place::arguments, "name", text<&E::named>},
                             {Place::arguments, "In msg nelems", number<&E::in_elements>},
                             {Place::arguments, "Out msg nelems", number<&E::out_elements>},
                             {Place::arguments, "Group size", number<&E::group_size>},
                             {Place::arguments, "group_size", number<&E::group_size>},
                             {Place::arguments, "message_bytes", number<&E::message_bytes>},
                             {Place::arguments, "bytes", number<&E::sent_bytes>},
                             {Place::arguments, "Process Group Name", label<&E::group_name>},
                             {Place::arguments, "group", label<&E::group_name>},
                             {Place::distributed, "rank", rank},
                             {Place::distributed, "world_size", world_size},
                             {Place::distributed, "backend", backend},
                             {Place::muonwalk, "name", title},
                             {Place::muonwalk, "backend", backend}};

// No sum over the events of some files can leave 64 bits.
constexpr std::int64_t kMostTotal = 100'000'000'000'000'000;

// Listens to the parser and keeps what is needed. It knows at which place of the file it is by a stack of places, one
// for each object or array that is open.
class TraceListener : public nlohmann::json_sax<nlohmann::json> {
 public:
  TraceListener(TraceInput& input, RawTrace& trace) : input_(input), trace_(trace) {}

  // Of a file that could not be parsed: where, and what the parser says.
  std::optional<std::pair<std::size_t, std::string>> failure;
  // The value that a file consists of has ended; what follows is too much.
  bool whole = false;

  bool null() override { return scalar({}); }
  bool boolean(bool value) override {
    if (places_.back() == Place::muonwalk && key_ == "ok") trace_.failed = !value;
    return scalar({});
  }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return integer(static_cast<std::int64_t>(value));
    const std::string digits = std::to_string(value);
    return scalar({JsonScalar::Kind::decimal, &digits, 0});
  }
  bool number_float(number_float_t, const string_t& digits) override {
    return scalar({JsonScalar::Kind::decimal, &digits, 0});
  }
  bool string(string_t& text) override { return scalar({JsonScalar::Kind::text, &text, 0}); }
  bool binary(binary_t&) override { return scalar({}); }
  bool key(string_t& text) override {
    input_.token_ended();
    key_.swap(text);
    return true;
  }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override {
    if (places_.back() == Place::event) finish_event();
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    failure = {position, error.what()};
    return false;
  }

 private:
  bool open(bool array) {
    input_.token_ended();
    trace_.budget.require_flat(places_.size());
    const auto opening = std::find_if(std::begin(kOpenings), std::end(kOpenings), [&](const Opening& each) {
      return each.in == places_.back() && each.array == array && (*each.key == '\0' || key_ == each.key);
    });
    const Place place = opening == std::end(kOpenings) ? Place::ignored : opening->place;
    if (place == Place::events) trace_.has_events = true;
    if (place == Place::muonwalk) trace_.file.dialect = TraceDialect::muonwalk;
    if (place == Place::event) fields_ = {};
    places_.push_back(place);
    return true;
  }

  bool close() {
    input_.token_ended();
    places_.pop_back();
    whole = places_.back() == Place::outside;
    return true;
  }

  bool integer(std::int64_t number) { return scalar({JsonScalar::Kind::integer, nullptr, number}); }

  bool scalar(const JsonScalar& value) {
    input_.token_ended();
    const Place place = places_.back();
    if (place != Place::ignored) trace_.budget.require_short(value.as_text());
    if (place == Place::without_room) lacks(value);
    if (place == Place::events) ++trace_.file.left_out["no object, where an event should be"];
    for (const Field& field : kFields)
      if (field.in == place && key_ == field.key) field.take(fields_, trace_, value);
    return true;
  }

  // Events that the recording itself had no room for.
  void lacks(const JsonScalar& value) {
    const std::int64_t events = std::clamp<std::int64_t>(value.as_integer().value_or(0), 0, INT32_MAX);
    trace_.without_room += std::min(events, INT64_MAX - trace_.without_room);
  }

  void finish_event() {
    if (fields_.phase == "X") {
      finish_complete_event();
    } else if (fields_.phase == "M") {
      // A name that replaces another is paid for as well: whoever names a process often has no trace.
      if (fields_.name == "process_name") {
        trace_.budget.take_text(fields_.named);
        trace_.process_names[trace_.number(fields_.process)] = fields_.named;
      }
      ++trace_.file.left_out["metadata: names of processes and threads"];
    } else {
      ++trace_.file.left_out[why_no_duration()];
    }
  }

  std::string why_no_duration() const {
    const std::string& phase = fields_.phase;
    if (phase == "s" || phase == "t" || phase == "f") return "flows: arrows for viewers";
    if (phase == "C") return "counters: curves for viewers";
    if (phase == "i" || phase == "I" || phase == "R") return "instants: they have no duration";
    if (phase == "B" || phase == "E") return "begins and ends apart (B, E): only complete events (X) are counted";
    return phase.empty() ? "damaged: no phase (ph)" : "other phases than X, M, s, t, f, C, i, B and E";
  }

  // Says what an event lacks, or nothing where it lacks nothing.
  const char* damage() const {
    if (fields_.name.empty()) return "damaged: no name";
    if (!fields_.begin_ns) return "damaged: no begin (ts), or one that is not a time";
    if (!fields_.duration_ns)
      return fields_.has_duration ? "damaged: a duration (dur) that is not a time" : "damaged: no duration (dur)";
    if (*fields_.duration_ns < 0) return "damaged: a negative duration";
    if (*fields_.duration_ns > kMostTotal - total_ns_) return "damaged: durations that add up to more than three years";
    return nullptr;
  }

  void finish_complete_event() {
    if (const char* what = damage()) {
      ++trace_.file.left_out[what];
      return;
    }
    total_ns_ += *fields_.duration_ns;
    TraceEvent event;
    event.name = trace_.number(fields_.name);
    event.category = trace_.number(fields_.category);
    event.begin_ns = *fields_.begin_ns;
    event.duration_ns = *fields_.duration_ns;
    trace_.file.tallies.resize(std::max(trace_.file.tallies.size(), trace_.texts.size()));
    trace_.file.tallies[static_cast<std::size_t>(event.name)].add(event);
    if (classify(TraceDialect::pytorch, fields_.category, fields_.name) == EventClass::other &&
        classify(TraceDialect::muonwalk, fields_.category, fields_.name) == EventClass::other) {
      const auto [at, added] = trace_.dropped.emplace(event.category, 0);
      if (added) trace_.budget.take_text(fields_.category);
      ++at->second;
      return;
    }
    event.rank = trace_.number(fields_.process);
    event.call = call_of_event();
    trace_.budget.take_event();
    trace_.file.events.push_back(event);
  }

  std::int32_t call_of_event() {
    // Operators have the arguments of the kernel that they start; once is enough.
    const bool described = !fields_.collective.empty() || !fields_.group_ranks.empty();
    return described && fields_.category != "cpu_op" ? keep(call()) : -1;
  }

  CollectiveCall call() {
    CollectiveCall call;
    call.collective = collective_of(fields_.collective.empty() ? fields_.name : fields_.collective);
    call.group_size = static_cast<std::int32_t>(std::clamp<std::int64_t>(fields_.group_size, 0, INT32_MAX));
    // nccl-tests measures a message by the larger of what goes in and what comes out: of all_gather the whole.
    set_type(call, element_type_text(fields_.type), std::max(fields_.in_elements, fields_.out_elements));
    if (fields_.message_bytes >= 0) call.message_bytes = fields_.message_bytes;
    if (!fields_.group_name.empty()) call.group_name = trace_.number(fields_.group_name);
    call.group = fields_.group_ranks.empty() ? call.group_name : trace_.number(fields_.group_ranks);
    call.sent_bytes = fields_.sent_bytes;
    return call;
  }

  void set_type(CollectiveCall& call, const std::string& type, std::int64_t elements) {
    if (!type.empty()) call.type = trace_.number(type);
    const int size = element_type_size(type);
    if (size > 0 && elements >= 0 && elements < INT64_MAX / size) call.message_bytes = elements * size;
  }

  // Tables have a line for each kind of call, with the kind in words, which are paid for as well.
  std::int32_t keep(const CollectiveCall& call) {
    trace_.budget.take(static_cast<std::int64_t>(sizeof call));
    if (kinds_.emplace(call.collective, call.group_size, call.type, call.group, call.group_name).second)
      trace_.budget.take_text((call.type < 0 ? "" : trace_.text(call.type)) + fields_.group_ranks + fields_.group_name);
    trace_.file.calls.push_back(call);
    return static_cast<std::int32_t>(trace_.file.calls.size() - 1);
  }

  TraceInput& input_;
  RawTrace& trace_;
  std::int64_t total_ns_ = 0;
  std::vector<Place> places_{Place::outside};
  std::string key_;
  EventFields fields_;
  std::set<std::tuple<Collective, std::int32_t, std::int32_t, std::int32_t, std::int32_t>> kinds_;  // of calls
};

// What the parser says: "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while …; last
// read: …"; the part that a reader can use is the text between.
std::string reason_text(const std::string& what) {
  std::size_t begin = what.find("syntax error");
  if (begin == std::string::npos) begin = what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2;
  std::string reason = what.substr(begin, 160);
  for (char& c : reason)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  return reason;
}

}  // namespace

std::int32_t RawTrace::number(const std::string& text) {
  const auto [at, fresh] = numbers.try_emplace(text, static_cast<std::int32_t>(texts.size()));
  if (fresh) budget.take_text(text), texts.push_back(&at->first);
  return at->second;
}

RawTrace read_raw_trace(const std::string& path, TraceInput& input) {
  RawTrace trace(path);
  TraceListener listener(input, trace);
  std::istream stream(&input);
  if (!nlohmann::json::sax_parse(stream, &listener)) {
    const auto& [position, what] = *listener.failure;
    if (!listener.whole && input.at_end())
      throw UsageError(
          fmt::format("{} is cut off: its JSON ends after {} bytes in the middle of a value, with {} events read; "
                      "a trace counts only when it is whole, so record it again and let the program end",
                      in_quotes(path), input.position(), trace.file.events.size()));
    throw UsageError(
        fmt::format("{} is not JSON at byte {} ({}); name a file that torch.profiler or a lesson's --trace wrote",
                    in_quotes(path), position, reason_text(what)));
  }
  if (!trace.has_events)
    throw UsageError(
        fmt::format("{} is JSON but no trace: it has no array \"traceEvents\"; name a file that torch.profiler or a "
                    "lesson's --trace wrote",
                    in_quotes(path)));
  return trace;
}

}  // namespace muonwalk::sim
