#include "lessons/lesson_20_pretrain/checkpoint.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "src/errors.hpp"
#include "src/io/safetensors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

std::string tensor_text(Shape shape, int dims) {
  return dims == 1 ? fmt::format("a vector of {}", shape.size()) : "a matrix " + shape_text(shape.rows, shape.cols);
}

constexpr char kVersionKey[] = "muonwalk.checkpoint", kOptimizerKey[] = "muonwalk.optimizer",
               kStepsKey[] = "muonwalk.steps", kNotePrefix[] = "note.", kStatePrefix[] = "optimizer.";
constexpr const char* kTakeAnother = "resume from another one";

std::string exchanged(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

// "optimizer.second_moments.w". A kind of state has neither "_" nor "." in it, so the way back is clear.
std::string state_tensor_name(const std::string& kind, const std::string& parameter) {
  if (kind.empty() || kind.find_first_of("_.") != std::string::npos)
    throw std::invalid_argument("an optimizer keeps " + in_quotes(kind) +
                                ", but what it keeps needs a name without \"_\" and \".\"");
  return kStatePrefix + exchanged(kind, ' ', '_') + "." + parameter;
}

// The tensor, whose values it takes.
StoredTensor stored(std::string name, int dims, Matrix values) {
  StoredTensor tensor{std::move(name), "F32", StoredType::f32, {values.rows(), values.cols()}, {}};
  if (dims == 1) tensor.shape = {values.size()};
  tensor.store(values);
  return tensor;
}

// The value of a key that every checkpoint has.
const std::string& required(const SafetensorsFile& file, const std::string& path, const std::string& key) {
  for (const auto& [each, value] : file.metadata)
    if (each == key) return value;
  refuse_checkpoint(path, "its metadata has no " + in_quotes(key), kTakeAnother);
}

void require_checkpoint(const SafetensorsFile& file, const std::string& path) {
  const auto version = std::find_if(file.metadata.begin(), file.metadata.end(),
                                    [](const auto& entry) { return entry.first == kVersionKey; });
  if (version == file.metadata.end())
    refuse_checkpoint(path, "it is a safetensors file, but not one that Muonwalk saved to go on from",
                      "name a file that it did save");
  if (version->second != kCheckpointVersion)
    refuse_checkpoint(path,
                      fmt::format("it is of version {}, and this program knows version {}", as_typed(version->second),
                                  kCheckpointVersion),
                      "read it with the program that saved it");
  if (required(file, path, kDigestKey) != contents_digest(file))
    refuse_checkpoint(path, "its contents are not those that were saved, as its digest shows", kTakeAnother);
}

// Puts a tensor "optimizer.KIND.NAME" with the weights that it is about.
void add_state(Checkpoint& checkpoint, const StoredTensor& tensor) {
  const std::string rest = tensor.name.substr(sizeof kStatePrefix - 1);
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const std::string name = rest.substr(std::min(dot + 1, rest.size()));
  const auto of = std::find_if(checkpoint.parameters.begin(), checkpoint.parameters.end(),
                               [&name](const SavedParameter& parameter) { return parameter.name == name; });
  if (of == checkpoint.parameters.end())
    refuse_checkpoint(checkpoint.path, "it has " + in_quotes(tensor.name) + ", but no weights of that name",
                      kTakeAnother);
  Matrix values = tensor.matrix();
  if (values.rows() != of->weights.rows() || values.cols() != of->weights.cols())
    refuse_checkpoint(checkpoint.path, "its " + in_quotes(tensor.name) + " does not have the shape of its weights",
                      kTakeAnother);
  of->state[exchanged(rest.substr(0, dot), '_', ' ')] = std::move(values);
}

}  // namespace

const SavedParameter* Checkpoint::find(const std::string& name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&name](const SavedParameter& parameter) { return parameter.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

void require_model(const Checkpoint& checkpoint, const std::vector<Parameter>& model) {
  constexpr const char* kRemedy = "resume with the model that it was saved of";
  std::set<std::string> names;
  for (const Parameter& parameter : model) {
    names.insert(parameter.name);
    const SavedParameter* saved = checkpoint.find(parameter.name);
    if (saved == nullptr)
      refuse_checkpoint(checkpoint.path, "it has no " + in_quotes(parameter.name) + ", which the model has", kRemedy);
    const Shape shape = {saved->weights.rows(), saved->weights.cols()};
    if (shape != parameter.shape || (saved->dims == 1) != (parameter.dims == 1))
      refuse_checkpoint(checkpoint.path,
                        fmt::format("its {} is {}, that of the model {}", in_quotes(parameter.name),
                                    tensor_text(shape, saved->dims), tensor_text(parameter.shape, parameter.dims)),
                        kRemedy);
  }
  for (const SavedParameter& saved : checkpoint.parameters)
    if (names.count(saved.name) == 0)
      refuse_checkpoint(checkpoint.path, "it has " + in_quotes(saved.name) + ", which the model does not have",
                        kRemedy);
}

void require_notes(const Checkpoint& checkpoint, const std::map<std::string, std::string>& expected) {
  for (const auto& [key, value] : expected) {
    const auto found = checkpoint.notes.find(key);
    const bool there = found != checkpoint.notes.end();
    if (there && found->second == value) continue;
    const std::string here = in_quotes(value);
    refuse_checkpoint(checkpoint.path,
                      there ? fmt::format("its {} is {}, but here it is {}", key, in_quotes(found->second), here)
                            : fmt::format("it does not say its {}, which here is {}", key, here),
                      "resume with what it was saved with");
  }
}

void refuse_checkpoint(const std::string& path, const std::string& why, const std::string& remedy) {
  throw UsageError(fmt::format("can't use {} as a checkpoint: {}; {}",
                               path.empty() ? std::string("what was gathered") : in_quotes(path), why, remedy));
}

std::string contents_digest(const SafetensorsFile& file) {
  // Each part begins with the digest of those before it, so that what ends one can't begin the next.
  std::uint64_t digest = 0;
  const auto add = [&](const auto& part) { digest = XXH3_64bits_withSeed(part.data(), part.size(), digest); };
  for (const auto& [key, value] : file.metadata) {
    if (key == kDigestKey) continue;
    add(key);
    add(value);
  }
  for (const StoredTensor& tensor : file.tensors) {
    add(tensor.name);
    add(fmt::format("{} {}", tensor.dtype, fmt::join(tensor.shape, " ")));
    add(tensor.bytes);
  }
  return fmt::format("{:016x}", digest);
}

std::string checkpoint_path(const std::string& folder, int steps) {
  return fmt::format("{}/step-{:06}.safetensors", folder, steps);
}

void write_checkpoint(const std::string& path, Checkpoint checkpoint) {
  SafetensorsFile file;
  file.metadata = {{"format", "pt"},
                   {kVersionKey, kCheckpointVersion},
                   {kOptimizerKey, checkpoint.optimizer},
                   {kStepsKey, std::to_string(checkpoint.steps)}};
  for (const auto& [key, value] : checkpoint.notes) file.metadata.emplace_back(kNotePrefix + key, value);
  for (SavedParameter& parameter : checkpoint.parameters) {
    if (begins_with(parameter.name, kStatePrefix))
      throw UsageError(
          fmt::format("can't save {} in a checkpoint: names that begin with {} are those of state; rename "
                      "it",
                      in_quotes(parameter.name), in_quotes(kStatePrefix)));
    file.tensors.push_back(stored(parameter.name, parameter.dims, std::exchange(parameter.weights, Matrix())));
  }
  for (SavedParameter& parameter : checkpoint.parameters)
    for (auto& [kind, values] : parameter.state)
      file.tensors.push_back(
          stored(state_tensor_name(kind, parameter.name), parameter.dims, std::exchange(values, Matrix())));
  file.metadata.emplace_back(kDigestKey, contents_digest(file));
  write_safetensors(path, file);
}

Checkpoint read_checkpoint(const std::string& path) {
  SafetensorsFile file = read_safetensors(path);
  require_checkpoint(file, path);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.optimizer = required(file, path, kOptimizerKey);
  checkpoint.steps = number_from<int>(required(file, path, kStepsKey)).value_or(-1);
  if (checkpoint.steps < 0) refuse_checkpoint(path, "its number of steps is not one", kTakeAnother);
  for (const auto& [key, value] : file.metadata)
    if (begins_with(key, kNotePrefix)) checkpoint.notes[key.substr(sizeof kNotePrefix - 1)] = value;
  for (StoredTensor& tensor : file.tensors) {
    if (tensor.type != StoredType::f32 || tensor.shape.empty() || tensor.shape.size() > 2)
      refuse_checkpoint(path, "its " + in_quotes(tensor.name) + " is not a matrix or a vector of F32", kTakeAnother);
    if (begins_with(tensor.name, kStatePrefix))
      add_state(checkpoint, tensor);
    else
      checkpoint.parameters.push_back({tensor.name, static_cast<int>(tensor.shape.size()), tensor.matrix(), {}});
    tensor.bytes = {};
  }
  return checkpoint;
}

std::optional<std::string> latest_checkpoint(const std::string& folder) {
  std::optional<std::string> latest;
  int most = -1;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const std::string digits = split_at(split_at(name, '-').back(), '.').front();
      const int steps = number_from<int>(digits).value_or(-1);
      const std::string path = checkpoint_path(folder, steps);
      if (steps <= most || path.substr(folder.size() + 1) != name || !entry.is_regular_file()) continue;
      most = steps;
      latest = path;
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw UsageError(fmt::format("can't look for checkpoints in {}: {}; name a folder that has some", in_quotes(folder),
                                 error.code().message()));
  }
  return latest;
}

}  // namespace muonwalk
