#include "tools/check/dump.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <tuple>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "muonwalk-dump 1";
constexpr const char* kMeant[] = {"muon", "adamw", "none"};       // as Meant has them
constexpr const char* kRoles[] = {"weights", "grad", "moments"};  // as Role has them
constexpr std::int64_t kMostRanks = 1'000'000, kMostElements = std::int64_t{1} << 48;

// Why a piece of metadata is not as docs/dump-format.md says; who knows file and place makes a sentence of it.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::int64_t whole(const Json& value, const std::string& what, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer() || value < least || value > most)
    throw Wrong(fmt::format("has for {} something other than a whole number from {} to {}", what, least, most));
  return value.get<std::int64_t>();
}

// Takes what is there, and leaves the rest as it was.
template <class Value>
void take(const Json& object, const char* field, std::optional<Value>& into) {
  if (object.contains(field) && !object.at(field).is_null()) into = object.at(field).get<Value>();
}

void take_hyper(const Json& object, Hyper& hyper) {
  take(object, "lr", hyper.lr);
  take(object, "momentum", hyper.momentum);
  take(object, "weight_decay", hyper.weight_decay);
  take(object, "nesterov", hyper.nesterov);
  take(object, "ns_steps", hyper.ns_steps);
  const Json adamw = object.value("adamw", Json());
  take(adamw, "lr", hyper.adamw.lr);
  take(adamw, "eps", hyper.adamw.epsilon);
  take(adamw, "weight_decay", hyper.adamw.weight_decay);
  std::optional<std::pair<double, double>> betas;
  take(adamw, "betas", betas);
  if (betas) std::tie(hyper.adamw.beta1, hyper.adamw.beta2) = *betas;
}

// Cuts a parameter as one role's placements on the rank at these coordinates say; of weights, each cut is listed.
void place(const Json& list, Role role, const Mesh& mesh, const std::vector<int>& at, DumpedParameter& parameter) {
  Region& left = parameter.regions.back()[role];
  for (const std::int64_t length : parameter.shape) left.box.emplace_back(0, length);
  bool here = true;
  for (const Json& entry : list) {
    const auto axis = entry.at("axis").get<std::string>(), kind = entry.at("kind").get<std::string>();
    const auto found = std::find_if(mesh.begin(), mesh.end(), [&](const auto& one) { return one.first == axis; });
    if (found == mesh.end()) throw Wrong("is placed on the axis " + in_quotes(axis) + ", which the mesh hasn't");
    if (left.flat) throw Wrong("has a placement behind a flat one, which comes last");
    if (kind == "replicate") continue;
    const auto number = static_cast<std::size_t>(found - mesh.begin());
    Cut cut{axis, Cut::shard, 0, {}};
    if (kind == "shard") {  // as torch.chunk
      cut.dim =
          static_cast<int>(whole(entry.at("dim"), "dim", 0, static_cast<std::int64_t>(parameter.shape.size()) - 1));
      auto& [from, to] = left.box[cut.dim];
      const std::int64_t chunk = (to - from + found->second - 1) / found->second;
      from = std::min(from + at[number] * chunk, to);
      to = std::min(from + chunk, to);
      cut.bounds = {from, to};
    } else if (kind == "owner") {
      cut.kind = Cut::owner;
      here = here && whole(entry.at("rank"), "rank", 0, found->second - 1) == at[number];
    } else if (kind == "flat") {
      cut.kind = Cut::flat;
      std::int64_t elements = 1;
      for (const auto& [from, to] : left.box) elements *= to - from;
      const std::int64_t begin = whole(entry.at("begin"), "begin", 0, elements);
      left.flat = Range{begin, whole(entry.at("end"), "end", begin, elements)};
    } else {
      throw Wrong("has a placement of the kind " + in_quotes(kind) + ", which there isn't");
    }
    parameter.cutting[role].insert(number);
    if (role == weights) parameter.cuts.push_back(cut);
  }
  if (!here) left.flat = Range{0, 0};
}

// A parameter as one rank describes it, with that rank's placements.
DumpedParameter described(const std::string& name, const Json& entry, const Hyper& hyper, const Mesh& mesh,
                          std::int64_t rank) {
  DumpedParameter parameter;
  parameter.name = name;
  parameter.hyper = hyper;
  for (const Json& length : entry.at("shape")) {
    parameter.shape.push_back(whole(length, "its shape", 0, kMostElements));
    if (parameter.shape.back() > 0 && parameter.elements > kMostElements / parameter.shape.back())
      throw Wrong("has a shape of more elements than can be");
    parameter.elements *= parameter.shape.back();
  }
  const auto meant = std::find(std::begin(kMeant), std::end(kMeant), entry.value("optimizer", Json()));
  parameter.meant = static_cast<Meant>(meant - std::begin(kMeant));
  if (entry.contains("hyper")) {  // a rate or decay of its own is also meant where AdamW steps it
    take(entry["hyper"], "lr", parameter.hyper.adamw.lr);
    take(entry["hyper"], "weight_decay", parameter.hyper.adamw.weight_decay);
    take_hyper(entry["hyper"], parameter.hyper);
  }
  if (const Json blocks = entry.value("blocks", Json()); !blocks.is_null()) {
    const auto dims = static_cast<std::int64_t>(parameter.shape.size());
    parameter.blocks.dim = static_cast<int>(whole(blocks.at("dim"), "the dimension of its blocks", 0, dims - 1));
    std::int64_t sum = 0;
    for (const Json& size : blocks.at("sizes"))
      sum += parameter.blocks.sizes.emplace_back(whole(size, "the size of a block", 1, kMostElements));
    if (const std::int64_t length = parameter.shape[parameter.blocks.dim]; sum != length)
      throw Wrong(
          fmt::format("has blocks of {} in all, but its dimension {} has {}", sum, parameter.blocks.dim, length));
  }
  const Json placements = entry.value("placements", Json::array());
  parameter.regions.emplace_back();
  for (const Role role : {weights, grad, moments})
    place(placements.is_object() ? placements.at(kRoles[role]) : placements, role, mesh,
          coordinates(mesh, static_cast<int>(rank)), parameter);
  return parameter;
}

// What one rank has written of one step.
struct DumpFile {
  std::string path;
  Json metadata = Json::object();  // with what is JSON in its texts
  std::vector<std::pair<std::string, DumpedTensor>> tensors;
  std::int64_t step = 1, rank = 0, world = 1;

  // The object under a key; an empty one where there is none.
  Json object(const char* key) const {
    const Json value = metadata.value(key, Json::object());
    if (!value.is_object()) throw Wrong(fmt::format("has a \"{}\" that is not an object of JSON", key));
    return value;
  }
  // Reads in it. What is wrong becomes a sentence with the place that was read.
  template <class Read>
  void read(const Read& read) const {
    std::string place = "its metadata", why;
    try {
      return read(place);
    } catch (const Wrong& wrong) {
      why = wrong.what();
    } catch (const Json::exception& wrong) {  // "[json.exception.out_of_range.403] key 'dim' not found"
      why = wrong.what();
      why = "is not as it should be: " + why.substr(why.find("] ") + 2);
    }
    throw UsageError(
        fmt::format("can't use {}: {} {}; write it anew, as docs/dump-format.md says", in_quotes(path), place, why));
  }
};

// Opens a file and reads its header.
DumpFile opened(const std::string& path) {
  const auto reader = std::make_shared<SafetensorsReader>(path);
  DumpFile file;
  file.path = path;
  for (std::size_t i = 0; i < reader->tensors().size(); ++i)
    file.tensors.emplace_back(reader->tensors()[i].name, DumpedTensor{reader, i});
  for (const auto& [key, text] : reader->metadata()) {
    const Json parsed = Json::parse(text, nullptr, false);
    file.metadata[key] = parsed.is_discarded() ? Json(text) : parsed;
  }
  file.read([&](const std::string&) {
    if (file.metadata.value("format", Json()) != kFormat)
      throw Wrong(fmt::format("doesn't say \"format\": \"{}\": it is not a dump of an optimizer's step", kFormat));
    file.step = whole(file.metadata.at("step"), "\"step\"", 1, std::int64_t{1} << 53);
    file.world = whole(file.metadata.at("world"), "\"world\"", 1, kMostRanks);
    file.rank = whole(file.metadata.at("rank"), "\"rank\"", 0, file.world - 1);
  });
  return file;
}

// Adds what the next rank has written.
void add(const DumpFile& file, const Json& mesh, DumpedStep& step, std::string& place) {
  if (file.object("mesh") != mesh) throw Wrong("has another \"mesh\" than that of rank 0");
  Hyper hyper;
  take_hyper(file.object("hyper"), hyper);
  std::map<std::string, DumpedParameter*> known;
  for (DumpedParameter& parameter : step.parameters) known[parameter.name] = &parameter;
  const Json parameters = file.object("parameters");
  if (file.rank == 0) step.parameters.reserve(parameters.size());
  for (const auto& [name, entry] : parameters.items()) {
    place = "parameter " + in_quotes(name);
    const DumpedParameter parameter = described(name, entry, hyper, step.mesh, file.rank);
    DumpedParameter*& is = known[name];
    if (file.rank == 0) {
      is = &step.parameters.emplace_back(parameter);
      continue;
    }
    if (is == nullptr || is->shape != parameter.shape || is->meant != parameter.meant ||
        is->blocks.dim != parameter.blocks.dim || is->blocks.sizes != parameter.blocks.sizes)
      throw Wrong("has another shape, optimizer or blocks than on rank 0");
    is->regions.push_back(parameter.regions[0]);
    for (std::size_t role = 0; role < 3; ++role)
      is->cutting[role].insert(parameter.cutting[role].begin(), parameter.cutting[role].end());
    for (std::size_t i = 0; i < std::min(is->cuts.size(), parameter.cuts.size()); ++i) {
      std::set<std::int64_t> bounds(is->cuts[i].bounds.begin(), is->cuts[i].bounds.end());
      bounds.insert(parameter.cuts[i].bounds.begin(), parameter.cuts[i].bounds.end());
      is->cuts[i].bounds.assign(bounds.begin(), bounds.end());
    }
  }
  auto& tensors = step.ranks.emplace_back();
  for (const DumpedParameter& parameter : step.parameters) {
    place = "parameter " + in_quotes(parameter.name);
    if (parameter.regions.size() != step.ranks.size()) throw Wrong("is listed by other ranks alone");
  }
  for (const auto& [name, tensor] : file.tensors) {
    const std::size_t slash = name.find('/');
    const std::string what = name.substr(0, slash);
    if (std::none_of(std::begin(kCaseTensors), std::end(kCaseTensors), [&](const CaseTensor& one) {
          return what == one.name || what == std::string("master_") + one.name;
        }))
      continue;
    place = "tensor " + in_quotes(name);
    if (slash == std::string::npos || known.count(name.substr(slash + 1)) == 0)
      throw Wrong("belongs to no parameter that its \"parameters\" list");
    if (tensor.header().type == StoredType::other)
      throw Wrong("has the type " + in_quotes(tensor.header().dtype) + ", not F32, BF16 or F16");
    if (tensor.header().elements() > 0) tensors[name] = tensor;
    step.stored += tensor.header().elements();
  }
}

using RankFiles = std::map<std::int64_t, DumpFile>;

// All files of one step, by rank.
DumpedStep step_of(const RankFiles& files) {
  DumpedStep step;
  const DumpFile& first = files.begin()->second;
  step.step = first.step;
  std::vector<int> missing;
  for (std::int64_t rank = 0; rank < first.world; ++rank)
    if (files.count(rank) == 0) missing.push_back(static_cast<int>(rank));
  if (!missing.empty())
    throw UsageError(fmt::format("step {} of {} ranks has no file of {}; let each rank write its own", first.step,
                                 first.world, ranks_list(missing)));
  Json mesh;
  first.read([&](const std::string&) {
    mesh = first.object("mesh");
    std::int64_t product = 1;
    for (const auto& [name, size] : mesh.items()) {
      step.mesh.emplace_back(name, static_cast<int>(whole(size, in_quotes(name), 1, kMostRanks)));
      product = std::min(product * step.mesh.back().second, kMostRanks + 1);
    }
    if (product != first.world)
      throw Wrong(fmt::format("has a \"mesh\" of {} ranks, but \"world\" is {}", product, first.world));
  });
  for (const auto& file : files) file.second.read([&](std::string& place) { add(file.second, mesh, step, place); });
  return step;
}

std::int64_t elements_of(const std::vector<Range>& ranges) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : ranges) sum += end - begin;
  return sum;
}

// The region as ranges of the whole's row-major elements, found line by line of its last dimension.
std::vector<Range> ranges_of(Region region, std::vector<std::int64_t> shape) {
  const Range flat = region.flat.value_or(Range{0, std::numeric_limits<std::int64_t>::max() / 2});
  shape.insert(shape.begin(), 1);  // a single number is a line, too
  region.box.insert(region.box.begin(), {0, 1});
  const std::size_t last = shape.size() - 1;
  std::int64_t lines = 1, passed = 0;  // elements of the box
  for (std::size_t dim = 0; dim < last; ++dim) lines *= shape[dim];
  std::vector<Range> ranges;
  for (std::int64_t line = 0; line < lines && passed < flat.second; ++line) {
    bool inside = true;
    std::int64_t index = line;
    for (std::size_t dim = last; dim-- > 0; index /= shape[dim])
      inside = inside && region.box[dim].first <= index % shape[dim] && index % shape[dim] < region.box[dim].second;
    if (!inside) continue;
    const auto [from, to] = region.box[last];
    const std::int64_t begin = std::max(from, from + flat.first - passed),
                       end = std::min(to, from + flat.second - passed);
    passed += to - from;
    if (begin >= end) continue;
    const std::int64_t first = line * shape[last];
    if (!ranges.empty() && ranges.back().second == first + begin)
      ranges.back().second = first + end;
    else
      ranges.emplace_back(first + begin, first + end);
  }
  return ranges;
}

}  // namespace

std::vector<int> coordinates(const Mesh& mesh, int rank) {
  std::vector<int> at(mesh.size());
  for (std::size_t axis = mesh.size(); axis-- > 0; rank /= mesh[axis].second) at[axis] = rank % mesh[axis].second;
  return at;
}

std::string element_text(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t dim = shape.size(); dim-- > 0; element /= shape[dim]) index[dim] = element % shape[dim];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string ranks_list(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + visible_names(names);
}

void DumpedStep::refuse(const std::string& why) const {
  throw UsageError(fmt::format("can't judge step {}: {}; docs/dump-format.md says what each rank writes", step, why));
}

const DumpedParameter* DumpedStep::find(const std::string& name) const {
  for (const DumpedParameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

bool DumpedStep::has(const std::string& tensor) const {
  return std::any_of(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank.count(tensor) > 0; });
}

Holdings DumpedStep::holdings(const DumpedParameter& parameter, const std::string& tensor) const {
  const std::string name = in_quotes(parameter.name);
  if (tensor.rfind("master_", 0) == 0) {  // cut as moments are, or as weights: their shapes say which
    const Holdings as_moments = holdings(parameter, "momentum_before");
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (const auto master = ranks[rank].find(tensor + "/" + parameter.name); master != ranks[rank].end())
        if (master->second.header().shape != as_moments.shapes[rank]) return holdings(parameter, "before");
    return as_moments;
  }
  const Role role = tensor == "grad" ? grad : tensor == "before" || tensor == "after" ? weights : moments;
  if (parameter.elements > stored)
    refuse(fmt::format("{} has {} elements by its shape, more than all tensors together", name, parameter.elements));
  Holdings holdings;
  std::map<std::vector<int>, std::vector<int>> copies;  // by their coordinates on the axes that repeat it
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const Region& region = parameter.regions[rank][role];
    holdings.parts.push_back({rank, ranges_of(region, parameter.shape)});
    std::vector<std::int64_t>& shape = holdings.shapes.emplace_back();
    if (region.flat)
      shape = {region.flat->second - region.flat->first};
    else
      for (const auto& [from, to] : region.box) shape.push_back(to - from);
    std::vector<int> at = coordinates(mesh, rank);
    for (const std::size_t axis : parameter.cutting[role]) at[axis] = 0;
    copies[at].push_back(rank);
  }
  for (const auto& [at, of] : copies) {
    std::vector<std::tuple<std::int64_t, std::int64_t, int>> pieces;
    for (const int rank : of)
      for (const auto& [begin, end] : holdings.parts[rank].ranges) pieces.emplace_back(begin, end, rank);
    std::sort(pieces.begin(), pieces.end());
    pieces.emplace_back(parameter.elements, parameter.elements, -1);
    std::int64_t next = 0;
    int before = -1;
    for (const auto& [begin, end, rank] : pieces) {
      if (begin != next)
        refuse(fmt::format("the placements of {} leave its element {} to {}", name,
                           element_text(parameter.shape, std::min(begin, next)),
                           begin > next ? "no rank" : fmt::format("ranks {} and {}", before, rank)));
      next = end;
      before = rank;
    }
    holdings.copies.push_back(of);
  }
  return holdings;
}

std::optional<StoredTensor> DumpedStep::part(const std::string& tensor, int rank, const Holdings& holdings) const {
  const auto found = ranks[rank].find(tensor);
  if (found == ranks[rank].end()) return std::nullopt;
  const auto& ranges = holdings.parts[rank].ranges;
  const std::vector<std::int64_t>&is = found->second.header().shape, &shape = holdings.shapes[rank];
  if (ranges.empty() || is != shape)
    refuse(fmt::format("{} is of shape [{}] on rank {}, but its placements leave it {}", in_quotes(tensor),
                       fmt::join(is, ", "), rank,
                       ranges.empty() ? "nothing" : fmt::format("[{}]", fmt::join(shape, ", "))));
  return found->second.file->read(found->second.index);
}

Assembled DumpedStep::assembled(const DumpedParameter& parameter, const std::string& tensor) const {
  const std::string name = tensor + "/" + parameter.name;
  const Holdings holdings = this->holdings(parameter, tensor);
  Assembled whole;
  for (const std::vector<int>& copy : holdings.copies) {
    Assembled::Version version;
    for (const int rank : copy) {
      std::optional<StoredTensor> piece = part(name, rank, holdings);
      const auto& ranges = holdings.parts[rank].ranges;
      if (!piece && !ranges.empty() && has(name))
        refuse(fmt::format("rank {} has no {}, though its placements leave it {} elements and other ranks have theirs",
                           rank, in_quotes(name), elements_of(ranges)));
      if (!piece) continue;
      if (whole.dtype.empty()) whole.dtype = piece->dtype;
      if (piece->dtype != whole.dtype)
        refuse(fmt::format("{} is {} on rank {} and {} on rank {}", in_quotes(name), whole.dtype,
                           whole.versions.empty() ? version.ranks[0] : whole.versions[0].ranks[0], piece->dtype, rank));
      version.ranks.push_back(rank);
      const Flat values = piece->values();
      version.values.resize(parameter.elements);
      const float* from = values.data();
      for (const auto& [begin, end] : ranges) {
        std::copy(from, from + (end - begin), version.values.data() + begin);
        from += end - begin;
      }
    }
    if (version.ranks.empty()) return whole;
    const auto same = std::find_if(whole.versions.begin(), whole.versions.end(),
                                   [&](const auto& other) { return same_bits(other.values, version.values); });
    if (same == whole.versions.end())
      whole.versions.push_back(std::move(version));
    else
      same->ranks.insert(same->ranks.end(), version.ranks.begin(), version.ranks.end());
  }
  return whole;
}

ParameterCase DumpedStep::read(const DumpedParameter& parameter) const {
  const std::string name = "/" + parameter.name;
  ParameterCase whole;
  static_cast<Described&>(whole) = parameter;
  whole.step = step;
  whole.mesh = mesh;
  whole.of_masters = has("master_before" + name);
  if (whole.of_masters != has("master_after" + name))
    refuse(in_quotes(parameter.name) + " has masters before or after the step, but not both");
  for (const std::string tensor : {"before", "after"})
    if (!has(tensor + name)) refuse("no rank has " + in_quotes(tensor + name));
  for (const CaseTensor& tensor : kCaseTensors) {
    const bool weights = tensor.of == &ParameterCase::before || tensor.of == &ParameterCase::after;
    whole.*tensor.of = assembled(parameter, (whole.of_masters && weights ? "master_" : "") + std::string(tensor.name));
  }
  for (const Assembled* moment : {&whole.momentum_before, &whole.second_before})
    for (const Assembled::Version& version : moment->versions)
      if (step == 1 && !all_zero(version.values))
        refuse(fmt::format("the moments of {} before step 1 are not zero", in_quotes(parameter.name)));
  whole.parts = holdings(parameter, "before").parts;
  whole.moment_parts = holdings(parameter, "momentum_before").parts;
  if (std::equal(whole.parts.begin(), whole.parts.end(), whole.moment_parts.begin(),
                 [](const Part& a, const Part& b) { return a.ranges == b.ranges; }))
    whole.moment_parts.clear();
  return whole;
}

std::vector<DumpedStep> read_dump(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::map<std::int64_t, RankFiles> files;  // by step
  const auto open = [&](const std::string& path) {
    DumpFile file = opened(path);
    RankFiles& others = files[file.step];
    const auto [other, fresh] = others.emplace(file.rank, file);
    if (const DumpFile& first = fresh ? others.begin()->second : other->second; !fresh || first.world != file.world)
      throw UsageError(fmt::format(
          "{} and {} are rank {} of {} and rank {} of {} in step {}; keep dumps of two runs apart",
          in_quotes(first.path), in_quotes(path), first.rank, first.world, file.rank, file.world, file.step));
  };
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      open(path);
      continue;
    }
    std::size_t found = 0;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
      if (ends_with(entry->path().string(), ".safetensors")) open(entry->path().string()), ++found;
    if (error || found == 0)
      throw UsageError(fmt::format("there is no .safetensors file in {}{}; name the folder of a dump", in_quotes(path),
                                   error ? ": " + error.message() : ""));
  }
  std::vector<DumpedStep> steps;
  for (auto& [number, of_step] : files) steps.push_back(step_of(of_step));
  return steps;
}

std::vector<DumpedStep> read_files(const std::vector<std::pair<std::string, std::string>>& files,
                                   const std::string& hyper, std::int64_t step) {
  DumpFile all;  // as if one process had written one file
  all.path = "--hyper";
  all.step = step;
  if (!hyper.empty()) all.metadata["hyper"] = Json::parse(hyper, nullptr, false);
  for (const auto& [what, path] : files) {
    const auto reader = std::make_shared<SafetensorsReader>(path);
    for (std::size_t i = 0; i < reader->tensors().size(); ++i) {
      const StoredTensor& tensor = reader->tensors()[i];
      if (tensor.type == StoredType::other) continue;
      if (what == "before") all.metadata["parameters"][tensor.name] = {{"shape", tensor.shape}};
      if (all.metadata["parameters"].contains(tensor.name))
        all.tensors.emplace_back(what + "/" + tensor.name, DumpedTensor{reader, i});
    }
    if (all.tensors.empty())
      throw UsageError(in_quotes(path) + " has no tensor of F32, BF16 or F16; name a file of weights");
  }
  return {step_of({{0, all}})};
}

}  // namespace muonwalk::check
