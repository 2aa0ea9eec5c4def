#include "tests/comm/disagreements.hpp"

#include "src/errors.hpp"

namespace muonwalk::testing {

std::vector<Disagreement> disagreements() {
  std::vector<Disagreement> all;
  for (const Index count : {Index{0}, Index{5}, Index{900}, Index{1100}, Index{200000}}) {
    all.push_back({"all_gather of another size", "all_gather of float32 with",
                   [count](Communicator& c) { c.all_gather(values(c.rank() == 1 ? count + 3 : count)); }});
    all.push_back({"all_reduce of another size", "all_reduce of float32",
                   [count](Communicator& c) { c.all_reduce(values(c.rank() == 1 ? count + 40 : count)); }});
  }
  all.push_back({"a short and a long message", "with 800000 bytes",
                 [](Communicator& c) { c.all_gather(values(c.rank() == 1 ? 200000 : 2)); }});
  all.push_back({"another collective", "reduce_scatter", [](Communicator& c) {
                   const Flat whole = values(4 * c.size());
                   if (c.rank() == 1) {
                     c.reduce_scatter(whole);
                   } else {
                     c.all_gather(values(4));
                   }
                 }});
  all.push_back({"another element type", "bfloat16", [](Communicator& c) {
                   if (c.rank() == 1) {
                     c.all_gather(FlatOf<bfloat16>(8));
                   } else {
                     c.all_gather(values(4));
                   }
                 }});
  all.push_back({"a barrier on one rank", "barrier", [](Communicator& c) {
                   if (c.rank() == 1) c.barrier();
                   c.all_gather(values(1));
                 }});
  all.push_back({"one call less", "collectives)", [](Communicator& c) {
                   if (c.rank() != 1) c.all_gather(values(3));
                   c.all_gather(values(3));
                   c.all_gather(values(4));
                 }});
  all.push_back({"another root", "broadcast", [](Communicator& c) {
                   Flat v = values(3);
                   c.broadcast(v.data(), 3, c.rank() == 1 ? 1 : 0);
                   c.all_gather(v);
                 }});
  all.push_back({"a broadcast of another size", "broadcast", [](Communicator& c) {
                   Flat v = values(c.rank() == 1 ? 7 : 6);
                   c.broadcast(v.data(), static_cast<Index>(v.size()), 0);
                   c.all_gather(values(1));
                 }});
  return all;
}

std::string expect_errors(Communicator& c, const Disagreement& disagreement, std::atomic<int>& with_words) {
  try {
    disagreement.calls(c);
    return disagreement.name + " was not noticed";
  } catch (const RunError& error) {
    const std::string text = error.what();
    if (text.find(disagreement.words) != std::string::npos) ++with_words;
    if (text.find("waited") != std::string::npos) return "noticed by a timeout only: " + text;
  }
  try {
    c.all_gather(values(1));
    return "the group went on after " + disagreement.name;
  } catch (const RunError&) {
  }
  return "";
}

}  // namespace muonwalk::testing
