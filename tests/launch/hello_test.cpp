// What launched processes say of themselves before a rank starts, and who is refused for it.

#include "sim/ranks/hello.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "src/numerics/newton_schulz_steps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

Launch launch_of(int rank, int world_size) {
  Launch launch;
  launch.rank = rank;
  launch.world_size = world_size;
  return launch;
}

const std::vector<std::string> kWords = {"path/of/lesson",  "--rank",    "3", "--dp", "4",
                                         "--secret-file=s", "--timeout", "2"};

Hello hello_of(int rank) { return own_hello(launch_of(rank, 4), "lesson_07", kWords); }

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// The sentence for a rank 1 that does not say the same as rank 0.
template <class Change>
std::string refused(const Change& change, Products products = Products::eigen) {
  Hello own = hello_of(0), theirs = hello_of(1);
  own.host = "ada";
  theirs.host = "babbage";
  change(theirs);
  return refusal_of(own, theirs, products);
}

}  // namespace

TEST_CASE("Hello: every field arrives, and what is not a Hello is none") {
  Hello hello = hello_of(2);
  hello.boot = "a boot";
  const std::optional<Hello> back = Hello::from(bytes_of(hello.text()));
  REQUIRE(back);
  CHECK(back->text() == hello.text());
  CHECK(back->rank == 2);
  CHECK(back->world_size == 4);
  CHECK(back->program == "lesson_07");
  CHECK(back->arguments == "--dp 4 --timeout 2");
  CHECK(back->boot == "a boot");
  CHECK(back->pid == getpid());
  CHECK(std::vector<std::string>{back->build, back->chain, back->with_eigen, back->with_chain, back->host} ==
        std::vector<std::string>{hello.build, hello.chain, hello.with_eigen, hello.with_chain, hello.host});
  for (const std::size_t field : {0, 1, 2, 11}) {  // of another protocol, or not a number
    std::string text = hello.text();
    std::size_t at = 0;
    for (std::size_t i = 0; i < field; ++i) at = text.find('\0', at) + 1;
    CHECK_FALSE(Hello::from(bytes_of(text.insert(at, "x"))));
  }
  for (const std::string& other : {std::string(), std::string("hello"), hello.text() + "more", hello.text().substr(1),
                                   hello.text().substr(0, hello.text().size() - 1)})
    CHECK_FALSE(Hello::from(bytes_of(other)));
}

TEST_CASE("Hello: a processor has one digest per engine, the same each time, and a build one of its own") {
  const Hello first = hello_of(0), second = hello_of(1);
  CHECK(first.with_eigen == second.with_eigen);
  CHECK(first.with_chain == second.with_chain);
  CHECK(first.with_eigen != first.with_chain);
  // Of chain and tiles, each in fp32, in which they are one, and in bf16, in which so small a product shows no
  // difference.
  REQUIRE(first.with_chain.size() == 64);
  const auto part = [&](int number) { return first.with_chain.substr(static_cast<std::size_t>(number) * 16, 16); };
  CHECK(part(0) != part(1));
  CHECK(part(2) == part(0));
  CHECK(part(3) != part(0));
  // Larger products can differ where small ones don't, so the code is named too.
  const std::string name = eigen_code().name + std::string(" ");
  CHECK(first.with_eigen.find(name) == 0);
  CHECK(first.with_eigen.size() == name.size() + 32);
  CHECK(first.build == second.build);
  CHECK(first.build.size() == 16);
}

TEST_CASE("a process that would compute something else is refused, with both ranks and hosts and what would work") {
  CHECK(refused([](Hello&) {}).empty());
  const auto says = [](const std::string& sentence, std::initializer_list<std::string> words) {
    for (const std::string& word : words) CHECK_MESSAGE(sentence.find(word) != std::string::npos, word, ": ", sentence);
  };
  says(refused([](Hello& h) { h.world_size = 6; }), {"rank 1 on babbage", "one of 6", "rank 0 on ada", "one of 4"});
  for (const int rank : {0, 4, -1})
    says(refused([&](Hello& h) { h.rank = rank; }),
         {"babbage says that it is rank " + std::to_string(rank), "rank 0 on ada", "the ranks 1 to 3"});
  CHECK(refused([](Hello& h) { h.rank = 3; }).empty());
  says(refused([](Hello& h) { h.program = "lesson\n08"; }),
       {"rank 1 on babbage runs lesson\\n08", "rank 0 on ada runs lesson_07"});
  says(refused([](Hello& h) { h.arguments = "--dp 2"; }),
       {"rank 1 on babbage was started with --dp 2", "rank 0 on ada with --dp 4 --timeout 2"});
  says(refused([](Hello& h) { h.arguments = ""; }), {"was started with no options"});
  const Hello own = hello_of(0);
  says(refused([](Hello& h) { h.with_eigen = "other"; }), {"rank 1 on babbage", "rank 0 on ada", "--products eigen",
                                                           "other and " + own.with_eigen, "or use --products chain"});
  says(refused([](Hello& h) { h.with_chain = "other"; }, Products::chain),
       {"rank 1 on babbage", "rank 0 on ada", "--products chain", "other and " + own.with_chain, "the same sources"});
  says(refused([](Hello& h) { h.with_chain = "other"; }, Products::tiles), {"--products tiles", "the same sources"});
}

TEST_CASE(
    "what does not decide over bits refuses nobody: the other engine, another kernel, another build, which is said") {
  CHECK(refused([](Hello& h) { h.with_chain = "other"; }).empty());
  CHECK(refused([](Hello& h) { h.with_eigen = "other"; }, Products::chain).empty());
  CHECK(refused([](Hello& h) { h.chain = "plain"; }, Products::chain).empty());
  Hello own = hello_of(0), theirs = hello_of(1);
  CHECK(oddity_of(own, theirs).empty());
  theirs.build = "another";
  CHECK(refusal_of(own, theirs, Products::eigen).empty());
  own.host = "ada", theirs.host = "babbage";
  CHECK(oddity_of(own, theirs) ==
        "rank 1 on babbage runs another build of this program (another) than rank 0 on ada (" + own.build +
            "); their small products are equal, so the run goes on");
}

TEST_CASE("options that may differ from rank to rank are not compared, all others are") {
  CHECK(common_arguments({"a", "--rank", "1", "--dp", "2"}) == "--dp 2");
  CHECK(common_arguments({"b", "--dp", "2", "--rank=7", "--interface=lo"}) == "--dp 2");
  CHECK(common_arguments({"b", "--rendezvous", "h:1", "--dp", "2", "--secret-file", "f"}) == "--dp 2");
  CHECK(common_arguments({"b", "--rankle", "1"}) == "--rankle 1");
  CHECK(common_arguments({"b", "--world-size", "2", "--bug", "x"}) == "--world-size 2 --bug x");
  CHECK(common_arguments({"b", "--rank"}).empty());
}
