// Dumps are put together as they were cut, over any mesh and placements; and each way in which one can be broken is
// refused in a sentence.

#include "tools/check/dump.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "src/numerics/memory_meter.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tools/check/tests/dump_writing.hpp"
#include "tools/check/verdict.hpp"

using namespace muonwalk;
using namespace muonwalk::check;

namespace {

// A mesh of up to three axes, and on it placements of every kind.
struct RandomLayout {
  explicit RandomLayout(unsigned seed) : random(seed) {
    for (int axis = between(0, 3); axis > 0; --axis) mesh.emplace_back(fmt::format("axis {}", axis), between(1, 4));
    for (int dim = between(0, 3); dim >= 0; --dim) shape.push_back(between(1, 7));
    if (between(0, 9) == 0) shape.clear();
  }
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

  Json placements() {
    Mesh axes = mesh;
    std::shuffle(axes.begin(), axes.end(), random);
    Json list = Json::array();
    for (const auto& [name, size] : axes) {
      const bool last = name == axes.back().first;
      const int kind = between(shape.empty() ? 1 : 0, last ? 4 : 3);
      if (kind == 0)
        list.push_back({{"axis", name}, {"kind", "shard"}, {"dim", between(0, static_cast<int>(shape.size()) - 1)}});
      if (kind == 1) list.push_back({{"axis", name}, {"kind", "replicate"}});
      if (kind == 2) list.push_back({{"axis", name}, {"kind", "owner"}, {"rank", between(0, size - 1)}});
      if (kind != 4) continue;  // 3: not named
      std::vector<double> cuts;
      for (int i = 1; i < size; ++i) cuts.push_back(between(0, 4) / 4.0);
      std::sort(cuts.begin(), cuts.end());
      list.push_back({{"axis", name}, {"kind", "flat"}, {"cuts", cuts}});
    }
    return list;
  }

  std::mt19937 random;
  Mesh mesh;
  std::vector<std::int64_t> shape;
};

DumpedStep read_back(DumpWriting& dump) {
  const TemporaryFolder folder;
  dump.write(folder.path());
  return std::move(read_dump({folder.path()}).front());  // its files stay open
}

// A dump of four ranks, dp 2 × tp 2, that nothing is wrong with: a matrix cut by tp, and moments cut by dp as well.
DumpWriting sound() {
  DumpWriting dump({{"dp", 2}, {"tp", 2}});
  const Json tp = {{"axis", "tp"}, {"kind", "shard"}, {"dim", 0}};
  dump.parameter(
      "w", {4, 6},
      {{"weights", {tp}}, {"grad", {tp}}, {"moments", {tp, {{"axis", "dp"}, {"kind", "flat"}, {"cuts", {0.5}}}}}});
  dump.parameter("gain", {6}, Json::array(), "adamw");
  for (const char* name : {"w", "gain"}) {
    const std::int64_t count = name[0] == 'w' ? 24 : 6;
    for (const char* what : {"before", "grad", "after", "momentum_after"})
      dump.tensor(what, name, random_flat(count, static_cast<unsigned>(count + what[0])));
  }
  return dump;
}

// The sentence with which a dump is refused, after something was done to it.
std::string refusal(const std::function<void(DumpWriting&)>& breaking) {
  DumpWriting dump = sound();
  dump.describe();
  breaking(dump);
  return usage_error([&] { check_steps({read_back(dump)}); });
}

void set(SafetensorsFile& file, const std::string& key, const std::string& value) {
  for (auto& [name, text] : file.metadata)
    if (name == key) text = value;
}

// Changes what rank 1 says of its parameter w.
std::function<void(DumpWriting&)> described(const std::function<void(Json&)>& change) {
  return [=](DumpWriting& dump) {
    change(dump.parameters[1]["w"]);
    set(dump.ranks[1], "parameters", dump.parameters[1].dump());
  };
}

}  // namespace

TEST_CASE("assembled: any mesh, placements and types: every element as it was, and one version") {
  for (unsigned seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    RandomLayout layout(seed);
    DumpWriting dump(layout.mesh, 3);
    const bool by_role = layout.between(0, 1) == 1;
    Json roles = layout.placements();
    if (by_role) roles = {{"weights", roles}, {"grad", layout.placements()}, {"moments", layout.placements()}};
    dump.parameter("w", layout.shape, roles);
    const auto count = static_cast<std::int64_t>(whole_piece(layout.shape).elements.size());
    std::map<std::string, Flat> tensors;
    for (const auto& [what, type] : {std::pair{"before", "BF16"},
                                     {"after", "BF16"},
                                     {"grad", "F16"},
                                     {"momentum_before", "F32"},
                                     {"second_after", "F32"}}) {
      StoredTensor rounded{"",
                           type,
                           type[0] == 'B'   ? StoredType::bf16
                           : type[1] == '1' ? StoredType::f16
                                            : StoredType::f32,
                           {count},
                           {}};
      rounded.store(Matrix(1, count, random_flat(count, seed)));
      tensors[what] = rounded.matrix().flat();
      dump.tensor(what, "w", tensors[what], type);
    }
    const DumpedStep step = read_back(dump);
    const ParameterCase whole = step.read(step.parameters[0]);
    for (const auto& [what, of] : {std::pair{"before", &whole.before},
                                   {"after", &whole.after},
                                   {"grad", &whole.grad},
                                   {"momentum_before", &whole.momentum_before},
                                   {"second_after", &whole.second_after}}) {
      CAPTURE(what);
      REQUIRE(of->versions.size() == 1);
      CHECK(same_bits(of->values(), tensors[what]));
    }
    CHECK(!whole.momentum_after.there());
    for (const Part& part : whole.parts) {  // as they were cut
      std::vector<std::int64_t> elements;
      for (const auto& [begin, end] : part.ranges)
        for (std::int64_t i = begin; i < end; ++i) elements.push_back(i);
      CHECK(elements == dump.pieces["weights/w"][part.rank].elements);
    }
    // Where ranks repeat a part, one that has another number makes a version of its own; else it is the only one.
    int rank = 0;
    while (dump.pieces["weights/w"][rank].elements.empty()) ++rank;
    dump.poke(rank, "after/w", 0, 77);
    const DumpedStep poked = read_back(dump);
    const Holdings holdings = poked.holdings(poked.parameters[0], "after");
    const Assembled after = poked.assembled(poked.parameters[0], "after");
    REQUIRE(after.versions.size() == std::min<std::size_t>(holdings.copies.size(), 2));
    Flat expected = tensors["after"];
    expected[dump.pieces["weights/w"][rank].elements[0]] = 77;
    for (const Assembled::Version& version : after.versions)
      CHECK(same_bits(version.values,
                      std::count(version.ranks.begin(), version.ranks.end(), rank) > 0 ? expected : tensors["after"]));
  }
}

TEST_CASE("cuts: an axis that cuts a dimension is listed with all of its bounds") {
  DumpWriting dump({{"dp", 2}, {"tp", 3}});
  dump.parameter("w", {10, 2},
                 {{{"axis", "tp"}, {"kind", "shard"}, {"dim", 0}}, {{"axis", "dp"}, {"kind", "shard"}, {"dim", 0}}});
  for (const char* what : {"before", "grad", "after"}) dump.tensor(what, "w", random_flat(20, 1));
  const DumpedStep step = read_back(dump);
  const ParameterCase whole = step.read(step.parameters[0]);
  REQUIRE(whole.cuts.size() == 2);
  CHECK(whole.cuts[0].axis == "tp");
  CHECK(whole.cuts[0].bounds == std::vector<std::int64_t>{0, 4, 8, 10});
  CHECK(whole.cuts[1].axis == "dp");
  CHECK(whole.cuts[1].bounds == std::vector<std::int64_t>{0, 2, 4, 6, 8, 9, 10});
  CHECK(whole.mesh == dump.mesh);
  CHECK(whole.moment_parts.empty());
}

TEST_CASE("masters may be cut as weights are, or as moments; a parameter's own hyperparameters come first") {
  const Json owner = {{{"axis", "dp"}, {"kind", "owner"}, {"rank", 1}}};
  for (const char* role : {"weights", "moments"}) {
    DumpWriting dump({{"dp", 2}});
    dump.hyper = {{"lr", 3}, {"adamw", {{"lr", 2}, {"weight_decay", 0.5}}}};
    dump.parameter("w", {4, 6}, {{"weights", Json::array()}, {"grad", Json::array()}, {"moments", owner}});
    for (Json& rank : dump.parameters) rank["w"]["hyper"] = {{"weight_decay", 0}};
    for (const char* what : {"before", "grad", "after"}) dump.tensor(what, "w", random_flat(24, 1));
    for (const char* what : {"master_before", "master_after"}) dump.tensor(what, "w", random_flat(24, 1), "F32", role);
    const DumpedStep step = read_back(dump);
    const ParameterCase read = step.read(step.parameters[0]);
    CHECK(same_bits(read.before.values(), random_flat(24, 1)));
    CHECK(read.before.versions[0].ranks.size() == (role[0] == 'w' ? 2 : 1));
    CHECK(read.hyper.lr == 3);
    CHECK(read.hyper.weight_decay == 0);
    CHECK(read.hyper.adamw.lr == 2);
    CHECK(read.hyper.adamw.weight_decay == 0);
  }
}

TEST_CASE("broken dumps: each is refused in one sentence that says what is wrong") {
  CHECK(refusal([](DumpWriting&) {}) == "(no UsageError)");
  const auto placed = [](const Json& list) { return described([=](Json& w) { w["placements"] = list; }); };
  const auto meta = [](const std::string& key, const std::string& value) {
    return [=](DumpWriting& dump) { set(dump.ranks[1], key, value); };
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::pair<std::function<void(DumpWriting&)>, const char*> broken[] = {
      {meta("format", "muonwalk-dump 9"), "doesn't say \"format\": \"muonwalk-dump 1\""},
      {[](DumpWriting& dump) {
         dump.ranks[2].metadata = {{"format", "pt"}};
       },
       "it is not a dump"},
      {[](DumpWriting& dump) { dump.ranks[2].metadata.erase(dump.ranks[2].metadata.begin()); },
       "it is not a dump of an optimizer's step"},
      {[](DumpWriting& dump) { dump.ranks[2].metadata.pop_back(); }, "parameter \"w\" is listed by other ranks alone"},
      {meta("step", "x"), "its metadata has for \"step\" something other than a whole number from 1 to"},
      {meta("step", "0"), "its metadata has for \"step\" something other than a whole number from 1 to"},
      {meta("rank", "4"), "has for \"rank\" something other than a whole number from 0 to 3"},
      {meta("world", "5"), "keep dumps of two runs apart"},
      {meta("world", "99999999999"), "has for \"world\" something other than a whole number"},
      {meta("mesh", "[4]"), "has a \"mesh\" that is not an object of JSON"},
      {meta("mesh", "{\"tp\": 2, \"dp\": 2}"), "has another \"mesh\" than that of rank 0"},
      {[](DumpWriting& dump) {
         for (SafetensorsFile& file : dump.ranks) set(file, "mesh", "{\"dp\": 3}");
       },
       "has a \"mesh\" of 3 ranks, but \"world\" is 4"},
      {meta("parameters", "{\"w\": "), "has a \"parameters\" that is not an object of JSON"},
      {meta("parameters", std::string(100'000, '[')), "has a \"parameters\" that is not an object of JSON"},
      {meta("parameters", "{\"w\": 3}"), "parameter \"w\" is not as it should be: cannot use at() with number"},
      {meta("hyper", "{\"lr\": \"fast\"}"), "its metadata is not as it should be: type must be number, but is string"},
      {[](DumpWriting& dump) { dump.ranks.pop_back(); }, "step 1 of 4 ranks has no file of rank 3;"},
      {[](DumpWriting& dump) { dump.ranks.erase(dump.ranks.begin() + 1, dump.ranks.end()); },
       "has no file of ranks 1, 2, 3;"},
      {described([](Json& w) {
         w["shape"] = {4, 5};
       }),
       "has another shape, optimizer or blocks than on rank 0"},
      {described([](Json& w) {
         w["shape"] = {4, -6};
       }),
       "its shape something other than a whole number"},
      {described([](Json& w) {
         w["shape"] = {1 << 30, 1 << 30};
       }),
       "a shape of more elements than can be"},
      {described([](Json& w) { w["optimizer"] = "adamw"; }), "has another shape, optimizer or blocks than on rank 0"},
      {described([](Json& w) {
         w["blocks"] = {{"dim", 0}, {"sizes", {3, 2}}};
       }),
       "has blocks of 5 in all, but its dimension 0 has 4"},
      {[](DumpWriting& dump) {
         dump.parameters[1].erase("gain");
         set(dump.ranks[1], "parameters", dump.parameters[1].dump());
       },
       "parameter \"gain\" is listed by other ranks alone"},
      {placed({{{"axis", "pp"}, {"kind", "replicate"}}}), "is placed on the axis \"pp\", which the mesh hasn't"},
      {placed({{{"axis", "tp"}, {"kind", "sharded"}}}), "a placement of the kind \"sharded\", which there isn't"},
      {placed({{{"axis", "tp"}, {"kind", "shard"}, {"dim", 2}}}),
       "has for dim something other than a whole number from 0 to 1"},
      {placed({{{"axis", "tp"}, {"kind", "shard"}}}), "is not as it should be: key 'dim' not found"},
      {placed({{{"axis", "tp"}, {"kind", "owner"}, {"rank", 2}}}),
       "has for rank something other than a whole number from 0 to 1"},
      {placed({{{"axis", "dp"}, {"kind", "flat"}, {"begin", 0}, {"end", 6}},
               {{"axis", "tp"}, {"kind", "shard"}, {"dim", 0}}}),
       "a placement behind a flat one"},
      {placed(Json::array()), "to ranks 0 and 1"},  // it isn't cut there
      {described([](Json& w) { w["placements"]["moments"][1]["begin"] = 1; }), "leave its element [2, 0] to no rank"},
      {described([](Json& w) { w["placements"]["moments"][1]["end"] = 13; }),
       "has for end something other than a whole number from"},
      {described([](Json& w) { w["placements"].erase("moments"); }), "key 'moments' not found"},
      {[](DumpWriting& dump) {
         dump.at(2, "after/w").shape = {3, 4};
       },
       "\"after/w\" is of shape [3, 4] on rank 2, but its placements leave it [2, 6]"},
      {[](DumpWriting& dump) { dump.at(2, "after/w").name = "after/v"; }, "tensor \"after/v\" belongs to no parameter"},
      {[](DumpWriting& dump) { dump.at(2, "after/w").name = "noted/w"; },
       "rank 2 has no \"after/w\", though its placements leave it 12 elements"},
      {[](DumpWriting& dump) {
         for (SafetensorsFile& file : dump.ranks) file.tensors.erase(file.tensors.begin());
       },
       "no rank has \"before/w\""},
      {[](DumpWriting& dump) {
         StoredTensor& grad = dump.at(3, "grad/w");
         const Matrix values = grad.matrix();
         grad.dtype = "BF16";
         grad.type = StoredType::bf16;
         grad.store(values);
       },
       "\"grad/w\" is F32 on rank 0 and BF16 on rank 3"},
      {[](DumpWriting& dump) {
         StoredTensor& grad = dump.at(3, "grad/w");
         grad.dtype = "I32";
         grad.type = StoredType::other;
       },
       "tensor \"grad/w\" has the type \"I32\""},
      {[=](DumpWriting& dump) { dump.poke(3, "grad/w", 1, nan); }, "\"grad/w\" of step 1 has NaN in [2, 1]"},
      {[=](DumpWriting& dump) { dump.poke(0, "before/gain", 5, infinity); },
       "\"before/gain\" of step 1 has infinity in [5]"},
      {[](DumpWriting& dump) { dump.tensor("momentum_before", "w", random_flat(24, 1)); },
       "the moments of \"w\" before step 1 are not zero"},
      {[](DumpWriting& dump) { dump.tensor("master_before", "w", random_flat(24, 1)); },
       "has masters before or after the step, but not both"},
  };
  for (const auto& [breaking, words] : broken) {
    const std::string sentence = refusal(breaking);
    CAPTURE(sentence);
    CAPTURE(words);
    CHECK(sentence.find(words) != std::string::npos);
    CHECK(sentence.find('\n') == std::string::npos);
    CHECK(sentence.size() < 500);
  }
}

TEST_CASE("read_dump: folders, files, what is neither, and names that nobody should print") {
  const TemporaryFolder folder;
  CHECK(usage_error([&] { read_dump({folder.path()}); }).find("there is no .safetensors file in") == 0);
  CHECK(usage_error([&] { read_dump({folder.file("none")}); }).find("there is no such file") != std::string::npos);
  DumpWriting dump({{"dp", 2}});
  const std::string name = "w\x1b[31m\n\"x\"";
  dump.parameter(name, {4}, Json::array(), "adamw");
  for (const char* what : {"before", "grad", "after"}) dump.tensor(what, name, random_flat(4, 1));
  dump.write(folder.path());
  write_text(folder.file("notes.txt"), "not a dump");
  CHECK(read_dump({folder.path()}).size() == 1);
  CHECK(read_dump({folder.file(dump.file(1, 1)), folder.file(dump.file(1, 0))}).front().ranks.size() == 2);
  CHECK(usage_error([&] {
          read_dump({folder.path(), folder.path()});
        }).find("are rank 0 of 2 and rank 0 of 2 in step 1") != std::string::npos);
  dump.at(1, "grad/" + name).shape = {2, 2};
  dump.write(folder.path());
  const DumpedStep step = std::move(read_dump({folder.path()}).front());
  const std::string sentence = usage_error([&] { step.read(step.parameters[0]); });
  CHECK(sentence.find("w\\x1b[31m\\n\\\"x\\\"") != std::string::npos);
  CHECK(sentence.find('\x1b') == std::string::npos);
}

TEST_CASE("read: at most three times all tensors of the parameter are in memory") {
  DumpWriting dump({{"dp", 2}, {"tp", 2}});
  dump.parameter("w", {256, 64}, {{{"axis", "tp"}, {"kind", "shard"}, {"dim", 1}}});
  for (const char* what : {"before", "grad", "after"}) dump.tensor(what, "w", random_flat(256 * 64, 1));
  const DumpedStep step = read_back(dump);
  MemoryMeter meter;
  const MeterScope scope(meter);
  step.read(step.parameters[0]);
  CHECK(meter.peak() <= 3 * 3 * 256 * 64);
  CHECK(meter.live() == 0);
}
