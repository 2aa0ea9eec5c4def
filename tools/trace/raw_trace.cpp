#include "tools/trace/raw_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
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

// Where a text or a number among the arguments of an event belongs; the two dialects call it by different names.
struct TextArgument {
  const char* key;
  std::string EventFields::*field;
};
constexpr TextArgument kTextArguments[] = {{"Collective name", &EventFields::collective},
                                           {"collective", &EventFields::collective},
                                           {"dtype", &EventFields::type},
                                           {"type", &EventFields::type},
                                           {"Process Group Ranks", &EventFields::group_ranks},
                                           {"group_ranks", &EventFields::group_ranks},
                                           {"name", &EventFields::named}};
struct NumberArgument {
  const char* key;
  std::int64_t EventFields::*field;
};
constexpr NumberArgument kNumberArguments[] = {
    {"In msg nelems", &EventFields::in_elements},   {"Out msg nelems", &EventFields::out_elements},
    {"Group size", &EventFields::group_size},       {"group_size", &EventFields::group_size},
    {"message_bytes", &EventFields::message_bytes}, {"bytes", &EventFields::sent_bytes}};

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

// No sum over the events of some files can leave 64 bits.
constexpr std::int64_t kMostTotal = 100'000'000'000'000'000;

std::int64_t or_unknown(const JsonScalar& value) { return value.as_integer().value_or(-1); }

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
    if (places_.back() != Place::ignored) trace_.budget.require_short(value.as_text());
    switch (places_.back()) {
      case Place::event:
        event_field(value);
        break;
      case Place::arguments:
        argument(value);
        break;
      case Place::distributed:
        distributed_field(value);
        break;
      case Place::muonwalk:
        if (key_ == "name") trace_.file.title = value.as_text();
        if (key_ == "backend") trace_.file.backend = value.as_text();
        break;
      case Place::without_room:
        lacks(value);
        break;
      case Place::events:
        ++trace_.file.left_out["no object, where an event should be"];
        break;
      default:
        break;
    }
    return true;
  }

  // Events that the recording itself had no room for.
  void lacks(const JsonScalar& value) {
    const std::int64_t events = std::clamp<std::int64_t>(value.as_integer().value_or(0), 0, INT32_MAX);
    trace_.without_room += std::min(events, INT64_MAX - trace_.without_room);
  }

  void event_field(const JsonScalar& value) {
    if (key_ == "ph")
      fields_.phase = value.as_text();
    else if (key_ == "cat")
      fields_.category = value.as_text();
    else if (key_ == "name")
      fields_.name = value.as_text();
    else if (key_ == "pid")
      fields_.process = value.as_label();
    else if (key_ == "ts")
      fields_.begin_ns = value.microseconds_as_ns();
    else if (key_ == "dur") {
      fields_.has_duration = true;
      fields_.duration_ns = value.microseconds_as_ns();
    }
  }

  void argument(const JsonScalar& value) {
    for (const TextArgument& argument : kTextArguments)
      if (key_ == argument.key) fields_.*argument.field = value.as_text();
    for (const NumberArgument& argument : kNumberArguments)
      if (key_ == argument.key) fields_.*argument.field = or_unknown(value);
    if (key_ == "Process Group Name" || key_ == "group") fields_.group_name = value.as_label();
  }

  void distributed_field(const JsonScalar& value) {
    if (key_ == "rank") trace_.rank = value.as_integer().value_or(trace_.rank);
    if (key_ == "world_size") trace_.world_size = or_unknown(value);
    if (key_ == "backend") trace_.file.backend = value.as_text();
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
    trace_.file.tallies.resize(std::max(trace_.file.tallies.size(), trace_.names.size()));
    NameTally& tally = trace_.file.tallies[static_cast<std::size_t>(event.name)];
    ++tally.events;
    tally.total_ns += event.duration_ns;
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
      trace_.budget.take_text((call.type < 0 ? "" : trace_.names.text(call.type)) + fields_.group_ranks +
                              fields_.group_name);
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
  const std::size_t before = names.size();
  const std::int32_t number = names.number(text);
  if (names.size() > before) budget.take_text(text);
  return number;
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
