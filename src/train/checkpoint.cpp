#include "src/train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

std::string tensor_text(Shape shape, int dims) {
  return dims == 1 ? fmt::format("a vector of {}", shape.size()) : "a matrix " + shape_text(shape.rows, shape.cols);
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
    if (found == checkpoint.notes.end())
      refuse_checkpoint(checkpoint.path, fmt::format("it does not say its {}, which here is {}", key, in_quotes(value)),
                        "resume with what it was saved with");
    if (found->second != value)
      refuse_checkpoint(checkpoint.path,
                        fmt::format("its {} is {}, but here it is {}", key, in_quotes(found->second), in_quotes(value)),
                        "resume with what it was saved with");
  }
}

void refuse_checkpoint(const std::string& path, const std::string& why, const std::string& remedy) {
  throw UsageError(fmt::format("can't use {} as a checkpoint: {}; {}",
                               path.empty() ? std::string("what was gathered") : in_quotes(path), why, remedy));
}

}  // namespace muonwalk
