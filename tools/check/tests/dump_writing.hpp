#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "src/io/safetensors.hpp"
#include "tools/check/dump.hpp"

namespace muonwalk::check {

using Json = nlohmann::ordered_json;

/// What a rank holds of a parameter, told element by element, as an array program would cut it.
struct Piece {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> elements;  // of the whole, row-major
};

inline Piece whole_piece(const std::vector<std::int64_t>& shape) {
  Piece piece{shape, {}};
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  for (std::int64_t i = 0; i < count; ++i) piece.elements.push_back(i);
  return piece;
}

/// The part of that index of torch.chunk(parts, dim).
inline Piece chunk(const Piece& from, std::size_t dim, std::int64_t parts, std::int64_t index) {
  const std::int64_t length = from.shape[dim], size = (length + parts - 1) / parts;
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < from.shape.size(); ++d) inner *= from.shape[d];
  Piece piece{from.shape, {}};
  piece.shape[dim] = 0;
  for (std::int64_t i = 0; i < length; ++i) piece.shape[dim] += size > 0 && i / size == index;
  for (std::size_t i = 0; i < from.elements.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / inner % length;
    if (at / size == index) piece.elements.push_back(from.elements[i]);
  }
  return piece;
}

/// A dump of one step that is being made: the files of its ranks, to be broken before they are written.
struct DumpWriting {
  Mesh mesh;
  std::vector<SafetensorsFile> ranks;
  std::vector<Json> parameters;  ///< Of each rank.
  Json hyper = Json::object();
  std::int64_t step;
  std::map<std::string, std::vector<Piece>> pieces;  ///< "moments/w": what each rank has.

  explicit DumpWriting(Mesh of = {}, std::int64_t number = 1) : mesh(std::move(of)), step(number) {
    int world = 1;
    for (const auto& [name, size] : mesh) world *= size;
    ranks.resize(world);
    parameters.assign(world, Json::object());
  }

  std::vector<int> coordinates(int rank) const {
    std::vector<int> at(mesh.size());
    for (std::size_t axis = mesh.size(); axis-- > 0; rank /= mesh[axis].second) at[axis] = rank % mesh[axis].second;
    return at;
  }

  /// Lists a parameter. `roles` is one list of placements, or an object of three; a flat one has the "cuts" of its
  /// range of elements, as shares from 0 to 1, in place of "begin" and "end".
  void parameter(const std::string& name, const std::vector<std::int64_t>& shape, const Json& roles = Json::array(),
                 const std::string& optimizer = "muon") {
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
      Json placements = Json::object();
      for (const char* role : {"weights", "grad", "moments"}) {
        Json list = roles.is_object() ? roles[role] : roles;
        Piece piece = whole_piece(shape);
        for (Json& entry : list) {
          std::size_t axis = 0;
          while (mesh[axis].first != entry["axis"]) ++axis;
          const int at = coordinates(rank)[axis];
          if (entry["kind"] == "shard") piece = chunk(piece, entry["dim"], mesh[axis].second, at);
          if (entry["kind"] == "owner" && entry["rank"] != at)
            piece = {std::vector<std::int64_t>(std::max<std::size_t>(1, shape.size())), {}};
          if (entry["kind"] != "flat") continue;
          const auto count = static_cast<double>(piece.elements.size());
          const auto cut = [&](int i) {
            return i == 0                   ? 0
                   : i == mesh[axis].second ? static_cast<std::int64_t>(count)
                                            : static_cast<std::int64_t>(count * entry["cuts"][i - 1].get<double>());
          };
          const std::int64_t begin = cut(at), end = cut(at + 1);
          entry = {{"axis", mesh[axis].first}, {"kind", "flat"}, {"begin", begin}, {"end", end}};
          piece.elements = {piece.elements.begin() + begin, piece.elements.begin() + end};
          piece.shape = {end - begin};
        }
        placements[role] = list;
        pieces[role + ("/" + name)].push_back(piece);
      }
      parameters[rank][name] = {{"shape", shape},
                                {"placements", roles.is_object() ? placements : placements["weights"]}};
      if (!optimizer.empty()) parameters[rank][name]["optimizer"] = optimizer;
    }
  }

  /// The part of `whole` that each rank holds, as "grad/w".
  void tensor(const std::string& what, const std::string& name, const Flat& whole, const std::string& dtype = "F32",
              std::string role = "") {
    if (role.empty()) role = what == "grad" ? "grad" : what == "before" || what == "after" ? "weights" : "moments";
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Piece& piece = pieces.at(role + "/" + name)[rank];
      if (piece.elements.empty() && rank % 2 == 1) continue;  // both are allowed: no tensor, and an empty one
      StoredTensor stored;
      stored.name = what + "/" + name;
      stored.dtype = dtype;
      stored.type = dtype == "F32" ? StoredType::f32 : dtype == "BF16" ? StoredType::bf16 : StoredType::f16;
      stored.shape = {static_cast<std::int64_t>(piece.elements.size())};
      Matrix values(1, stored.shape[0]);
      for (std::size_t i = 0; i < piece.elements.size(); ++i) values.data()[i] = whole[piece.elements[i]];
      stored.store(values);
      stored.shape = piece.shape;
      ranks[rank].tensors.push_back(stored);
    }
  }

  StoredTensor& at(int rank, const std::string& tensor) {
    for (StoredTensor& one : ranks[rank].tensors)
      if (one.name == tensor) return one;
    throw std::out_of_range(tensor);
  }
  /// Another number in place of one that a rank holds.
  void poke(int rank, const std::string& tensor, std::size_t element, float value) {
    StoredTensor& stored = at(rank, tensor);
    const std::vector<std::int64_t> shape = stored.shape;
    stored.shape = {stored.elements()};
    Matrix values = stored.matrix();
    values.data()[element] = value;
    stored.store(values);
    stored.shape = shape;
  }

  static std::string file(std::int64_t step, int rank) {
    return fmt::format("step{:06}.rank{:05}.safetensors", step, rank);
  }

  /// The metadata of each rank, where it has none yet.
  void describe() {
    Json axes = Json::object();
    for (const auto& [name, size] : mesh) axes[name] = size;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (ranks[rank].metadata.empty())
        ranks[rank].metadata = {{"format", "muonwalk-dump 1"},  {"step", std::to_string(step)},
                                {"rank", std::to_string(rank)}, {"world", std::to_string(ranks.size())},
                                {"mesh", axes.dump()},          {"framework", "a test"},
                                {"hyper", hyper.dump()},        {"parameters", parameters[rank].dump()}};
  }
  void write(const std::string& folder) {
    describe();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      write_safetensors(folder + "/" + file(step, static_cast<int>(rank)), ranks[rank]);
  }
};

inline Flat random_flat(std::int64_t count, unsigned seed, float size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  Flat values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace muonwalk::check
