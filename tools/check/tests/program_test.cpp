// What dumps say by their bits alone, and the program muonwalk-check: its modes, its exit codes, what it writes.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "src/numerics/newton_schulz.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/check/tests/dump_writing.hpp"

using namespace muonwalk;
using namespace muonwalk::check;
using muonwalk::testing::Outcome;

namespace {

// A run of the program, and the verdict that it wrote.
struct Checked {
  Outcome outcome;
  Json json;
  std::string sentences;  // of all findings

  Json finding(const std::string& kind) const {
    for (const Json& found : json["findings"])
      if (found["kind"] == (kind.empty() ? Json(nullptr) : Json(kind))) return found;
    return nullptr;
  }
};

Checked checked(std::vector<std::string> words, int exit_code) {
  const TemporaryFolder folder;
  words.insert(words.begin(), MUONWALK_CHECK_PROGRAM);
  words.insert(words.end(), {"--json", folder.file("verdict")});
  Checked run{muonwalk::testing::run_program(words, 120), {}, {}};
  CAPTURE(run.outcome.err);
  CAPTURE(run.outcome.out);
  CHECK(run.outcome.exit_code == exit_code);
  run.json = Json::parse(read_text(folder.file("verdict")), nullptr, false);
  REQUIRE(run.json.is_object());
  CHECK(run.json["format"] == "muonwalk-check 1");
  CHECK((exit_code == 0) == (run.json["verdict"] == "clean"));
  CHECK((exit_code == 2) == (run.json["verdict"] == "unjudgeable"));
  CHECK((exit_code == 2) == !run.outcome.err.empty());
  for (const Json& found : run.json["findings"]) run.sentences += found["sentence"].get<std::string>() + "\n";
  return run;
}

// A parameter stepped by plain AdamW in its first step, so that the dump is one that a known recipe explains; moments
// as `moments` places them.
DumpWriting adamw_step(const Mesh& mesh, const Json& weights, const Json& moments, std::int64_t count = 64,
                       const std::string& name = "embed.weight") {
  DumpWriting dump(mesh);
  dump.hyper = {{"adamw", {{"lr", 0.01}, {"betas", {0.9, 0.95}}, {"eps", 1e-8}, {"weight_decay", 0.0}}}};
  dump.parameter(name, {count / 8, 8}, {{"weights", weights}, {"grad", weights}, {"moments", moments}}, "adamw");
  const Flat before = random_flat(count, 1), grad = random_flat(count, 2);
  Flat after = before, first = grad, second = grad;
  for (std::size_t i = 0; i < grad.size(); ++i) {
    first[i] = 0.1f * grad[i];
    second[i] = 0.05f * grad[i] * grad[i];
    after[i] = static_cast<float>(before[i] - 0.01 * grad[i] / (std::sqrt(double{grad[i]} * grad[i]) + 1e-8));
  }
  dump.tensor("before", name, before);
  dump.tensor("grad", name, grad);
  dump.tensor("after", name, after);
  dump.tensor("momentum_after", name, first);
  dump.tensor("second_after", name, second);
  return dump;
}

const Json kWhole = Json::array();
const Json kFlatDp = {{{"axis", "dp"}, {"kind", "flat"}, {"cuts", {0.5}}}};
const Json kRowsTp = {{{"axis", "tp"}, {"kind", "shard"}, {"dim", 0}}};

// Writes both and compares what was saved with what was loaded.
Checked loaded(DumpWriting saved, const std::function<void(DumpWriting&)>& change, int exit_code) {
  const TemporaryFolder a, b;
  saved.write(a.path());
  change(saved);
  saved.write(b.path());
  return checked({"--save-load", a.path(), b.path()}, exit_code);
}

}  // namespace

TEST_CASE("a step of AdamW: clean, printed, and drawn as a page that needs no other file") {
  const TemporaryFolder folder, out;
  const std::string hostile = "</script><b>{{data}}\x1b[31m";
  adamw_step({{"dp", 2}}, kWhole, kFlatDp, 64, hostile).write(folder.path());
  const Checked run = checked({folder.path(), "--html", out.file("page.html")}, 0);
  CHECK(run.json["parameters"][hostile]["optimizer"] == "adamw");
  CHECK(run.outcome.out.find("clean") == 0);
  CHECK(run.outcome.out.find('\x1b') == std::string::npos);
  const std::string page = read_text(out.file("page.html"));
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(page.find("http") == page.find("http://www.w3.org/2000/svg"));
  CHECK(page.find("{\"rank\":1,\"box\":[[0,8],[0,8]],\"flat\":null") != std::string::npos);
  CHECK(out.names().size() == 1);
}

TEST_CASE("a refused dump: exit code 2, one sentence, the same in the verdict, and no page") {
  const TemporaryFolder folder, out;
  DumpWriting dump = adamw_step({{"dp", 2}}, kWhole, kWhole);
  dump.describe();
  dump.ranks.pop_back();
  dump.write(folder.path());
  const Checked run = checked({folder.path(), "--html", out.file("page.html")}, 2);
  CHECK(run.outcome.err == "muonwalk-check: " + run.json["reason"].get<std::string>() + "\n");
  CHECK(run.json["reason"].get<std::string>().find("has no file of rank 1;") != std::string::npos);
  CHECK(run.outcome.out == "");
  CHECK(out.names().empty());
}

#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
TEST_CASE("memory: what one matrix took is given back before the next") {
  const TemporaryFolder folder;
  DumpWriting dump;
  for (int i = 0; i < 12; ++i) {
    const std::string name = fmt::format("layers.{}.weight", i);
    const std::int64_t side = 768;
    dump.parameter(name, {side, side});
    const Flat before = random_flat(side * side, 2 * i), grad = random_flat(side * side, 2 * i + 1);
    const Matrix update = newton_schulz(Matrix(side, side, grad), {});
    Flat after = before;
    for (std::size_t at = 0; at < after.size(); ++at) after[at] -= 0.02f * update.data()[at];
    dump.tensor("before", name, before);
    dump.tensor("grad", name, grad);
    dump.tensor("after", name, after);
  }
  dump.write(folder.path());
  // Three tensors of 2.4 MB: three times as much is 21 MB, and what a program has besides is less than 40.
  const std::string run =
      fmt::format("ulimit -d {} && exec '{}' '{}' --threads 1", 61'000, MUONWALK_CHECK_PROGRAM, folder.path());
  const Outcome outcome = muonwalk::testing::run_program({"/bin/sh", "-c", run}, 120);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}
#endif

TEST_CASE("modes: one of three, and whole") {
  const TemporaryFolder folder;
  adamw_step({}, kWhole, kWhole).write(folder.path());
  const auto refused = [&](std::vector<std::string> words, const std::string& sentence) {
    words.insert(words.begin(), MUONWALK_CHECK_PROGRAM);
    const Outcome outcome = muonwalk::testing::run_program(words, 60);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err.find(sentence) != std::string::npos);
  };
  refused({}, "give one of the three");
  refused({folder.path(), "--before", "x"}, "give one of the three");
  refused({"--before", "x", "--after", "y"}, "one of them is missing");
  refused({"--save-load", folder.path(), folder.path(), "--replicas"}, "--replicas compares the ranks of a dump");
  refused({folder.file(DumpWriting::file(1, 0)), "--json", folder.file(DumpWriting::file(1, 0))}, "would replace");
}

TEST_CASE("--before, --grad and --after: a step of one process from three files") {
  const TemporaryFolder folder;
  DumpWriting dump = adamw_step({}, kWhole, kWhole);
  for (const char* what : {"before", "grad", "after"}) {
    SafetensorsFile file;
    file.tensors.push_back(dump.at(0, what + std::string("/embed.weight")));
    file.tensors[0].name = "embed.weight";
    write_safetensors(folder.file(what), file);
  }
  const std::vector<std::string> words = {"--before", folder.file("before"), "--grad", folder.file("grad"),
                                          "--after",  folder.file("after")};
  CHECK(checked(words, 0).json["parameters"]["embed.weight"]["optimizer"] == "adamw");
  std::vector<std::string> hyper = words;
  hyper.insert(hyper.end(), {"--hyper", "{\"lr\": }"});
  CHECK(checked(hyper, 2).json["reason"].get<std::string>().find("has a \"hyper\" that is not an object of JSON") !=
        std::string::npos);
}

TEST_CASE("bits: numbers that aren't finite, copies that differ, weights that aren't their masters'") {
  const TemporaryFolder folder;
  const auto with = [&](const Json& moments, const std::function<void(DumpWriting&)>& change, int exit_code = 1) {
    DumpWriting dump = adamw_step({{"dp", 2}, {"tp", 2}}, kRowsTp, moments);
    change(dump);
    dump.write(folder.path());
    return checked({folder.path()}, exit_code);
  };
  const auto after = "after/embed.weight";
  Checked run = with(kRowsTp, [&](DumpWriting& dump) {
    for (const int rank : {1, 3}) dump.poke(rank, after, 9, std::numeric_limits<float>::infinity());
  });
  CHECK(run.finding("not_finite")["parameters"] == Json({"embed.weight"}));
  CHECK(run.sentences.find("has infinity in [5, 1]") != std::string::npos);
  run = with(kRowsTp, [&](DumpWriting& dump) { dump.poke(3, after, 9, 0.125f); });
  CHECK(run.finding("replicas_differ")["axis"] == "dp");
  CHECK(run.sentences.find("ranks 0, 1 against ranks 2, 3, first in [5, 1]") != std::string::npos);

  // Masters in float32, weights in bf16: rounded, half of them stale, one of them something else.
  const Json tp_dp = {kRowsTp[0], {{"axis", "dp"}, {"kind", "flat"}, {"cuts", {0.25}}}};
  const auto mastered = [&](DumpWriting& dump) {
    const Flat before = random_flat(64, 1), grad = random_flat(64, 2);
    Flat moved = before;
    for (std::size_t i = 0; i < 64; ++i) moved[i] -= std::copysign(0.01f, grad[i]);
    dump.tensor("master_before", "embed.weight", before);
    dump.tensor("master_after", "embed.weight", moved);
    for (SafetensorsFile& file : dump.ranks)
      for (StoredTensor& tensor : file.tensors)
        if (tensor.name == after || tensor.name == "before/embed.weight") {
          const Matrix values = tensor.matrix();
          tensor.dtype = "BF16";
          tensor.type = StoredType::bf16;
          tensor.store(values);
        }
  };
  with(tp_dp, mastered, 0);
  run = with(tp_dp, [&](DumpWriting& dump) {
    mastered(dump);
    for (const int rank : {1, 3}) dump.at(rank, after).bytes = dump.at(rank, "before/embed.weight").bytes;
  });
  CHECK(run.finding("stale_shard")["parameters"] == Json({"embed.weight"}));
  run = with(tp_dp, [&](DumpWriting& dump) {
    mastered(dump);
    for (const int rank : {0, 2}) dump.poke(rank, after, 3, 5);
  });
  CHECK(run.sentences.find("\"after/embed.weight\" of step 1 is not what its masters say on ranks 0, 2") !=
        std::string::npos);
}

TEST_CASE("--replicas: which ranks disagree, since which step and tensor") {
  const TemporaryFolder folder;
  const Mesh mesh = {{"dp", 3}};
  for (std::int64_t step = 1; step <= 3; ++step) {
    DumpWriting dump = adamw_step(mesh, kWhole, kWhole);
    dump.step = step;
    if (step == 2) dump.poke(1, "grad/embed.weight", 0, 7);
    if (step >= 2) dump.poke(1, "after/embed.weight", 0, 7);
    dump.write(folder.path());
  }
  const Checked run = checked({folder.path(), "--replicas"}, 1);
  CHECK(run.finding("gradient_not_reduced")["axis"] == "dp");
  CHECK(run.sentences.find("\"grad/embed.weight\" of step 2 is not the same on all ranks: ranks 0, 2 against rank 1") !=
        std::string::npos);
  checked({folder.file(DumpWriting::file(1, 0)), folder.file(DumpWriting::file(1, 1)),
           folder.file(DumpWriting::file(1, 2)), "--replicas"},
          0);
  const Checked later = checked({folder.file(DumpWriting::file(3, 0)), folder.file(DumpWriting::file(3, 1)),
                                 folder.file(DumpWriting::file(3, 2)), "--replicas"},
                                1);
  CHECK(later.finding("replicas_differ")["axis"] == "dp");
}

TEST_CASE("between two steps: moments that are gone") {
  const TemporaryFolder folder;
  adamw_step({}, kWhole, kWhole).write(folder.path());
  DumpWriting next = adamw_step({}, kWhole, kWhole);
  next.step = 2;
  for (const char* moment : {"momentum_before", "second_before"}) next.tensor(moment, "embed.weight", Flat(64));
  next.write(folder.path());
  const Checked run = checked({folder.path()}, 1);
  CHECK(run.finding("momentum_lost")["parameters"] == Json({"embed.weight"}));
}

TEST_CASE("--save-load: what a checkpoint lost or changed") {
  const std::string momentum = "momentum_after/embed.weight", second = "second_after/embed.weight";
  const Mesh dp = {{"dp", 2}};
  const DumpWriting whole = adamw_step(dp, kWhole, kWhole), cut = adamw_step(dp, kWhole, kFlatDp);
  const auto clear = [](DumpWriting& dump, int rank, const std::string& tensor) {
    for (std::byte& byte : dump.at(rank, tensor).bytes) byte = std::byte{0};
  };
  loaded(
      cut, [](DumpWriting&) {}, 0);
  CHECK(loaded(
            cut,
            [&](DumpWriting& dump) {
              for (int rank = 0; rank < 2; ++rank) {
                clear(dump, rank, momentum);
                dump.at(rank, second).name = "noted/w";
              }
            },
            1)
            .json["findings"]
            .size() == 1);
  const auto expect = [&](const DumpWriting& saved, const char* kind, const Json& axis,
                          const std::function<void(DumpWriting&)>& change) {
    const Checked run = loaded(saved, change, 1);
    CAPTURE(run.sentences);
    CHECK(run.json["findings"].size() == 1);
    CHECK(run.finding(kind)["axis"] == axis);
  };
  expect(cut, "momentum_lost", nullptr, [&](DumpWriting& dump) { clear(dump, 1, momentum); });
  expect(cut, "second_moment_lost", nullptr, [&](DumpWriting& dump) { clear(dump, 0, second); });
  expect(whole, "moments_on_owner_only", "dp", [&](DumpWriting& dump) { clear(dump, 1, momentum); });
  expect(cut, "moments_of_other_rank", "dp",
         [&](DumpWriting& dump) { std::swap(dump.at(0, momentum).bytes, dump.at(1, momentum).bytes); });
  expect(whole, "weights_changed_by_load", nullptr, [](DumpWriting& dump) {
    for (int rank = 0; rank < 2; ++rank) dump.poke(rank, "after/embed.weight", 0, 1);
  });
  expect(whole, "", nullptr, [&](DumpWriting& dump) {
    for (int rank = 0; rank < 2; ++rank) dump.poke(rank, momentum, 0, 1);
  });
  // Loaded by another number of ranks.
  const TemporaryFolder a, b;
  adamw_step({{"dp", 2}}, kWhole, kFlatDp).write(a.path());
  adamw_step({{"tp", 4}}, kRowsTp, kRowsTp).write(b.path());
  checked({"--save-load", a.path(), b.path()}, 0);
}
