// Pictures, words and JSON of many runs and layouts that were drawn by lot: too many to keep them, so a digest of each
// is kept. Where one of them differs, its line says which; scenes_test and strips_test keep a few as they are, which
// mostly show what has changed.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sim/pictures/buffer_map.hpp"
#include "sim/pictures/grid_map.hpp"
#include "sim/pictures/sharding_map.hpp"
#include "sim/pictures/strip.hpp"
#include "src/layout/buffer.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/pictures/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::Draws;
using muonwalk::testing::expect_golden;

namespace {

// FNV-1a.
std::string digest_of(const std::string& text) {
  std::uint64_t digest = 14695981039346656037ull;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return fmt::format("{:016x}", digest);
}

std::string name_of_letters(Draws& draw, int letters) {
  std::string name;
  for (int i = 0; i < letters; ++i) name += i % 5 == 4 ? std::string("·") : std::string(1, char('a' + draw(0, 25)));
  return name;
}

// A step of training, phase by phase: gradients in a bucket, their sum, a gather, matrices, and words.
class Training {
 public:
  explicit Training(unsigned seed) : draw_(seed) {
    recording.name = fmt::format("lesson_{}", seed);
    recording.number = fmt::format("{:02}", seed);
    recording.title = "Many <runs>";
    recording.question = "which of them?";
    recording.heading = fmt::format("heading of {}", seed);
    recording.precision = draw_(0, 1) == 0 ? "fp32" : "bf16";
    recording.grid = Grid().dp(draw_(1, 5)).tp(draw_(1, 3)).pp(draw_(0, 4) == 0 ? 2 : 1);
    recording.before = {"before", fmt::format("it {}", seed)};
    recording.after = {fmt::format("after {}", seed)};
    recording.ok = draw_(0, 1) == 0;
    const int parameters = draw_(1, 5);
    Index at = 0;
    for (int p = 0; p < parameters; ++p) {
      at += draw_(0, 3);
      const Index size = draw_(1, 5) == 1 ? draw_(100, 900) : draw_(2, 40);
      lies_.push_back({at, at + size});
      at += size;
      recording.tensors.push_back({name_of_letters(draw_, draw_(1, 12)), draw_(0, 7)});
    }
    const int dp = recording.grid.dp();
    bucket_ = (at + draw_(0, 5) + dp - 1) / dp * dp;
    before_ = draw_(0, 1) * bucket_;
    whole_ = before_ + bucket_ + draw_(0, 1) * 20'000;
    tensor_ = parameters;
    recording.tensors.push_back({"bucket", {}});
    for (int rank = 0; rank < recording.grid.size(); ++rank) {
      const Place place = recording.grid.place(rank);
      recording.ranks.push_back({draw_(0, 5) == 0
                                     ? fmt::format("rank {}", rank)
                                     : fmt::format("rank {}  dp {} tp {} pp {}", rank, place.dp, place.tp, place.pp),
                                 place});
    }
    gradients();
    sums();
    gathers();
    matrices();
    words();
  }

  Recording recording;

 private:
  RecordedBlock part_of_bucket(const std::string& state, Range part) {
    RecordedBlock block;
    block.name = "bucket" + state;
    block.tensor = tensor_;
    block.rows = 1;
    block.cols = part.size();
    block.flat = true;
    block.bytes = (draw_(0, 1) + 1) * 2LL * part.size();
    block.unit = "elements";
    block.begin = before_ + part.begin, block.end = before_ + part.end, block.of = whole_;
    block.spans.emplace();
    for (std::size_t p = 0; p < lies_.size(); ++p) {
      const Range held = intersection(lies_[p], part);
      if (!held.empty())
        block.spans->push_back(
            {static_cast<int>(p), held.begin - part.begin, held.end - part.begin, held.begin - lies_[p].begin});
    }
    return block;
  }

  template <class Holds>
  RecordedStep& add(const std::string& phase, const Holds& holds) {
    RecordedStep step;
    step.number = static_cast<int>(recording.steps.size()) + 1;
    step.title = draw_(0, 4) == 0 ? phase : "training step 1: " + phase;
    step.lines = {phase, fmt::format("line {}", draw_(0, 99))};
    step.says.resize(recording.ranks.size());
    for (const RecordedRank& rank : recording.ranks) step.holds.push_back(holds(rank.place));
    recording.steps.push_back(step);
    return recording.steps.back();
  }

  // Everybody in a group sends to everybody else, or, where a rank is left out, not to that one.
  void exchange(RecordedStep& step, const char* collective, const char* group) {
    const bool equal = draw_(0, 2) > 0;
    const int left_out = draw_(0, 2) == 0 ? draw_(0, recording.grid.size() - 1) : -1;
    for (const RecordedRank& rank : recording.ranks)
      for (const int to : recording.grid.group(group, rank.place.rank).ranks) {
        const int from = rank.place.rank;
        if (to == from || to == left_out) continue;
        for (int times = draw_(0, 5) == 0 ? 2 : 1; times > 0; --times) {
          const long long elements = equal ? 12 : draw_(1, 4000);
          step.moves.push_back({from, to, group, collective, "float32", elements, 4 * elements, times - 1});
        }
      }
  }

  void gradients() {
    add("gradients", [&](const Place&) { return Blocks{part_of_bucket(", gradients", {0, bucket_})}; });
  }

  void sums() {
    const bool all = draw_(0, 2) == 0;
    const Index shard = bucket_ / recording.grid.dp();
    RecordedStep& step = add("a sum of what all of them have, which is a long name", [&](const Place& place) {
      const Range own = {shard * place.dp, shard * (place.dp + 1)};
      RecordedBlock block = part_of_bucket(", summed", all ? Range{0, bucket_} : own);
      if (draw_(0, 3) == 0) block.note = "so far";
      return Blocks{block};
    });
    exchange(step, all ? "all_reduce" : "reduce_scatter", "dp");
  }

  void gathers() {
    const int none = draw_(0, 3 * recording.grid.size());  // this rank, if there is one, shows nothing
    RecordedStep& step = add("gather", [&](const Place& place) {
      return place.rank == none ? Blocks{} : Blocks{part_of_bucket(", gathered", {0, bucket_})};
    });
    exchange(step, "all_gather", "dp");
    if (draw_(0, 1) == 0) exchange(step, "send", "tp");
    if (draw_(0, 2) == 0) exchange(step, "send", "pp");
  }

  void matrices() {
    const int tp = recording.grid.tp();
    std::vector<std::pair<Shape, int>> shapes;  // of all slices, and how they are cut: not, by rows, by columns
    for (std::size_t p = 0; p < lies_.size(); ++p) {
      const Index size = lies_[p].size(), rows = size % 6 == 0 ? 6 : size % 2 == 0 ? 2 : 1;
      shapes.push_back({{rows, size / rows}, draw_(0, 2)});
    }
    const auto matrix = [&](std::size_t p, const Place& place, bool joined) {
      const auto& [shape, cut] = shapes[p];
      RecordedBlock block;
      block.name = recording.tensors[p].name + (joined ? ", joined" : "");
      block.tensor = static_cast<int>(p);
      block.rows = shape.rows * (joined && cut == 1 ? tp : 1), block.cols = shape.cols * (joined && cut == 2 ? tp : 1);
      block.flat = cut == 0 && block.rows == 1;
      block.bytes = 4LL * block.rows * block.cols;
      if (!joined && cut > 0) {
        const Index mine = cut == 1 ? shape.rows : shape.cols;
        block.unit = cut == 1 ? "rows" : "columns";
        block.begin = mine * place.tp, block.end = mine * (place.tp + 1), block.of = mine * tp;
      }
      if (draw_(0, 2) == 0) {
        block.values.emplace();
        const float odd[] = {0.1f,
                             -1.5f,
                             1e-9f,
                             3e20f,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
        for (int i = draw_(1, 7); i > 0; --i) block.values->push_back(odd[draw_(0, 6)]);
      }
      if (draw_(0, 2) == 0) block.digest = fmt::format("{:016x}", draw_(0, 1'000'000));
      if (draw_(0, 3) == 0) block.note = "noted";
      if (draw_(0, 3) == 0) block.from = {draw_(0, tensor_), tensor_};
      return block;
    };
    for (const bool joined : {false, true}) {
      RecordedStep& step = add(joined ? "join" : "view", [&](const Place& place) {
        Blocks blocks;
        for (std::size_t p = 0; p < lies_.size(); ++p)
          if (draw_(0, 9) > 0) blocks.push_back(matrix(p, place, joined));
        return blocks;
      });
      if (joined) exchange(step, "all_gather", "tp");
    }
  }

  void words() {
    const bool become = draw_(0, 1) == 0;
    RecordedStep& step = add("words", [](const Place&) { return Blocks{}; });
    for (std::size_t rank = 0; rank < step.says.size(); ++rank)
      for (int i = draw_(become ? 1 : 0, 2); i > 0; --i)
        step.says[rank].push_back(become ? fmt::format("a {}   →   b {}", rank, i)
                                         : "says " + name_of_letters(draw_, draw_(1, 40)) + " and on it goes");
    if (draw_(0, 3) > 0) exchange(step, "all_to_all", draw_(0, 1) == 0 ? "dp" : "tp");
  }

  using Blocks = std::vector<RecordedBlock>;
  Draws draw_;
  std::vector<Range> lies_;  // where the parameters are in the bucket
  Index bucket_ = 0, before_ = 0, whole_ = 0;
  int tensor_ = 0;
};

struct DrawnLayout {
  std::vector<Parameter> parameters;
  Grid grid;
  LayoutOptions options;

  explicit DrawnLayout(unsigned seed) {
    Draws draw(seed);
    const int tp = draw(1, 3);
    grid = Grid().dp(draw(0, 2) == 0 ? draw(8, 90) : draw(1, 7)).tp(tp);
    const int longest = draw(0, 2) == 0 ? 60 : 12;
    for (int p = draw(0, 5) == 0 ? draw(60, 75) : draw(1, 9); p > 0; --p) {
      const int large = draw(0, 6) == 0 ? 40 : 1, split = draw(0, 2);
      const SplitDim dims[] = {SplitDim::none, SplitDim::rows, SplitDim::columns};
      parameters.push_back({name_of_letters(draw, draw(1, longest)) + std::to_string(p),
                            {tp * draw(1, 6) * large, tp * draw(1, 9) * large},
                            dims[split],
                            draw(0, 3) == 0 ? 1 : 0});
    }
    options.parameter_alignment = 1 << draw(0, 6);
    options.bucket_alignment = draw(1, 16);
    options.bucket_capacity = draw(0, 2) == 0 ? 0 : draw(10, 2000);
  }
  Layout plan(Ownership ownership) const {
    LayoutOptions owned = options;
    owned.ownership = ownership;
    return plan_layout(parameters, grid, owned);
  }
};

}  // namespace

TEST_CASE("many pictures: of training that was drawn by lot, each is the one that is kept, in shapes, words and JSON") {
  std::string all;
  const auto add = [&](const std::string& what, const std::string& text) {
    if (text.rfind("<svg", 0) == 0) CHECK(XmlReader(text).complaint() == "");
    all += fmt::format("{}: {}\n", what, digest_of(text));
  };
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const Recording recording = Training(seed).recording;
    const int steps = static_cast<int>(recording.steps.size()), ranks = recording.grid.size();
    for (int step = 0; step < steps; ++step) {
      add(fmt::format("run {}, step {}", seed, step), strip_svg(recording, step));
      add(fmt::format("run {}, step {}, in words", seed, step), strip_words(recording, step));
      const int rank = (step * 3 + static_cast<int>(seed)) % ranks;
      add(fmt::format("run {}, step {}, rank {}", seed, step, rank), strip_words(recording, step, rank));
      add(fmt::format("run {}, phases from {}, rank {}", seed, step, rank),
          phases_svg(recording, step, std::min(step + 2, steps - 1), rank));
    }
    add(fmt::format("run {}", seed), strips_svg(recording));
    add(fmt::format("run {} as JSON", seed), recording_json(recording));
  }
  expect_golden("many_pictures.txt", all);
}

TEST_CASE("many pictures: of layouts and grids that were drawn by lot, each map is the one that is kept") {
  std::string all;
  const auto add = [&](const std::string& what, const std::string& text) {
    all += fmt::format("{}: {}\n", what, digest_of(text));
  };
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const DrawnLayout drawn(seed);
    std::vector<std::pair<std::string, Layout>> layouts;
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices})
      layouts.emplace_back(fmt::format("way {}", layouts.size()), drawn.plan(ownership));
    const Layout& layout = layouts[0].second;
    const int dp = layout.grid.dp();
    for (const int columns : {60, 77, 100, 150})
      add(fmt::format("layout {}, {} columns", seed, columns), buffer_map_text(layout, columns));
    add(fmt::format("layout {}, as usual", seed), buffer_map_text(layout));
    for (const int marked : {-1, 0, dp / 2, dp - 1})
      add(fmt::format("layout {}, marked {}", seed, marked), buffer_map_svg(layout, marked));
    add(fmt::format("layouts {}", seed), sharding_map_svg(layouts));
    Draws draw(1000 + seed);
    const Grid grid = Grid().dp(draw(1, 12)).tp(draw(1, 20)).pp(draw(0, 1) == 0 ? 1 : draw(2, 5));
    add(fmt::format("grid {}", grid.text()),
        grid_map_text(grid) + grid_map_text(grid, 60 + draw(0, 60)) + grid_map_svg(grid));
  }
  expect_golden("many_maps.txt", all);
}
