#include "lessons/lesson_24_is_this_muon/dump_of_ranks.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "src/errors.hpp"
#include "src/io/safetensors.hpp"
#include "src/io/unfinished.hpp"
#include "tools/check/dump.hpp"

namespace muonwalk {
namespace {

// A folder for files that nobody needs afterwards, also where a signal ends the program.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "muonwalk-dump-XXXXXX").string();
  std::vector<Unfinished*> unfinished;
  Folder() {
    const SignalHold hold;
    if (mkdtemp(path.data()) == nullptr)
      throw RunError("can't make the folder " + path + "; set TMPDIR to one in which files can be written");
    unfinished.push_back(remember_unfinished(path, true));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    for (Unfinished* each : unfinished) forget_unfinished(each);
  }
  std::string file(const std::string& name) {
    unfinished.push_back(remember_unfinished(path + "/" + name, false));
    return path + "/" + name;
  }
};

// How one rank describes its parameters: TP cuts rows or columns, DP the moments of what is left.
std::string parameters_text(const Layout& layout, const Place& place) {
  std::string text;
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    std::string tp;
    if (meta.tp_split_dim != SplitDim::none)
      tp = fmt::format(R"({{"axis": "tp", "kind": "shard", "dim": {}}})", meta.tp_split_dim == SplitDim::rows ? 0 : 1);
    const Range owned = layout.owned_range(meta, place.dp);
    const Index begin = owned.size() == 0 ? 0 : owned.begin - meta.global_range.begin;
    text += fmt::format(R"({}"{}": {{"shape": [{}, {}], "optimizer": "muon", "placements": {{"weights": [{}],
                        "grad": [{}], "moments": [{}{}{{"axis": "dp", "kind": "flat", "begin": {}, "end": {}}}]}}}})",
                        text.empty() ? "" : ", ", meta.name, meta.full_shape.rows, meta.full_shape.cols, tp, tp, tp,
                        tp.empty() ? "" : ", ", begin, begin + owned.size());
  }
  return "{" + text + "}";
}

}  // namespace

check::DumpVerdict judged(const DumpOfRanks& dump) {
  Folder folder;
  const Grid& grid = dump.layout.grid;
  for (int rank = 0; rank < grid.size(); ++rank) {
    SafetensorsFile file;
    file.metadata = {
        {"format", "muonwalk-dump 1"},
        {"step", std::to_string(dump.step)},
        {"rank", std::to_string(rank)},
        {"world", std::to_string(grid.size())},
        {"mesh", fmt::format(R"({{"dp": {}, "tp": {}}})", grid.dp(), grid.tp())},
        {"hyper", fmt::format(R"({{"lr": {}, "momentum": {}, "weight_decay": {}, "nesterov": {}}})", dump.told.lr,
                              dump.told.momentum, dump.told.weight_decay, dump.told.nesterov)},
        {"parameters", parameters_text(dump.layout, grid.place(rank))}};
    for (const NamedMatrix& tensor : dump.tensors[rank]) {
      StoredTensor stored{tensor.name, "F32", StoredType::f32, {tensor.matrix.rows(), tensor.matrix.cols()}, {}};
      if (tensor.name.rfind("momentum", 0) == 0) stored.shape = {tensor.matrix.size()};
      stored.store(tensor.matrix);
      file.tensors.push_back(stored);
    }
    write_safetensors(folder.file(fmt::format("step{:06}.rank{:05}.safetensors", dump.step, rank)), file);
  }
  return check::check_steps(check::read_dump({folder.path}));
}

}  // namespace muonwalk
