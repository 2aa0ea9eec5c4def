#include "lessons/lesson_09_full_step/training_files.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

std::string shape_of(const StoredTensor& tensor) {
  return visible_name(fmt::format("[{}]", fmt::join(tensor.shape, ", ")));
}

// Whether a tensor of this name is one of those that a name or a pattern stands for.
bool is_named(const std::vector<std::string>& patterns, const std::string& name) {
  return !patterns.empty() && Claim{0, patterns, {}}.holds(Parameter{name, {}});
}

// Whether it is trained. Throws for one that should be and can't.
bool is_trained(const StoredTensor& tensor, const TrainingFileNames& names) {
  if (tensor.type == StoredType::other || tensor.elements() == 0 || is_named(names.frozen, tensor.name)) return false;
  if (!tensor.can_be_trained())
    throw UsageError(
        fmt::format("{}: tensor {} is {}, but only matrices and vectors are trained; with --frozen {} it is "
                    "written unchanged",
                    in_quotes(names.params), in_quotes(tensor.name), shape_of(tensor), as_typed(tensor.name)));
  return true;
}

// "matrix" or "vector".
const char* kind_of(const Parameter& parameter) { return parameter.dims == 2 ? "matrix" : "vector"; }

// Rows if tp divides them, else columns, else none.
SplitDim chosen_split(Shape shape, int tp) {
  if (tp == 1) return SplitDim::none;
  if (shape.rows % tp == 0) return SplitDim::rows;
  return shape.cols % tp == 0 ? SplitDim::columns : SplitDim::none;
}

void require_finite(const Matrix& values, const std::string& file, const Parameter& parameter) {
  for (Index i = 0; i < values.rows(); ++i)
    for (Index j = 0; j < values.cols(); ++j)
      if (!std::isfinite(values(i, j)))
        throw UsageError(
            fmt::format("{}: tensor {} holds {} at {}; a step needs finite numbers", in_quotes(file),
                        in_quotes(parameter.name), std::isnan(values(i, j)) ? "a NaN" : "an infinity",
                        parameter.dims == 2 ? fmt::format("row {}, column {}", i, j) : fmt::format("element {}", j)));
}

// The gradients of one file, in the order of the parameters.
std::vector<Matrix> read_gradients(const std::string& path, const std::string& params_path,
                                   const SafetensorsFile& params, const std::vector<Parameter>& parameters) {
  const SafetensorsFile file = read_safetensors(path);
  const TensorIndex weights_of(params), gradients_of(file);
  for (const StoredTensor& tensor : file.tensors) {
    const StoredTensor* weights = weights_of.find(tensor.name);
    if (weights == nullptr)
      throw UsageError(fmt::format("{}: tensor {} has no weights in {}; both files must name the same tensors",
                                   in_quotes(path), in_quotes(tensor.name), in_quotes(params_path)));
    if (weights->shape != tensor.shape)
      throw UsageError(fmt::format("{}: tensor {} is {} here but {} in {}; a gradient has the shape of its weights",
                                   in_quotes(path), in_quotes(tensor.name), shape_of(tensor), shape_of(*weights),
                                   in_quotes(params_path)));
  }
  std::vector<Matrix> gradients;
  for (const Parameter& parameter : parameters) {
    const StoredTensor* tensor = gradients_of.find(parameter.name);
    if (tensor == nullptr)
      throw UsageError(
          fmt::format("{}: there is no gradient for {} {} of {}; each file of gradients must hold all of them, but for "
                      "what is named with --frozen",
                      in_quotes(path), kind_of(parameter), in_quotes(parameter.name), in_quotes(params_path)));
    if (!tensor->can_be_trained())
      throw UsageError(fmt::format("{}: the gradient {} is of type {}; it must be F32, BF16 or F16", in_quotes(path),
                                   in_quotes(parameter.name), tensor->dtype));
    gradients.push_back(tensor->matrix());
    require_finite(gradients.back(), path, parameter);
  }
  return gradients;
}

std::uint64_t digest_of(const std::vector<Matrix>& gradients) {
  std::uint64_t digest = 0;
  for (const Matrix& each : gradients)
    digest = XXH3_64bits_withSeed(each.data(), static_cast<std::size_t>(each.bytes()), digest);
  return digest;
}

}  // namespace

FileTraining::FileTraining(const TrainingFileNames& names, int tp)
    : names_(names), file_(read_safetensors(names.params)) {
  if (names.grads.empty())
    throw UsageError(fmt::format("--params {} was given without --grads; give one file of gradients for each step",
                                 as_typed(names.params)));
  if (names.out.empty())
    throw UsageError(fmt::format("--params {} was given without --out; name the file that the new weights go to",
                                 as_typed(names.params)));
  require_writable(names.out);
  for (const std::string& frozen : names.frozen)
    if (std::none_of(file_.tensors.begin(), file_.tensors.end(),
                     [&frozen](const StoredTensor& tensor) { return is_named({frozen}, tensor.name); }))
      throw UsageError(fmt::format("--frozen {} names no tensor of {}", as_typed(frozen), in_quotes(names.params)));
  for (const StoredTensor& tensor : file_.tensors) {
    if (!is_trained(tensor, names)) {
      unchanged_.push_back(tensor.name);
      continue;
    }
    weights_.push_back(tensor.matrix());
    const Shape shape = {weights_.back().rows(), weights_.back().cols()};
    const SplitDim split = tensor.is_matrix() ? chosen_split(shape, tp) : SplitDim::none;
    parameters_.push_back({tensor.name, shape, split, 0, tensor.is_matrix() ? 2 : 1});
    require_finite(weights_.back(), names.params, parameters_.back());
  }
  if (parameters_.empty())
    throw UsageError(fmt::format("{}: there is no tensor of type F32, BF16 or F16 in it that could be trained",
                                 in_quotes(names.params)));
  for (const std::string& path : names.grads)
    digests_.push_back(digest_of(read_gradients(path, names.params, file_, parameters_)));
}

std::vector<Matrix> FileTraining::gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const {
  std::vector<Matrix> parts;
  if (leaf > 0) {
    for (const NamedMatrix& each : held) parts.emplace_back(each.matrix.rows(), each.matrix.cols());
    return parts;
  }
  const std::vector<Matrix> whole = read_again(step);
  for (const NamedMatrix& each : held)
    parts.push_back(column_slice(row_slice(whole[static_cast<std::size_t>(parameter_number(each.name))],
                                           {each.first_row, each.first_row + each.matrix.rows()}),
                                 {each.first_col, each.first_col + each.matrix.cols()}));
  return parts;
}

std::vector<Matrix> FileTraining::read_again(int step) const {
  const std::string& path = names_.grads[static_cast<std::size_t>(step)];
  std::vector<Matrix> gradients;
  try {
    gradients = read_gradients(path, names_.params, file_, parameters_);
  } catch (const UsageError& error) {  // it was in order when the run began
    throw RunError(
        fmt::format("step {} can't take its gradients, which were there at the start: {}", step + 1, error.what()));
  }
  if (digest_of(gradients) != digests_[static_cast<std::size_t>(step)])
    throw RunError(
        fmt::format("{} holds other gradients than at the start; leave the files as they are until the run "
                    "has ended",
                    in_quotes(path)));
  return gradients;
}

void FileTraining::write(const std::vector<Matrix>& weights) const {
  SafetensorsFile file = file_;
  // The parameters are in the order of the file, which has others between them.
  std::size_t p = 0;
  for (StoredTensor& tensor : file.tensors)
    if (p < parameters_.size() && tensor.name == parameters_[p].name) tensor.store(weights[p++]);
  write_safetensors(names_.out, file);
}

}  // namespace muonwalk
