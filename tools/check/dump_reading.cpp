#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "src/text/names.hpp"
#include "src/text/words.hpp"
#include "tools/check/dump.hpp"

namespace muonwalk::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "muonwalk-dump 1";
constexpr std::int64_t kMostRanks = 1'000'000;

// Where something of a file's metadata stands, to be refused in a sentence that names file and place.
struct Place {
  std::string file, name;  // "\"mesh\"", "the placements of \"w\""

  [[noreturn]] void refuse(const std::string& why, const std::string& remedy = "write it anew") const {
    throw UsageError(
        fmt::format("can't use {}: {} {}; {}, as docs/dump-format.md says", in_quotes(file), name, why, remedy));
  }

  Json json(const std::string& text) const {
    Json parsed = Json::parse(text, nullptr, false);
    if (parsed.is_discarded()) refuse("is not JSON");
    if (!parsed.is_object()) refuse("is JSON, but not an object");
    return parsed;
  }
  std::int64_t whole(const Json& value, const char* what, std::int64_t least, std::int64_t most) const {
    if (!value.is_number_integer() || value < least || value > most)
      refuse(fmt::format("has for {} something other than a whole number from {} to {}", what, least, most));
    return value.get<std::int64_t>();
  }
  std::string text(const Json& object, const char* field) const {
    if (!object.is_object() || !object.contains(field) || !object[field].is_string())
      refuse(fmt::format("has an entry without \"{}\"", field));
    return object[field].get<std::string>();
  }
  template <class Value>
  void take(const Json& object, const char* field, std::optional<Value>& into) const {
    if (!object.contains(field) || object[field].is_null()) return;
    const Json& value = object[field];
    if constexpr (std::is_same_v<Value, int>) {
      into = static_cast<int>(whole(value, field, 0, 1'000'000));
    } else {
      constexpr bool kTruth = std::is_same_v<Value, bool>;
      if (kTruth ? !value.is_boolean() : !value.is_number())
        refuse(fmt::format("has a \"{}\" that is not {}", field, kTruth ? "true or false" : "a number"));
      into = value.get<Value>();
    }
  }
};

// Takes what is there, and leaves the rest as it was.
void take_hyper(const Place& place, const Json& object, Hyper& hyper) {
  if (!object.is_object()) place.refuse("is JSON, but not an object");
  place.take(object, "lr", hyper.lr);
  place.take(object, "momentum", hyper.momentum);
  place.take(object, "weight_decay", hyper.weight_decay);
  place.take(object, "nesterov", hyper.nesterov);
  place.take(object, "ns_steps", hyper.ns_steps);
  if (!object.contains("adamw") || object["adamw"].is_null()) return;
  const Json& adamw = object["adamw"];
  if (!adamw.is_object()) place.refuse("has an \"adamw\" that is not an object");
  place.take(adamw, "lr", hyper.adamw.lr);
  place.take(adamw, "eps", hyper.adamw.epsilon);
  place.take(adamw, "weight_decay", hyper.adamw.weight_decay);
  if (!adamw.contains("betas") || adamw["betas"].is_null()) return;
  const Json& betas = adamw["betas"];
  if (!betas.is_array() || betas.size() != 2 || !betas[0].is_number() || !betas[1].is_number())
    place.refuse("has \"betas\" that are not two numbers");
  hyper.adamw.beta1 = betas[0].get<double>();
  hyper.adamw.beta2 = betas[1].get<double>();
}

// A parameter without its placements.
DumpedParameter described(const Place& place, const std::string& name, const Json& entry, const Hyper& hyper) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  if (!entry.is_object() || !entry.contains("shape") || !entry["shape"].is_array()) place.refuse("has no shape");
  DumpedParameter parameter{name, {}, 1, Meant::unsaid, {}, hyper, {}};
  for (const Json& length : entry["shape"]) {
    parameter.shape.push_back(place.whole(length, "its shape", 0, kMost));
    if (parameter.shape.back() > 0 && parameter.elements > kMost / parameter.shape.back())
      place.refuse("has a shape of more elements than can be");
    parameter.elements *= parameter.shape.back();
  }
  const std::string meant =
      entry.contains("optimizer") && entry["optimizer"].is_string() ? place.text(entry, "optimizer") : "";
  parameter.meant = meant == "muon"    ? Meant::muon
                    : meant == "adamw" ? Meant::adamw
                    : meant == "none"  ? Meant::none
                                       : Meant::unsaid;
  if (entry.contains("hyper")) {
    Hyper own;
    take_hyper(place, entry["hyper"], own);
    if (own.lr) parameter.hyper.adamw.lr = own.lr;  // a rate of its own is also meant where AdamW steps it
    if (own.weight_decay) parameter.hyper.adamw.weight_decay = own.weight_decay;
    take_hyper(place, entry["hyper"], parameter.hyper);
  }
  if (!entry.contains("blocks") || entry["blocks"].is_null()) return parameter;
  const Json& blocks = entry["blocks"];
  if (!blocks.is_object() || !blocks.contains("dim") || !blocks.contains("sizes") || !blocks["sizes"].is_array())
    place.refuse("has blocks without \"dim\" and \"sizes\"");
  const auto dims = static_cast<std::int64_t>(parameter.shape.size());
  if (dims == 0) place.refuse("has blocks, but no dimension");
  parameter.blocks.dim = static_cast<int>(place.whole(blocks["dim"], "the dimension of its blocks", 0, dims - 1));
  std::int64_t sum = 0;
  for (const Json& size : blocks["sizes"]) {
    parameter.blocks.sizes.push_back(place.whole(size, "the size of a block", 1, kMost));
    sum += parameter.blocks.sizes.back();
  }
  if (const std::int64_t length = parameter.shape[parameter.blocks.dim]; sum != length)
    place.refuse(
        fmt::format("has blocks of {} in all, but its dimension {} has {}", sum, parameter.blocks.dim, length));
  return parameter;
}

std::vector<Placement> placement_list(const Place& place, const Json& list, const DumpedParameter& parameter,
                                      const Mesh& mesh) {
  if (!list.is_array()) place.refuse("has placements that are not a list");
  std::vector<Placement> placements;
  std::vector<bool> named(mesh.size());
  for (const Json& entry : list) {
    const std::string axis = place.text(entry, "axis"), kind = place.text(entry, "kind");
    const auto found = std::find_if(mesh.begin(), mesh.end(), [&](const auto& one) { return one.first == axis; });
    if (found == mesh.end()) place.refuse("is placed on the axis " + in_quotes(axis) + ", which the mesh hasn't");
    Placement placement;
    placement.axis = static_cast<std::size_t>(found - mesh.begin());
    if (named[placement.axis]) place.refuse("is placed twice on the axis " + in_quotes(axis));
    named[placement.axis] = true;
    if (!placements.empty() && placements.back().kind == Placement::flat)
      place.refuse("has a placement behind a flat one, which comes last");
    const auto field = [&](const char* name, std::int64_t least, std::int64_t most) {
      if (!entry.contains(name)) place.refuse(fmt::format("has a placement of the kind {} without \"{}\"", kind, name));
      return place.whole(entry[name], name, least, most);
    };
    if (kind == "shard") {
      if (parameter.shape.empty()) place.refuse("is a single number, which can't be cut along a dimension");
      placement.kind = Placement::shard;
      placement.dim = field("dim", 0, static_cast<std::int64_t>(parameter.shape.size()) - 1);
    } else if (kind == "flat") {
      placement.kind = Placement::flat;
      placement.begin = field("begin", 0, parameter.elements);
      placement.end = field("end", placement.begin, parameter.elements);
    } else if (kind == "owner") {
      placement.kind = Placement::owner;
      placement.dim = field("rank", 0, found->second - 1);
    } else if (kind != "replicate") {
      place.refuse("has a placement of the kind " + in_quotes(kind) + ", not shard, flat, owner or replicate");
    }
    placements.push_back(placement);
  }
  return placements;
}

std::array<std::vector<Placement>, 3> placements_of(const Place& place, const Json& entry,
                                                    const DumpedParameter& parameter, const Mesh& mesh) {
  std::array<std::vector<Placement>, 3> roles;
  if (!entry.contains("placements")) return roles;
  const Json& placements = entry["placements"];
  constexpr const char* kRoles[] = {"weights", "grad", "moments"};
  for (std::size_t role = 0; role < 3; ++role) {
    if (placements.is_object() && !placements.contains(kRoles[role]))
      place.refuse(fmt::format("has placements without those of its {}", kRoles[role]));
    roles[role] =
        placement_list(place, placements.is_object() ? placements[kRoles[role]] : placements, parameter, mesh);
  }
  return roles;
}

}  // namespace

// Reads the headers of one step's files after the other.
class DumpReader {
 public:
  struct File {
    std::string path;
    std::shared_ptr<const SafetensorsReader> reader;
    std::map<std::string, std::string> metadata;
    std::int64_t step = 0, rank = 0, world = 0;

    explicit File(const std::string& of) : path(of), reader(std::make_shared<SafetensorsReader>(of)) {
      metadata.insert(reader->metadata().begin(), reader->metadata().end());
      const auto format = metadata.find("format");
      if (format == metadata.end() || format->second != kFormat)
        throw UsageError(
            fmt::format("can't use {}: {}; name files that say \"format\": \"{}\", or --before, --grad and --after",
                        in_quotes(path),
                        format == metadata.end() ? "it is not a dump of an optimizer's step"
                                                 : "its format is " + in_quotes(format->second),
                        kFormat));
      step = number("step", 1, std::int64_t{1} << 53);
      world = number("world", 1, kMostRanks);
      rank = number("rank", 0, world - 1);
      long long named_step = 0, named_rank = 0;
      const std::string name = std::filesystem::path(path).filename().string();
      if (std::sscanf(name.c_str(), "step%lld.rank%lld.", &named_step, &named_rank) == 2 &&
          (named_step != step || named_rank != rank))
        place("\"step\"").refuse(fmt::format("and \"rank\" are {} and {}, other than its name says", step, rank));
    }

    Place place(std::string name) const { return {path, std::move(name)}; }
    const std::string& text(const char* key) const {
      const auto found = metadata.find(key);
      if (found == metadata.end()) place("its metadata").refuse(fmt::format("has no \"{}\"", key));
      return found->second;
    }
    std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
      const auto value = number_from<std::int64_t>(text(key));
      if (!value || *value < least || *value > most)
        place(fmt::format("its \"{}\"", key))
            .refuse(fmt::format("is {}, not a whole number from {} to {}", as_typed(text(key)), least, most));
      return *value;
    }
    Json json(const char* key) const { return place(fmt::format("its \"{}\"", key)).json(text(key)); }
  };

  // All files of one step, in any order.
  static DumpedStep step(std::vector<File>& files) {
    DumpedStep step;
    const File& first = files.front();
    step.step = first.step;
    const auto world = static_cast<std::size_t>(first.world);
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.rank < b.rank; });
    std::vector<int> missing;
    for (std::size_t rank = 0, at = 0; rank < world; ++rank)
      if (at < files.size() && files[at].rank == static_cast<std::int64_t>(rank))
        ++at;
      else if (missing.size() < 8)
        missing.push_back(static_cast<int>(rank));
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].world != first.world)
        throw UsageError(fmt::format("step {} is of {} ranks in {} and of {} in {}; keep the dumps of two runs apart",
                                     first.step, first.world, in_quotes(first.path), files[i].world,
                                     in_quotes(files[i].path)));
      if (i > 0 && files[i].rank == files[i - 1].rank)
        throw UsageError(fmt::format("{} and {} are both rank {} of step {}; keep the dumps of two runs apart",
                                     in_quotes(files[i - 1].path), in_quotes(files[i].path), files[i].rank,
                                     first.step));
    }
    if (files.size() < world)
      throw UsageError(fmt::format(
          "step {} has files of {} of its {} ranks: {}{} {} missing; let each rank write its own", first.step,
          files.size(), world, fmt::join(missing, ", "), world - files.size() > missing.size() ? " and more" : "",
          world - files.size() == 1 ? "is" : "are"));
    step.mesh = mesh(first);
    step.framework = first.metadata.count("framework") ? first.metadata.at("framework") : "";
    for (const File& file : files) add(file, first, step);
    return step;
  }

  // As one step of one process.
  static DumpedStep files(const std::vector<std::pair<std::string, std::string>>& paths, const std::string& hyper,
                          std::int64_t number) {
    DumpedStep step;
    step.step = number;
    DumpedStep::Rank& rank = step.ranks_.emplace_back();
    Hyper given;
    const Place option{"--hyper", "what it gives"};
    if (!hyper.empty()) take_hyper(option, option.json(hyper), given);
    for (const auto& [what, path] : paths) {
      const SafetensorsReader& file = *rank.files.emplace_back(std::make_shared<SafetensorsReader>(path));
      for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        const StoredTensor& tensor = file.tensors()[i];
        if (tensor.type == StoredType::other) continue;
        rank.tensors[what + "/" + tensor.name] = {&file, i};
        step.stored_ += tensor.elements();
        if (what != "before") continue;
        DumpedParameter& parameter = step.parameters.emplace_back();
        parameter.name = tensor.name;
        parameter.shape = tensor.shape;
        parameter.elements = tensor.elements();
        parameter.hyper = given;
        parameter.placements.resize(1);
      }
      if (what == "before" && step.parameters.empty())
        throw UsageError(in_quotes(path) + " has no tensor of F32, BF16 or F16; name a file of weights");
    }
    return step;
  }

 private:
  static Mesh mesh(const File& file) {
    const Place place = file.place("its \"mesh\"");
    Mesh mesh;
    std::int64_t product = 1;
    const Json object = file.metadata.count("mesh") ? file.json("mesh") : Json::object();
    for (const auto& [name, size] : object.items()) {
      mesh.emplace_back(name, static_cast<int>(place.whole(size, in_quotes(name).c_str(), 1, kMostRanks)));
      product *= mesh.back().second;
      if (product > kMostRanks) break;
    }
    if (product != file.world) place.refuse(fmt::format("has {} ranks, but \"world\" is {}", product, file.world));
    return mesh;
  }

  static void add(const File& file, const File& first, DumpedStep& step) {
    if (file.metadata.count("mesh") != first.metadata.count("mesh") ||
        (file.metadata.count("mesh") && file.json("mesh") != first.json("mesh")))
      file.place("its \"mesh\"").refuse("differs from that of " + in_quotes(first.path));
    Hyper hyper;
    if (file.metadata.count("hyper")) take_hyper(file.place("its \"hyper\""), file.json("hyper"), hyper);
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < step.parameters.size(); ++i) index[step.parameters[i].name] = i;
    std::size_t described_here = 0;
    const Json parameters = file.json("parameters");
    for (const auto& [name, entry] : parameters.items()) {
      const Place place = file.place("parameter " + in_quotes(name));
      DumpedParameter parameter = described(place, name, entry, hyper);
      if (&file == &first || file.rank == 0) {
        index[name] = step.parameters.size();
        step.parameters.push_back(parameter);
      } else if (index.count(name) == 0) {
        place.refuse("is not among the parameters of rank 0");
      }
      DumpedParameter& whole = step.parameters[index[name]];
      if (whole.shape != parameter.shape || whole.meant != parameter.meant ||
          whole.blocks.dim != parameter.blocks.dim || whole.blocks.sizes != parameter.blocks.sizes)
        place.refuse("has another shape, optimizer or blocks than on rank 0");
      whole.placements.push_back(placements_of(place, entry, parameter, step.mesh));
      ++described_here;
    }
    for (const DumpedParameter& parameter : step.parameters)
      if (parameter.placements.size() != static_cast<std::size_t>(file.rank) + 1)
        file.place("its \"parameters\"").refuse("lacks " + in_quotes(parameter.name) + ", which other ranks have");

    DumpedStep::Rank& rank = step.ranks_.emplace_back();
    rank.files.push_back(file.reader);
    for (std::size_t i = 0; i < file.reader->tensors().size(); ++i) {
      const StoredTensor& tensor = file.reader->tensors()[i];
      const std::size_t slash = std::min(tensor.name.find('/'), tensor.name.size());
      std::string what = tensor.name.substr(0, slash);
      if (what == "master_before" || what == "master_after") what.erase(0, 7);
      if (std::none_of(std::begin(kCaseTensors), std::end(kCaseTensors),
                       [&](const auto& one) { return one.name == what; }))
        continue;
      const Place place = file.place("tensor " + in_quotes(tensor.name));
      if (index.count(tensor.name.substr(std::min(slash + 1, tensor.name.size()))) == 0)
        place.refuse("belongs to no parameter that its \"parameters\" list");
      if (tensor.type == StoredType::other)
        place.refuse("has the type " + in_quotes(tensor.dtype), "write F32, BF16 or F16");
      rank.tensors[tensor.name] = {file.reader.get(), i};
      step.stored_ += tensor.elements();
    }
  }
};

std::vector<DumpedStep> read_dump(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      names.push_back(path);
      continue;
    }
    const std::size_t before = names.size();
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
      if (ends_with(entry->path().string(), ".safetensors")) names.push_back(entry->path().string());
    if (error)
      throw UsageError("can't read the folder " + in_quotes(path) + ": " + error.message() + "; check the path");
    if (names.size() == before)
      throw UsageError("there is no .safetensors file in " + in_quotes(path) + "; name the folder of a dump");
  }
  std::sort(names.begin(), names.end());
  std::map<std::int64_t, std::vector<DumpReader::File>> files;
  for (const std::string& name : names) {
    DumpReader::File file(name);
    files[file.step].push_back(std::move(file));
  }
  std::vector<DumpedStep> steps;
  for (auto& [number, of_step] : files) steps.push_back(DumpReader::step(of_step));
  return steps;
}

DumpedStep read_files(const std::vector<std::pair<std::string, std::string>>& files, const std::string& hyper,
                      std::int64_t step) {
  return DumpReader::files(files, hyper, step);
}

}  // namespace muonwalk::check
