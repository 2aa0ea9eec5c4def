#include "lessons/lesson_09_full_step/training_files.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/steps.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

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
  if (!tensor.can_be_trained() && tensor.shape.size() != 3)
    throw UsageError(
        fmt::format("{}: tensor {} is {}, but only vectors, matrices and stacks of matrices are trained; with "
                    "--frozen {} it is written unchanged",
                    in_quotes(names.params), in_quotes(tensor.name), shape_of(tensor), as_typed(tensor.name)));
  return true;
}

// The same tensor, the matrices of a stack one below the other.
StoredTensor flattened(StoredTensor tensor) {
  if (tensor.shape.size() == 3) tensor.shape = {tensor.shape[0] * tensor.shape[1], tensor.shape[2]};
  return tensor;
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

// Refuses a tensor that has no weights of its name and shape.
void require_like(const StoredTensor& tensor, const StoredTensor* weights, const std::string& path,
                  const std::string& params_path, const char* what) {
  if (weights == nullptr)
    throw UsageError(fmt::format("{}: tensor {} has no weights in {}; both files must name the same tensors",
                                 in_quotes(path), in_quotes(tensor.name), in_quotes(params_path)));
  if (weights->shape != tensor.shape)
    throw UsageError(fmt::format("{}: tensor {} is {} here but {} in {}; {} has the shape of its weights",
                                 in_quotes(path), in_quotes(tensor.name), shape_of(tensor), shape_of(*weights),
                                 in_quotes(params_path), what));
}

constexpr const char* kSecondMoment = ".second_moment";

// Zeros.
StoredTensor in_float32(const std::string& name, const std::vector<std::int64_t>& shape) {
  StoredTensor tensor{name, "F32", StoredType::f32, shape, {}};
  tensor.bytes.resize(static_cast<std::size_t>(tensor.elements()) * sizeof(float));
  return tensor;
}

std::uint64_t digest_of(const std::vector<Matrix>& gradients) {
  std::uint64_t digest = 0;
  for (const Matrix& each : gradients)
    digest = XXH3_64bits_withSeed(each.data(), static_cast<std::size_t>(each.bytes()), digest);
  return digest;
}

}  // namespace

std::vector<Piece> split_rows(const std::string& how, Index rows) {
  const std::vector<std::string> words = split_at(how, ':');
  std::string kind = words[0];
  AttentionRows attention;
  const std::string megatron = "megatron-";
  if (kind.rfind(megatron, 0) == 0) attention.interleaved = true, kind = kind.substr(megatron.size());
  std::vector<Index> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) numbers.push_back(number_from<int>(words[i]).value_or(0));
  const bool of_heads = kind == "heads", of_qkv = kind == "qkv" || kind == "qkv-heads";
  const bool known = kind == "gate-up" ? numbers.empty() && !attention.interleaved
                     : of_heads        ? numbers.size() == 1 && !attention.interleaved
                                       : of_qkv && numbers.size() == 2;
  if (!known || std::any_of(numbers.begin(), numbers.end(), [](Index number) { return number < 1; }))
    throw UsageError(
        fmt::format("--split …={} is not known; it takes qkv:HEADS:KV_HEADS, qkv-heads:HEADS:KV_HEADS, the "
                    "same with megatron- before it, heads:HEADS or gate-up, for example qkv-heads:32:8",
                    as_typed(how)));
  const Index parts = kind == "gate-up" ? 2 : of_heads ? numbers[0] : numbers[0] + 2 * numbers[1];
  if (rows % parts != 0)
    throw UsageError(
        fmt::format("--split …={} shares rows out to {}, which does not divide the {} rows of the matrix; "
                    "give the numbers of heads that it has",
                    as_typed(how), count_text(parts, "part"), rows));
  if (kind == "gate-up") return gate_and_up(rows);
  if (of_heads) {
    std::vector<Piece> heads;
    const Index of_head = rows / parts;
    for (Index head = 0; head < parts; ++head)
      heads.push_back({fmt::format("head {}", head), {{head * of_head, (head + 1) * of_head}}});
    return heads;
  }
  attention.heads = numbers[0];
  attention.kv_heads = numbers[1];
  attention.head_rows = rows / parts;
  return qkv_pieces(attention, kind == "qkv" ? QkvSplit::three : QkvSplit::heads);
}

// Each matrix of a stack by itself; of each, its pieces.
std::vector<FileTraining::Place> FileTraining::places_of(const StoredTensor& tensor, std::size_t number) const {
  std::string how;
  for (const std::string& split : names_.split) {
    const std::size_t equals = split.find('=');
    if (equals == std::string::npos)
      throw UsageError(
          fmt::format("--split {} says of no tensor how it is split; it takes PATTERN=HOW, for example "
                      "'*qkv*=qkv:32:8'",
                      as_typed(split)));
    if (is_named({split.substr(0, equals)}, tensor.name)) how = split.substr(equals + 1);
  }
  const bool stack = tensor.shape.size() == 3;
  const Index matrices = stack ? tensor.shape[0] : 1;
  const Index rows = tensor.shape.size() < 2 ? 1 : stack ? tensor.shape[1] : tensor.shape[0];
  std::vector<Place> places;
  for (Index matrix = 0; matrix < matrices; ++matrix) {
    std::vector<Piece> pieces = {{"", {{0, rows}}}};
    if (!how.empty() && tensor.shape.size() >= 2) pieces = split_rows(how, rows);
    for (Piece& piece : pieces) {
      for (Range& range : piece.rows) range = {range.begin + matrix * rows, range.end + matrix * rows};
      if (stack) piece.name = fmt::format("{}{}{}", matrix, piece.name.empty() ? "" : " ", piece.name);
      places.push_back({number, piece, matrices == 1 && pieces.size() == 1});
    }
  }
  return places;
}

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
  for (const std::string& split : names.split)
    if (std::none_of(file_.tensors.begin(), file_.tensors.end(), [&split](const StoredTensor& tensor) {
          return tensor.shape.size() >= 2 && is_named({split.substr(0, split.find('='))}, tensor.name);
        }))
      throw UsageError(fmt::format("--split {} names no matrix of {}", as_typed(split), in_quotes(names.params)));
  for (std::size_t t = 0; t < file_.tensors.size(); ++t) {
    const StoredTensor& tensor = file_.tensors[t];
    if (!is_trained(tensor, names)) {
      unchanged_.push_back(tensor.name);
      continue;
    }
    const Matrix values = flattened(tensor).matrix();
    const bool vector = tensor.shape.size() < 2;
    for (const Place& place : places_of(tensor, t)) {
      weights_.push_back(take_rows(values, place.rows));
      const Shape shape = {weights_.back().rows(), weights_.back().cols()};
      const std::string name = place.whole ? tensor.name : fmt::format("{}[{}]", tensor.name, place.rows.name);
      parameters_.push_back({name, shape, vector ? SplitDim::none : chosen_split(shape, tp), 0, vector ? 1 : 2});
      places_.push_back(place);
      require_finite(weights_.back(), names.params, parameters_.back());
    }
  }
  if (parameters_.empty())
    throw UsageError(fmt::format("{}: there is no tensor of type F32, BF16 or F16 in it that could be trained",
                                 in_quotes(names.params)));
  for (const std::string& path : names.grads) digests_.push_back(digest_of(read_gradients(path)));
  if (!names.momentum_in.empty()) read_kept();
  if (!names.momentum_out.empty()) require_writable(names.momentum_out);
}

// The gradients of one file, in the order of the parameters.
std::vector<Matrix> FileTraining::read_gradients(const std::string& path) const {
  const SafetensorsFile file = read_safetensors(path);
  const TensorIndex weights_of(file_), gradients_of(file);
  for (const StoredTensor& tensor : file.tensors)
    require_like(tensor, weights_of.find(tensor.name), path, names_.params, "a gradient");
  std::vector<Matrix> gradients;
  Matrix values;  // of the tensor before, which the next parameter may lie in as well
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = parameters_[p];
    const StoredTensor* tensor = gradients_of.find(file_.tensors[places_[p].tensor].name);
    if (tensor == nullptr)
      throw UsageError(
          fmt::format("{}: there is no gradient for {} {} of {}; each file of gradients must hold all of them, but for "
                      "what is named with --frozen",
                      in_quotes(path), kind_of(parameter), in_quotes(file_.tensors[places_[p].tensor].name),
                      in_quotes(names_.params)));
    if (tensor->type == StoredType::other)
      throw UsageError(fmt::format("{}: the gradient {} is of type {}; it must be F32, BF16 or F16", in_quotes(path),
                                   in_quotes(tensor->name), tensor->dtype));
    if (p == 0 || places_[p].tensor != places_[p - 1].tensor) values = flattened(*tensor).matrix();
    gradients.push_back(take_rows(values, places_[p].rows));
    require_finite(gradients.back(), path, parameter);
  }
  return gradients;
}

void FileTraining::read_kept() {
  const SafetensorsFile file = read_safetensors(names_.momentum_in);
  const TensorIndex weights_of(file_);
  std::map<std::string, std::size_t> number_of;
  for (std::size_t p = 0; p < parameters_.size(); ++p) number_of[parameters_[p].name + kSecondMoment] = p;
  for (const StoredTensor& tensor : file.tensors) {
    if (tensor.type == StoredType::other)
      throw UsageError(fmt::format("{}: tensor {} is of type {}; it must be F32, BF16 or F16",
                                   in_quotes(names_.momentum_in), in_quotes(tensor.name), tensor.dtype));
    if (number_of.count(tensor.name) > 0) {
      kept_.second_moments[parameters_[number_of[tensor.name]].name] = flattened(tensor).matrix().flat();
      continue;
    }
    require_like(tensor, weights_of.find(tensor.name), names_.momentum_in, names_.params, "a momentum");
    const Matrix values = flattened(tensor).matrix();
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (file_.tensors[places_[p].tensor].name != tensor.name) continue;
      kept_.momentum[parameters_[p].name] = take_rows(values, places_[p].rows);
      require_finite(kept_.momentum[parameters_[p].name], names_.momentum_in, parameters_[p]);
    }
  }
}

void FileTraining::require_kept(const std::vector<std::string>& parameters, const SecondMoment& used) const {
  if (names_.momentum_in.empty()) return;
  const auto refuse = [&](const std::string& name, const std::string& what) {
    throw UsageError(fmt::format("{}: {} {}", in_quotes(names_.momentum_in), in_quotes(name), what));
  };
  for (const auto& [name, momentum] : kept_.momentum)
    if (std::find(parameters.begin(), parameters.end(), name) == parameters.end())
      refuse(name, "has a momentum here, but Muon doesn't step it; leave it out");
  for (const auto& [name, means] : kept_.second_moments)
    if (!used.used) refuse(name, "has a second moment here, which this recipe doesn't keep; leave it out");
  for (const std::string& name : parameters) {
    if (kept_.momentum.count(name) == 0)
      refuse(name, "has no momentum here; the file must hold that of every matrix that Muon steps");
    const Matrix& momentum = kept_.momentum.at(name);
    const auto wanted = static_cast<std::size_t>(used.count({momentum.rows(), momentum.cols()}));
    if (!used.used) continue;
    if (kept_.second_moments.count(name) == 0 || kept_.second_moments.at(name).size() != wanted)
      refuse(name,
             fmt::format("needs a vector of {} numbers called {}{} here, because this recipe keeps a second moment",
                         wanted, visible_name(name), kSecondMoment));
  }
}

void FileTraining::write_kept(const MuonMemory& kept) const {
  SafetensorsFile file;
  std::size_t last = file_.tensors.size();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const auto found = kept.momentum.find(parameters_[p].name);
    if (found == kept.momentum.end()) continue;
    const StoredTensor& weights = file_.tensors[places_[p].tensor];
    if (places_[p].tensor != last) file.tensors.push_back(in_float32(weights.name, weights.shape));
    last = places_[p].tensor;
    StoredTensor flat = flattened(file.tensors.back());
    Matrix values = flat.matrix();
    put_rows(found->second, places_[p].rows, values);
    flat.store(values);
    file.tensors.back().bytes = std::move(flat.bytes);
  }
  for (const auto& [name, means] : kept.second_moments) {
    file.tensors.push_back(in_float32(name + kSecondMoment, {static_cast<std::int64_t>(means.size())}));
    file.tensors.back().store(Matrix(1, static_cast<Index>(means.size()), means));
  }
  write_safetensors(names_.momentum_out, file);
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
    gradients = read_gradients(path);
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
  for (std::size_t t = 0; t < file.tensors.size(); ++t) {
    StoredTensor flat = flattened(file.tensors[t]);
    Matrix values;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (places_[p].tensor != t) continue;
      if (values.empty()) values = flat.matrix();
      put_rows(weights[p], places_[p].rows, values);
    }
    if (values.empty()) continue;
    flat.store(values);
    file.tensors[t].bytes = std::move(flat.bytes);
  }
  write_safetensors(names_.out, file);
}

}  // namespace muonwalk

namespace muonwalk::sim {
namespace {

// `work` with every matrix of which the rank owns an element, and what it owns of it, counted in its shard.
void for_own(const Layout& hidden, const Place& place, const std::function<void(const DistMeta&, Range)>& work) {
  for (const DistMeta& meta : hidden.parameters())
    if (const Range mine = hidden.local_range(meta, place.dp); !mine.empty()) work(meta, mine);
}

}  // namespace

MuonMemory kept_before(const Training& training) {
  const auto* files = dynamic_cast<const FileTraining*>(&training);
  return files == nullptr ? MuonMemory() : files->kept();
}

void put_kept(const MuonMemory& kept, const Layout& hidden, const Place& place, MuonState& state) {
  for_own(hidden, place, [&](const DistMeta& meta, Range mine) {
    if (const auto whole = kept.momentum.find(meta.name); whole != kept.momentum.end()) {
      const Matrix slice = tp_shard(whole->second, meta.tp_split_dim, hidden.grid.tp(), place.tp);
      const Flat part = dp_shard(slice, hidden, meta, place.dp);
      std::copy(part.begin(), part.end(), state.momentum[meta.buffer_idx][meta.bucket_idx].begin() + mine.begin);
    }
    if (const auto means = kept.second_moments.find(meta.name); means != kept.second_moments.end())
      state.second_moments[0][meta.parameter] = means->second;
  });
}

std::vector<NamedMatrix> kept_parts(const MuonState& state, const Layout& hidden, const Place& place) {
  std::vector<NamedMatrix> parts;
  for_own(hidden, place, [&](const DistMeta& meta, Range mine) {
    const Flat& shard = state.momentum[meta.buffer_idx][meta.bucket_idx];
    parts.push_back({meta.name, Matrix(1, mine.size(), Flat(shard.begin() + mine.begin, shard.begin() + mine.end))});
    if (state.second_moments.empty()) return;
    const Flat& means = state.second_moments[0][meta.parameter];
    parts.push_back({meta.name + " second moment", Matrix(1, static_cast<Index>(means.size()), means)});
  });
  return parts;
}

}  // namespace muonwalk::sim
