#include "sim/transport/key_store.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "src/errors.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;
using std::chrono::milliseconds;

namespace {

std::vector<char> bytes(const std::string& text) { return std::vector<char>(text.begin(), text.end()); }

}  // namespace

TEST_CASE("key store: what is written is read, and nothing else is taken for it") {
  sim::KeyStore store(4, 8);
  store.set("a", bytes("first"));
  store.set("b", {});
  CHECK(store.get("a", milliseconds(0)) == bytes("first"));
  CHECK(store.get("b", milliseconds(0)).empty());
  CHECK_THROWS_WITH_AS(
      store.get("c", milliseconds(20)),
      "the key \"c\" did not appear on the board within 20 ms; the rank that writes it has died, hangs, "
      "or was never started",
      RunError);
}

TEST_CASE(
    "key store: a second value for a key, a long value and a full board are refused; a key may be of any length") {
  sim::KeyStore store(2, 8);
  store.set("a", bytes("12345678"));
  CHECK_THROWS_WITH_AS(store.set("a", bytes("x")),
                       "the key \"a\" was to be written to the board a second time; every key is written once",
                       RunError);
  CHECK(store.get("a", milliseconds(0)) == bytes("12345678"));
  CHECK_THROWS_WITH_AS(store.set("b", bytes("123456789")),
                       "the key \"b\" with a value of 9 bytes does not fit on the board, which takes values of 8 "
                       "bytes",
                       RunError);
  const std::string long_key(1000, 'k');
  store.set(long_key, bytes("x"));
  CHECK(store.get(long_key, milliseconds(0)) == bytes("x"));
  CHECK_THROWS_WITH_AS(store.set("c", bytes("x")),
                       "the key \"c\" does not fit on the board, which has room for 2 keys; make the board larger",
                       RunError);
  CHECK_THROWS_WITH_AS(sim::KeyStore(std::size_t{1} << 40, std::size_t{1} << 20),
                       doctest::Contains(" bytes can't be mapped: "), RunError);
  sim::KeyStore told(2, 8);  // whoever asks to be told hears of what was written, and of nothing else
  std::string heard;
  told.on_set([&](const std::string& key, const std::vector<char>& value) {
    heard += key + "=" + std::string(value.begin(), value.end()) + ";";
  });
  told.set("a", bytes("one"));
  CHECK_THROWS_AS(told.set("a", bytes("two")), RunError);
  told.set("b", {});
  CHECK(heard == "a=one;b=;");
}

TEST_CASE("key store: many processes write and read at once, and each sees the values of all") {
  const int size = 6;
  const int keys = 50;
  sim::KeyStore store(std::size_t(size * keys), 32);
  const auto ends = on_processes(size, [&](int rank) -> std::string {
    const auto key = [](int r, int k) { return "rank " + std::to_string(r) + " key " + std::to_string(k); };
    for (int k = 0; k < keys; ++k) {
      store.set(key(rank, k), bytes("value " + std::to_string(rank * k)));
      for (int r = 0; r < size; ++r) {
        if (store.get(key(r, k), milliseconds(10000)) != bytes("value " + std::to_string(r * k))) return key(r, k);
      }
    }
    return "";
  });
  CHECK(joined(ends) == "");
}

TEST_CASE("key store: of many writers of one key exactly one succeeds") {
  const int size = 8;
  sim::KeyStore store(64, 16);
  SharedCounter ready;
  SharedCounter won;
  const auto ends = on_processes(size, [&](int rank) -> std::string {
    ready.add();
    ready.wait_for(size);
    for (int k = 0; k < 50; ++k) {
      try {
        store.set("contested " + std::to_string(k), bytes(std::to_string(rank)));
        won.add();
      } catch (const RunError&) {
      }
    }
    return "";
  });
  CHECK(joined(ends) == "");
  CHECK(won.value() == 50);
}

TEST_CASE("key store: processes that are killed while they write leave it usable") {
  sim::KeyStore store(20000, 64);
  const auto ends = on_processes(4, [&](int rank) -> std::string {
    if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(60));
      return "";
    }
    for (int k = 0;; ++k) {
      if (k == 300 * rank) kill(getpid(), SIGKILL);
      store.set("rank " + std::to_string(rank) + " " + std::to_string(k), bytes("value"));
    }
  });
  CHECK(ends[0].code == 0);
  CHECK(ends[1].signal == SIGKILL);
  store.set("afterwards", bytes("fine"));
  CHECK(store.get("afterwards", milliseconds(0)) == bytes("fine"));
  CHECK(store.get("rank 3 899", milliseconds(0)) == bytes("value"));
}

TEST_CASE(
    "key store: its secret is made with it, differs from every other board's, and is the same for all who share it") {
  sim::KeyStore store(1, 8), other(1, 8);
  const sim::Secret secret = store.secret(), nothing{};
  CHECK((secret != nothing));
  CHECK((secret != other.secret()));
  sim::Secret given;
  given.fill(9);
  other.set_secret(given);
  CHECK((other.secret() == given));
  CHECK((store.secret() == secret));
  CHECK(joined(on_processes(2, [&](int) -> std::string {
          return store.secret() == secret && other.secret() == given ? "" : "another secret";
        })) == "");
}

TEST_CASE("key store: whoever waits sleeps, and costs no processor time") {
  sim::KeyStore store(4, 8);
  timespec began{}, ended{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  CHECK_THROWS_AS(store.get("never", milliseconds(500)), TimeoutError);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
  const auto used_ns = (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec;
  CHECK(used_ns < 15000000);  // of 500 ms; also on a machine that gives a busy thread little
}
