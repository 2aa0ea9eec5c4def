// What a checkpoint is on the disk, and what is refused.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/tests/small_checkpoint.hpp"
#include "src/io/safetensors.hpp"
#include "tests/io/in_child.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

using Names = std::vector<std::string>;

// What is said of a file with these contents, after the file's name; "taken" where it is read.
std::string refusal(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.file("refused.safetensors");
  std::filesystem::remove(path);  // a file system may flush one to the disk whose bytes are exchanged
  write_text(path, bytes);
  try {
    read_checkpoint(path);
    return "taken";
  } catch (const UsageError& error) {
    const std::string sentence = error.what();
    const std::size_t at = sentence.find('"' + path + '"');
    return at == std::string::npos ? "the file is not named: " + sentence : sentence.substr(at + path.size() + 2);
  }
}

std::string resaved(const TemporaryFolder& folder, const std::function<void(SafetensorsFile&)>& change) {
  const std::string path = folder.file("resaved.safetensors");
  write_checkpoint(path, small_checkpoint(7));
  SafetensorsFile file = read_safetensors(path);
  change(file);
  // As somebody would who knows the format: the digest is right again.
  for (auto& [key, value] : file.metadata)
    if (key == kDigestKey) value = contents_digest(file);
  write_safetensors(path, file);
  return refusal(folder, read_text(path));
}

}  // namespace

TEST_CASE("write_checkpoint: one file, weights under their own names and whole, state beside, all that is in it back") {
  const TemporaryFolder folder;
  const std::string path = checkpoint_path(folder.path(), 100);
  CHECK(path == folder.file("step-000100.safetensors"));
  write_checkpoint(path, small_checkpoint(100));
  CHECK(folder.names() == Names{"step-000100.safetensors"});

  const SafetensorsFile file = read_safetensors(path);
  Names names;
  for (const StoredTensor& tensor : file.tensors) {
    names.push_back(tensor.name);
    CHECK(tensor.dtype == "F32");
  }
  CHECK(names == Names{"model.up.weight", "model.norm.weight", "optimizer.momentum.model.up.weight",
                       "optimizer.first_moments.model.norm.weight", "optimizer.second_moments.model.norm.weight"});
  CHECK(file.tensors[0].shape == std::vector<std::int64_t>{3, 4});
  CHECK(file.tensors[1].shape == std::vector<std::int64_t>{5});
  CHECK(file.tensors[3].shape == std::vector<std::int64_t>{5});
  Names keys;
  for (const auto& [key, value] : file.metadata) keys.push_back(key + "=" + value);
  REQUIRE(keys.size() == 7);
  CHECK(Names(keys.begin(), keys.end() - 1) == Names{"format=pt", "muonwalk.checkpoint=1",
                                                     "muonwalk.optimizer=Muon + ZeRO-1 AdamW", "muonwalk.steps=100",
                                                     "note.model=dim 4, \"two\" lines\nof it", "note.seed=12"});
  CHECK(keys.back() == "muonwalk.digest=" + contents_digest(file));
  CHECK(contents_digest(file).size() == 16);

  const Checkpoint wanted = small_checkpoint(100), read = read_checkpoint(path);
  CHECK(read.path == path);
  CHECK(first_difference(wanted, read) == "");
  CHECK(first_difference(wanted, small_checkpoint(101)) != "");
}

TEST_CASE("read_checkpoint: a file that is cut anywhere is refused, and so is one with any bit flipped") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.safetensors");
  write_checkpoint(path, small_checkpoint(7));
  const std::string bytes = read_text(path);
  REQUIRE(refusal(folder, bytes) == "taken");
  int taken = 0, unnamed = 0;
  const auto count = [&](const std::string& sentence) {
    taken += sentence == "taken";
    unnamed += sentence.find("the file is not named") == 0;
  };
  for (std::size_t length = 0; length < bytes.size(); ++length) count(refusal(folder, bytes.substr(0, length)));
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string torn = bytes;
      torn[at] = static_cast<char>(torn[at] ^ (1 << bit));
      count(refusal(folder, torn));
    }
  count(refusal(folder, bytes + '\0'));
  CHECK(taken == 0);
  CHECK(unnamed == 0);
}

TEST_CASE("contents_digest: another name, type, shape, byte, value or order is another digest; its own place is not") {
  SafetensorsFile file;
  file.metadata = {{"a", "bc"}, {kDigestKey, "old"}};
  for (const char* name : {"v", "w"}) {
    file.tensors.push_back({name, "F32", StoredType::f32, {2, 3}, std::vector<std::byte>(24)});
    file.tensors.back().bytes[5] = static_cast<std::byte>(name[0]);
  }
  const std::string digest = contents_digest(file);
  const auto changes = [&](const std::function<void(SafetensorsFile&)>& change) {
    SafetensorsFile changed = file;
    change(changed);
    return contents_digest(changed) != digest;
  };
  CHECK(changes([](SafetensorsFile& f) { f.tensors[0].name = "u"; }));
  CHECK(changes([](SafetensorsFile& f) { f.tensors[0].dtype = "I32"; }));
  CHECK(changes([](SafetensorsFile& f) { f.tensors[0].shape = {3, 2}; }));
  CHECK(changes([](SafetensorsFile& f) { f.tensors[0].shape = {6}; }));
  CHECK(changes([](SafetensorsFile& f) { f.tensors[1].bytes[23] = std::byte{1}; }));
  CHECK(changes([](SafetensorsFile& f) { std::swap(f.tensors[0], f.tensors[1]); }));
  CHECK(changes([](SafetensorsFile& f) { f.tensors.pop_back(); }));
  CHECK(changes([](SafetensorsFile& f) { f.metadata[0] = {"ab", "c"}; }));
  CHECK(changes([](SafetensorsFile& f) { f.metadata.emplace_back("d", ""); }));
  CHECK_FALSE(changes([](SafetensorsFile& f) { f.metadata[1].second = "new"; }));
}

TEST_CASE("require_notes: a checkpoint of another seed or text, or one that does not say, is refused by name") {
  Checkpoint checkpoint = small_checkpoint(1);
  checkpoint.path = "x";
  CHECK_NOTHROW(require_notes(checkpoint, {{"seed", "12"}}));
  CHECK(usage_error([&] {
          require_notes(checkpoint, {{"seed", "13"}});
        }) ==
        "can't use \"x\" as a checkpoint: its seed is \"12\", but here it is \"13\"; resume with what it was saved "
        "with");
  CHECK(usage_error([&] {
          require_notes(checkpoint, {{"text", "bible"}});
        }) ==
        "can't use \"x\" as a checkpoint: it does not say its text, which here is \"bible\"; resume with what it was "
        "saved with");
}

TEST_CASE("read_checkpoint: what is not there, a folder, what is foreign and what was changed, each in a sentence") {
  const TemporaryFolder folder;
  CHECK(usage_error([&] { read_checkpoint(folder.file("none")); }) ==
        "can't read \"" + folder.file("none") + "\": there is no such file; check the path");
  CHECK(usage_error([&] { read_checkpoint(folder.path()); }) ==
        "can't read \"" + folder.path() + "\": it is a folder; name a .safetensors file");
  CHECK(refusal(folder, "no tensors at all").find("; ") != std::string::npos);

  const std::string start = " as a checkpoint: ";
  SafetensorsFile plain;
  write_safetensors(folder.file("plain"), plain);
  CHECK(refusal(folder, read_text(folder.file("plain"))) ==
        start +
            "it is a safetensors file, but not one that Muonwalk saved to go on from; name a file that it did save");
  const auto set = [](const char* key, const char* to) {
    return [key, to](SafetensorsFile& file) {
      for (auto& [each, value] : file.metadata)
        if (each == key) value = to;
    };
  };
  CHECK(resaved(folder, [](SafetensorsFile&) {}) == "taken");
  CHECK(resaved(folder, set("muonwalk.checkpoint", "2")) ==
        start + "it is of version 2, and this program knows version 1; read it with the program that saved it");
  const std::string another = "; resume from another one";
  for (const char* steps : {"1e2", "7.0", "-7", "", " 7", "99999999999", "0x7"}) {
    CAPTURE(steps);
    CHECK(resaved(folder, set("muonwalk.steps", steps)) == start + "its number of steps is not one" + another);
  }
  CHECK(resaved(folder, [](SafetensorsFile& file) { file.metadata.erase(file.metadata.begin() + 3); }) ==
        start + "its metadata has no \"muonwalk.steps\"" + another);
  CHECK(resaved(folder, [](SafetensorsFile& file) { file.metadata.pop_back(); }) ==
        start + "its metadata has no \"muonwalk.digest\"" + another);
  CHECK(resaved(folder, [](SafetensorsFile& file) { file.tensors.erase(file.tensors.begin()); }) ==
        start + "it has \"optimizer.momentum.model.up.weight\", but no weights of that name" + another);
  CHECK(resaved(folder, [](SafetensorsFile& file) { file.tensors[2].name = "optimizer.momentum"; }) ==
        start + "it has \"optimizer.momentum\", but no weights of that name" + another);
  CHECK(resaved(folder, [](SafetensorsFile& file) {
          file.tensors[2].shape = {4, 3};
        }) == start + "its \"optimizer.momentum.model.up.weight\" does not have the shape of its weights" + another);
  CHECK(resaved(folder, [](SafetensorsFile& file) {
          file.tensors[2].shape = {1, 3, 4};
        }) == start + "its \"optimizer.momentum.model.up.weight\" is not a matrix or a vector of F32" + another);
  CHECK(resaved(folder, [](SafetensorsFile& file) { file.tensors[0].dtype = "I32"; }) ==
        start + "its \"model.up.weight\" is not a matrix or a vector of F32" + another);
}

TEST_CASE("write_checkpoint: names that could be taken for others are refused") {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint(1);
  checkpoint.parameters[0].name = "optimizer.momentum.model.norm.weight";
  CHECK(usage_error([&] { write_checkpoint(folder.file("x"), checkpoint); }) ==
        "can't save \"optimizer.momentum.model.norm.weight\" in a checkpoint: names that begin with \"optimizer.\" are "
        "those of state; rename it");
  for (const char* kind : {"first_moments", "a.b", ""}) {
    checkpoint = small_checkpoint(1);
    checkpoint.parameters[0].state[kind] = Matrix(3, 4);
    CHECK_THROWS_AS(write_checkpoint(folder.file("x"), checkpoint), std::invalid_argument);
  }
  CHECK(folder.names().empty());
}

TEST_CASE(
    "latest_checkpoint: the most steps, past what has other names; the first that is damaged is not passed over") {
  const TemporaryFolder folder;
  CHECK_FALSE(latest_checkpoint(folder.path()));
  for (const int steps : {7, 1000000, 999999, 20})
    write_checkpoint(checkpoint_path(folder.path(), steps), small_checkpoint(steps));
  for (const char* name :
       {"step-9000000.safetensors.partial", ".muonwalk-1-0.partial", "step-2000000", "model.safetensors",
        "step-2e7.safetensors", "step-02000000.safetensors", "old-2000000.safetensors", "step-.safetensors",
        "step-99999999999999999999.safetensors", "-2000000.", "step--2000000.safetensors"})
    write_text(folder.file(name), "not mine");
  std::filesystem::create_directory(folder.file("step-3000000.safetensors"));
  CHECK(latest_checkpoint(folder.path()) == folder.file("step-1000000.safetensors"));
  CHECK(latest_checkpoint(folder.path() + "/") == folder.path() + "//step-1000000.safetensors");
  CHECK(read_checkpoint(*latest_checkpoint(folder.path())).steps == 1000000);

  write_text(folder.file("step-4000000.safetensors"), "torn");
  CHECK(latest_checkpoint(folder.path()) == folder.file("step-4000000.safetensors"));
  CHECK_THROWS_AS(read_checkpoint(*latest_checkpoint(folder.path())), UsageError);
  CHECK(usage_error([&] { latest_checkpoint(folder.file("none")); }) ==
        "can't look for checkpoints in \"" + folder.file("none") +
            "\": No such file or directory; name a folder that has some");
}

TEST_CASE("write_checkpoint: a full disk is a sentence; the last good checkpoint stays, and nothing else is there") {
  for (const bool over : {false, true}) {
    const TemporaryFolder folder;
    const std::string good = checkpoint_path(folder.path(), 1), next = checkpoint_path(folder.path(), over ? 1 : 2);
    write_checkpoint(good, small_checkpoint(1));
    const std::string bytes = read_text(good);
    CHECK(in_child([&] {
            const rlimit limit = {700, 700};
            std::signal(SIGXFSZ, SIG_IGN);
            if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
            const std::string sentence = usage_error([&] { write_checkpoint(next, small_checkpoint(2)); });
            return sentence == "can't write \"" + next + "\": File too large; make room or choose another disk" ? 42
                                                                                                                : 2;
          }) == 42);
    CHECK(folder.names() == Names{"step-000001.safetensors"});
    CHECK(read_text(good) == bytes);
  }
}
