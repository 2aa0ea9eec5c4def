// # Lesson 02 · Collectives
//
// Ranks rarely send single messages. They make *collective* calls: all ranks of a group call the same function, and
// when it returns, each of them holds what the function promises. Five of them carry nearly all traffic of training.
// This lesson makes each call once, with small numbers, and then looks at the one thing that a collective must not be
// left to decide: in which order numbers are added.
//
// You need to know what a group of ranks is (lesson 01).

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/classroom/comparison.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// An array is cut into as many *pieces* as there are ranks. A collective says whose pieces end up where, and whether
// they are added on the way:
//
//                     before                      after
//     all_gather      rank r has piece r          everybody has all pieces
//     reduce_scatter  everybody has all pieces    rank r has the sum of all pieces r
//     all_reduce      everybody has all pieces    everybody has the sums of all pieces
//     all_to_all_v    rank r has a piece for q    rank q has r's piece for it; sizes may vary
//     broadcast       the root has an array       everybody has it
//
// Gather and reduce-scatter are each other's mirror image, and an all-reduce is a reduce-scatter followed by an
// all-gather. Optimizers that shard their state take the two halves apart: they scatter the sums of the gradients, work
// on the piece that is theirs, and gather the results. (And there is `barrier`, which moves nothing.)

// What one rank holds: what each call left it with.
struct Local {
  Flat gathered;   // one number of each rank
  Flat my_sum;     // one number
  Flat sums;       // n numbers
  Flat exchanged;  // what all ranks had for me
  Flat told;       // two numbers
  Flat totals;     // n times the same sum, in the last step
};

// "10 11 12 13   →   60 64 68 72", with the arrows of all ranks below each other; "·" for nothing.
void say_before_and_after(Rank& rank, const Flat& before, const Flat& after) {
  const auto text = [](const Flat& numbers) { return numbers.empty() ? "·" : numbers_text(numbers, 36); };
  rank.say(pad_right(text(before), 28) + "→   " + text(after));
}

// The numbers that this lesson moves: rank r starts with 10 r, 10 r + 1, 10 r + 2, …, so a number says whose it was and
// which of them. The ranks are those of the DP group; along tp and pp everything happens once more.
float number_of(int r, int at) { return static_cast<float>(10 * r + at); }
Flat run_of(int r, int length) {
  Flat run(length);
  std::iota(run.begin(), run.end(), number_of(r, 0));
  return run;
}

// How many numbers rank r has for every rank in the exchange: none, one or two. The table of all these sizes is
// symmetric, so these are also the sizes of what it gets.
std::vector<Index> exchange_counts(int r, int n) {
  std::vector<Index> counts;
  for (int other = 0; other < n; ++other) counts.push_back((r + other + 1) % 3);
  return counts;
}

// The leaves of the sum in the last step, that is, the numbers that it adds, one of each rank: rank 0 holds 1, every
// other rank a crumb of 2⁻²⁴.
Flat leaves_of_all(const RankInfo& rank) {
  Flat leaves(rank.grid.dp(), 1.0f / (1 << 24));
  leaves[0] = 1;
  return leaves;
}

// ## The reference
//
// In plain loops over the numbers of all ranks. Only the sums need a thought: they are added as a balanced tree, level
// by level. Neighbours are added, and an odd one at the end is carried to the next level. Why it has to be a tree, and
// the same tree as the ranks use, is what the last step shows.
float plain_tree(Flat level) {
  while (level.size() > 1) {
    Flat next;
    for (std::size_t i = 0; i < level.size(); i += 2)
      next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
    level = next;
  }
  return level[0];
}

// What a rank should hold after each of the calls that move: everybody's number `at`, in rank order, and so on.
Flat numbers_at(const RankInfo& rank, int at) {
  Flat all;
  for (int r = 0; r < rank.grid.dp(); ++r) all.push_back(number_of(r, at));
  return all;
}
Flat expect_gathered(const RankInfo& rank) { return numbers_at(rank, 0); }
Flat expect_exchanged(const RankInfo& rank) {
  Flat all;
  for (int r = 0; r < rank.grid.dp(); ++r)
    all.insert(all.end(), (r + rank.place.dp + 1) % 3, number_of(r, rank.place.dp));
  return all;
}
Flat expect_told(const RankInfo& rank) { return run_of(rank.grid.dp() - 1, 2); }

// And the calls that add: sum number `at` is the tree over everybody's number `at`.
Flat expect_sums(const RankInfo& rank) {
  Flat sums;
  for (int at = 0; at < rank.grid.dp(); ++at) sums.push_back(plain_tree(numbers_at(rank, at)));
  return sums;
}
Flat expect_my_sum(const RankInfo& rank) { return {expect_sums(rank)[rank.place.dp]}; }
Flat expect_totals(const RankInfo& rank) { return Flat(rank.grid.dp(), plain_tree(leaves_of_all(rank))); }

// ## The steps
//
// ### Moving
//
// A line shows what a rank had, and after the arrow what the call left it with. Over each call stands its name in
// PyTorch, where `dist` is `torch.distributed`.
//
// all_gather: everybody contributes one number and gets all of them in rank order. Muon gathers twice on the way to
// every matrix, over dp (lesson 04) and over tp (lesson 05), and at the end of a step it gathers the new weights.
//
//     dist.all_gather_into_tensor(gathered, mine, group=dp_group)   # gathered has n times as many elements as mine
void gather(Rank& rank, Local& local) {
  local.gathered = rank.dp().all_gather(run_of(rank.place.dp, 1));
  say_before_and_after(rank, run_of(rank.place.dp, 1), local.gathered);
}

// all_to_all_v: everybody has a piece for everybody, of any size, including zero (`v` is for vector: there is a list of
// sizes). Here a number tells from whom to whom it goes: 31 is sent by rank 3 to rank 1. Mixtures of experts use it to
// send each token to its expert, and back.
//
//     dist.all_to_all_single(exchanged, mine, receive_counts, send_counts, group=dp_group)
void exchange(Rank& rank, Local& local) {
  const std::vector<Index> counts = exchange_counts(rank.place.dp, rank.grid.dp());
  Flat outgoing;
  for (int other = 0; other < rank.grid.dp(); ++other)
    outgoing.insert(outgoing.end(), counts[static_cast<std::size_t>(other)], number_of(rank.place.dp, other));
  local.exchanged.resize(outgoing.size());
  rank.dp().all_to_all_v(outgoing.data(), counts, local.exchanged.data(), counts);
  say_before_and_after(rank, outgoing, local.exchanged);
}

// broadcast: the root's array replaces everybody's, for example so that a training begins with the same weights
// everywhere. All ranks have to name the same root. Here it is the last one, so that nobody takes for granted that it
// is rank 0, as the planted bug `wrong_root` does.
//
//     dist.broadcast(told, src=root, group=dp_group)   # src is a rank of the world, not of the group
void tell_everyone(Rank& rank, Local& local) {
  const int root = rank.bug("wrong_root") ? 0 : rank.grid.dp() - 1;
  local.told = run_of(rank.place.dp, 2);
  rank.dp().broadcast(local.told.data(), 2, root);
  say_before_and_after(rank, run_of(rank.place.dp, 2), local.told);
}

// ### Adding
//
// reduce_scatter: everybody has n pieces, here of one number; rank r gets the sum of all pieces number r. The ranks of
// a DP group have each a gradient for every parameter, computed from their own part of the batch. What the optimizer
// wants is the sum, and a rank that keeps only a piece of the optimizer's state wants only that piece of the sum.
//
//     dist.reduce_scatter_tensor(my_sum, mine, group=dp_group)
//
// The planted bug `wrong_piece` takes the result for the sum of the next piece: a ring as in textbooks leaves rank r
// with piece r + 1, and a program that was written for it reads somebody else's sum with another library.
void reduce_and_scatter(Rank& rank, Local& local) {
  Flat mine = run_of(rank.place.dp, rank.grid.dp());
  if (rank.bug("wrong_piece")) std::rotate(mine.begin(), mine.begin() + 1, mine.end());
  local.my_sum = rank.dp().reduce_scatter(mine);
  say_before_and_after(rank, mine, local.my_sum);
}

// all_reduce: everybody gets all the sums, as plain data parallelism does with its gradients, for twice the bytes.
//
//     dist.all_reduce(mine, group=dp_group)   # in place
void reduce_everywhere(Rank& rank, Local& local) {
  local.sums = rank.dp().all_reduce(run_of(rank.place.dp, rank.grid.dp()));
  rank.say(pad_right("the same numbers again", 28) + "→   " + numbers_text(local.sums, 36));
}

// ### A sum has an order
//
// Floats are rounded after every addition, so (a + b) + c and a + (b + c) may differ in the last bit. Between 1 and 2
// the floats lie 2⁻²³ apart. Let rank 0 hold 1 and every other rank a crumb c of 2⁻²⁴, half of that distance. 1 + a
// crumb lies exactly between two floats and is rounded to the even one, which is 1: the crumb is lost. Two crumbs that
// meet each other first make a whole step, and survive. So the order decides how many crumbs are left:
//
//     left to right   ((1 + c) + c) + c
//     ring, piece 0   ((c + c) + c) + 1    the sum of a piece travels round the ring and begins at the rank after
//     ring, piece 1   ((c + c) + 1) + c    the piece's own: another order for every piece of the same array
//     balanced tree    (1 + c) + (c + c)   neighbours first, in rank order
//
// None of them is right, as the exact sum is not a float. Libraries choose by what is fast: the ring for long arrays, a
// tree for short ones, another tree when the number of ranks changes. Two trainings that should be equal then are not,
// and nobody can say whether that is rounding or a bug.
//
// Muonwalk therefore never leaves a sum to the way in which it travels. Its reduce_scatter moves the pieces unchanged,
// an all-to-all, and each rank adds what it received as a balanced tree in rank order, for the same number of bytes as
// the ring. A serial program that adds the same leaves in the same tree gets the same bits, and that is what lets every
// lesson compare byte by byte.
//
// There is another order: who comes first. Processes run when the system lets them, differently in every run. With
// `--world fibers --turns 7` all ranks live on one thread, and the seed 7 draws who goes on whenever a rank has to
// wait; standard error shows the turns that were taken. Try other seeds. The turns change, and not a bit of the result
// does: a sum here asks whose a number is, and never when it came.

// "all_reduce      1.00000012   0x3f800001   0 ULP from the tree". One ULP, a "unit in the last place", is the distance
// from a float to the next.
std::string sum_text(const std::string& order, float sum, float tree) {
  return fmt::format("{:<16}{}   {} ULP from the tree", order, float_text(sum), ulp_distance(sum, tree));
}

// Add 1 and the crumbs by all_reduce: every rank puts its leaf into all n pieces of an array, so all n totals should
// have the same bits. Rank 0 adds the leaves in other orders as well and shows the bits, the eight digits after 0x.
// Even within one array, a ring leaves the same sum with different bits. (It adds its last piece from left to right.)
// The planted bug `ring_order` takes the totals as a ring would have left them. A tolerance would never see it.
void sum_in_several_orders(Rank& rank, Local& local) {
  const Index n = rank.grid.dp();
  const Flat leaves = leaves_of_all(rank);
  local.totals = rank.dp().all_reduce(Flat(leaves.size(), leaves[rank.place.dp]));
  for (Index piece = 0; rank.bug("ring_order") && piece < n; ++piece)
    local.totals[piece] = ring_sum(leaves.data(), n, piece);
  if (rank.rank() != 0) return;

  rank.say(fmt::format("{:<16}{:<17.9g}ULP: from a float to the next", "exact",
                       std::accumulate(leaves.begin(), leaves.end(), 0.0)));
  const float tree = tree_sum(leaves.data(), n);
  rank.say(sum_text("ring, piece 0", ring_sum(leaves.data(), n, 0), tree));
  rank.say(sum_text("left to right", ring_sum(leaves.data(), n, n - 1), tree));
  rank.say(sum_text("all_reduce", local.totals[0], tree));
}

// ## The cost
//
// Written with n ranks and pieces of equal size. Everything goes straight to whom it is for:
//
//     call             sent by a rank                messages
//     all_gather       (n − 1) pieces                n − 1
//     reduce_scatter   (n − 1) pieces                n − 1
//     all_reduce       2 · (n − 1) pieces            2 · (n − 1)
//     all_to_all_v     what it has for others        n − 1, also for empty pieces
//     broadcast        the root: (n − 1) arrays      n − 1
//
// As long as ranks send to ranks, fewer bytes are impossible in the first three, since a rank needs every piece that it
// does not have. (A switch that copies or adds on the way can save some of them.) An all-reduce of a long array
// therefore costs a rank nearly twice the array, on 8 ranks as on 800. Two ranks do it in one round: each sends the
// other all it has, and both add. That is as many bytes, in 1 message.
Prediction predict(const RankInfo& rank) {
  const int n = rank.grid.dp(), me = rank.place.dp;
  const ElementType type = ElementType::float32;
  const std::vector<Index> counts = exchange_counts(me, n);
  Prediction prediction;
  Ledger& ledger = prediction.ledger;
  ledger.add("dp", CollectiveKind::all_gather, type, 1, all_gather_traffic(n, 1, type));
  ledger.add("dp", CollectiveKind::all_to_all, type, 1, all_to_all_v_traffic(me, counts, counts, type));
  ledger.add("dp", CollectiveKind::broadcast, type, 1, broadcast_traffic(me, n - 1, n, 2, type));
  ledger.add("dp", CollectiveKind::reduce_scatter, type, 1, reduce_scatter_traffic(n, 1, type));
  const Traffic reduce = all_reduce_traffic(me, n, n, type);
  ledger.add("dp", CollectiveKind::all_reduce, type, 2, reduce + reduce);
  // At the peak, in the last step: all of Local, and the leaves.
  prediction.peak_elements = 4 * n + 3 + std::accumulate(counts.begin(), counts.end(), Index{0});
  return prediction;
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_02_collectives";
  info.title = "Collectives";
  info.fp32_only = true;
  info.question = "what do ranks call together, and who decides in which order a sum is added?";
  info.bugs = {{"wrong_root", "rank 0 is taken for the root of the broadcast"},
               {"wrong_piece", "the sum of a reduce-scatter is taken for that of the next piece"},
               {"ring_order", "the last sum is added in the order of a ring"}};
  info.also_try = {"--dp 3", "--dp 8", "--dp 5 --bug ring_order", "--world fibers --turns 7"};

  // Three calls that move, three that add, a check of each.
  Lesson<Local> lesson(info, Grid().dp(4), argc, argv);
  lesson.step("all_gather: one number each; what a rank had → what it has", gather);
  lesson.step("all_to_all_v: a piece for everybody; 12 goes from rank 1 to rank 2", exchange);
  lesson.step("broadcast: from the last rank", tell_everyone);
  lesson.step("reduce_scatter: a sum for everybody", reduce_and_scatter);
  lesson.step("all_reduce: all sums for everybody", reduce_everywhere);
  lesson.step("one sum in several orders: 1 and crumbs of 2⁻²⁴; the tree adds neighbours first", sum_in_several_orders);
  lesson.check("all_gather", &Local::gathered, expect_gathered);
  lesson.check("all_to_all_v", &Local::exchanged, expect_exchanged);
  lesson.check("broadcast", &Local::told, expect_told);
  lesson.check("reduce_scatter", &Local::my_sum, expect_my_sum);
  lesson.check("all_reduce", &Local::sums, expect_sums);
  lesson.check("the sum of 1 and the crumbs", &Local::totals, expect_totals);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. Write a broadcast in ⌈log₂ n⌉ rounds. Who sends to whom in round k? Hint: twice as many ranks know after it.
  //    Answer: number the ranks from the root on, and the rounds from 0. In round k each rank r < 2ᵏ sends to rank
  //    r + 2ᵏ, if there is one. The root sends ⌈log₂ n⌉ messages instead of n − 1.
  // 2. With `--dp 8` the exact sum is 1 and seven crumbs, three and a half steps of the last bit. Work out by hand how
  //    many the tree keeps, and how many the ring's first piece, then look. Hint: in the tree, one crumb meets the 1
  //    alone. Answer: the tree loses that one and keeps the other six, three steps: 0x3f800003. The ring's first piece
  //    adds all seven before it comes to the 1, and three and a half steps are rounded to four, the even one: as if
  //    there were eight.
  // 3. Each rank adds several leaves as a tree, and the sums are added over the ranks as a tree. When does it give the
  //    bits of one tree over all leaves? Hint: try 2 ranks of 2 leaves, and 2 ranks of 3. Answer: for certain when each
  //    rank has 1, 2, 4, 8, … leaves, on any number of ranks. With 3 leaves each, the tree over all six adds the third
  //    and the fourth, which are on two ranks.
  return lesson.answer(
      "five calls do nearly everything: gather, scatter with a sum, both together, exchange, broadcast; "
      "a rank sends n − 1 pieces, or twice that for an all-reduce; and as the order of a sum decides its last bits, "
      "Muonwalk moves the pieces first and adds them in one fixed tree, so that nobody else decides.");
}
