// # Lesson 01 · The grid
//
// One number is enough to tell ranks apart, but it does not say what a rank is for. Where a model is cut in three ways
// at once, a rank's number stands for three coordinates. Along each of them the rank belongs to a group, with which it
// shares something. This lesson finds the coordinates, works out the groups, and lets the ranks prove that the groups
// are real.
//
// You need to know what a rank and an all-gather are (lesson 00). The next lesson looks at what groups can do together
// (lesson 02).

#include <fmt/format.h>

#include <algorithm>

#include "lessons/lesson_01_grid/grid_map.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// There are three ways to share the work of training among ranks, and the *grid* has a dimension for each:
//
// - *Tensor parallelism* (tp) cuts every matrix: a rank holds some of its rows or columns. The ranks of a TP group need
//   each other several times in every layer.
// - *Data parallelism* (dp) cuts the batch: the ranks of a DP group hold the same matrices and see different text. They
//   need each other once in every step of the optimizer, to add up their gradients.
// - *Pipeline parallelism* (pp) cuts the stack of layers into stages. A rank hands what comes out of its stage to the
//   rank with the same dp and tp in the next one.
//
// A group holds those ranks that differ in one coordinate and agree in the two others. So every rank is in three
// groups, and two groups of different kinds share at most one rank. That is why they are called *orthogonal*.
//
//             tp 0   tp 1             rank = tp + TP · (dp + DP · pp)
//           ┌──────┬──────┐
//     dp 0  │  0  ═══  1  │ ═ a TP group: neighbours in number
//           ├──‖───┼──────┤
//     dp 1  │  2   │  3   │ ‖ a DP group: every TP-th number
//           └──────┴──────┘   a PP group: the same box of the next stage, TP · DP numbers further on
//
// Which coordinate varies fastest is a choice, and this one is Megatron's. Numbers are handed out machine by machine,
// so ranks with neighbouring numbers sit in one machine, with the fastest wires. Tensor parallelism talks most, so tp
// gets the neighbours; pipeline stages talk least, so pp may be far apart.

// What one rank holds in this lesson. Groups are lists of rank numbers, 1 × size each, named "tp", "dp" and "pp".
// (All that ranks send each other in these lessons are floats, so the numbers of ranks are floats as well.)
struct Local {
  Flat coordinates;                     // my dp, tp and pp
  std::vector<NamedMatrix> worked_out;  // who must be in my groups
  std::vector<NamedMatrix> answered;    // who is in my groups
  Flat world;                           // every rank of the world, as two more gathers find them
};

// Say a line such as "tp {4 5}   dp {5 7}   pp {1 5}"; of a long group, its two ends.
void say_groups(Rank& rank, const std::vector<NamedMatrix>& groups) {
  std::string line;
  for (const NamedMatrix& group : groups)
    line += fmt::format("{} {{{}}}   ", group.name, numbers_text(group.matrix.flat(), 23));
  rank.say(line);
}

// ## The reference
//
// Hand out the numbers in plain loops, tp fastest. `visit` sees each rank's number with its three coordinates, which
// together are a `Place`. The reference knows no formula, no division and no group of the cluster: it counts until it
// comes to the rank in question.
template <class Visit>
void count_ranks(const Grid& grid, const Visit& visit) {
  Place place;
  for (place.pp = 0; place.pp < grid.pp(); ++place.pp)
    for (place.dp = 0; place.dp < grid.dp(); ++place.dp)
      for (place.tp = 0; place.tp < grid.tp(); ++place.tp, ++place.rank) visit(place);
}

// The coordinates at which the count comes to my number.
Place place_by_counting(const RankInfo& rank) {
  Place mine;
  count_ranks(rank.grid, [&](const Place& place) {
    if (place.rank == rank.place.rank) mine = place;
  });
  return mine;
}

// The same as the check wants it: dp, tp, pp.
Matrix coordinates_reference(const RankInfo& rank) {
  const Place mine = place_by_counting(rank);
  return Matrix(1, 3, Flat{static_cast<float>(mine.dp), static_cast<float>(mine.tp), static_cast<float>(mine.pp)});
}

// Everybody who agrees with me in two coordinates, whatever the third one is.
std::vector<NamedMatrix> groups_reference(const RankInfo& rank) {
  const Place mine = place_by_counting(rank);
  Flat tp, dp, pp;
  count_ranks(rank.grid, [&](const Place& other) {
    const float number = static_cast<float>(other.rank);
    if (other.dp == mine.dp && other.pp == mine.pp) tp.push_back(number);
    if (other.tp == mine.tp && other.pp == mine.pp) dp.push_back(number);
    if (other.dp == mine.dp && other.tp == mine.tp) pp.push_back(number);
  });
  return {{"tp", Matrix(1, rank.grid.tp(), tp)},
          {"dp", Matrix(1, rank.grid.dp(), dp)},
          {"pp", Matrix(1, rank.grid.pp(), pp)}};
}

// All numbers in order.
Matrix world_reference(const RankInfo& info) {
  Matrix world(1, info.grid.size());
  for (Index rank = 0; rank < world.cols(); ++rank) world(0, rank) = static_cast<float>(rank);
  return world;
}

// ## The steps
//
// Find my coordinates. Divide the rank's number by TP (in capitals the size, in small letters the coordinate): the
// remainder is tp. Divide what is left by DP: the remainder is dp, and the rest is pp. They are the digits of the
// number, in a system whose bases are TP and DP. Each rank prints the formula of the picture with its own digits put
// in.
//
// The planted bug `dp_fastest` takes the digits in another order. Any order would do if all agreed on it; but a
// checkpoint that was written in one order and is read in another has all of its pieces, in the wrong places.
void find_my_coordinates(Rank& rank, Local& local) {
  const int tp = rank.grid.tp(), dp = rank.grid.dp();
  const int number = rank.rank();
  int my_tp = number % tp, my_dp = number / tp % dp;
  if (rank.bug("dp_fastest")) my_dp = number % dp, my_tp = number / dp % tp;
  const int my_pp = number / (tp * dp);
  local.coordinates = {static_cast<float>(my_dp), static_cast<float>(my_tp), static_cast<float>(my_pp)};
  rank.say(fmt::format("{} = {} + {} · ({} + {} · {})", number, my_tp, tp, my_dp, dp, my_pp));
}

// The numbers of a group: `size` of them, `stride` apart; mine is in place `coordinate`.
NamedMatrix evenly_spaced(const char* name, int mine, int coordinate, int size, int stride) {
  Flat ranks;
  ranks.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) ranks.push_back(static_cast<float>(mine + (i - coordinate) * stride));
  return {name, Matrix(1, size, std::move(ranks))};
}

// Work out my groups without asking anybody: the next TP rank is the next number, the next DP rank is TP numbers
// further on, and the next stage is TP · DP numbers further on. The planted bug `wrong_stride` takes neighbouring
// numbers for a DP group, which they are only where tp is 1: the mistake passes every test that was made without tensor
// parallelism.
void work_out_my_groups(Rank& rank, Local& local) {
  const int tp = rank.grid.tp(), dp = rank.grid.dp(), pp = rank.grid.pp();
  const int me = rank.rank();
  const int dp_stride = rank.bug("wrong_stride") ? 1 : tp;
  local.worked_out.push_back(evenly_spaced("tp", me, static_cast<int>(local.coordinates[1]), tp, 1));
  local.worked_out.push_back(evenly_spaced("dp", me, static_cast<int>(local.coordinates[0]), dp, dp_stride));
  local.worked_out.push_back(evenly_spaced("pp", me, static_cast<int>(local.coordinates[2]), pp, tp * dp));
  say_groups(rank, local.worked_out);
}

// Ask who is there: gather my number over each of my groups. Whoever answers is in the group, and nobody else, because
// a group is connected to its own ranks alone. The answers come in the order of the coordinate. You should see that
// they are the lists of the step before, but this time they have travelled. (Where they aren't, the rank prints them.)
//
// Look at rank 5: it shares its tp group with 4, its dp group with 7 and its pp group with 1, and all that any two of
// these lists have in common is rank 5 itself. What it learns over one group, it can pass on over another, and nobody
// hears it twice: that is what the next step is made of.
//
// The planted bug `wrong_group` asks the TP group for the DP group's numbers. A program that does so runs on without a
// word, since the two groups are often equally large.
void ask_who_is_there(Rank& rank, Local& local) {
  const Flat me = {static_cast<float>(rank.rank())};
  Communicator& dp = rank.bug("wrong_group") ? rank.tp() : rank.dp();
  for (Communicator* group : {&rank.tp(), &dp, &rank.pp()}) {
    const char* names[] = {"tp", "dp", "pp"};
    Flat numbers = group->all_gather(me);
    const Index count = static_cast<Index>(numbers.size());
    local.answered.push_back({names[local.answered.size()], Matrix(1, count, std::move(numbers))});
  }
  const auto same = [](const NamedMatrix& a, const NamedMatrix& b) { return same_bits(a.matrix, b.matrix); };
  if (std::equal(local.answered.begin(), local.answered.end(), local.worked_out.begin(), local.worked_out.end(), same))
    rank.say("all groups answered as I had worked them out");
  else
    say_groups(rank, local.answered);
}

// Gather what was gathered. My TP group's numbers, gathered over dp, make up my stage, and the stages, gathered over
// pp, make up the world. It comes out in the order of the ranks, because the gathers go from the fastest coordinate to
// the slowest one: rank order is nothing but this nesting.
void find_the_world(Rank& rank, Local& local) {
  local.world = rank.pp().all_gather(rank.dp().all_gather(local.answered[0].matrix.flat()));
  rank.say(fmt::format("world {{{}}}", numbers_text(local.world, 58)));
}

// ## The cost
//
// One number to each of the others in all three groups; then a list of TP numbers over dp and a whole stage over pp.
//
// Compare the gather of gathers with one gather over a group of all n ranks, in which everybody would send its number
// to n − 1 others. In bytes the two are equal: (TP − 1) + TP · (DP − 1) + TP · DP · (PP − 1) = n − 1 numbers out of
// every rank. But they come in TP − 1 + DP − 1 + PP − 1 messages instead of n − 1. On 8 ranks that is 3 against 7, and
// on 512 of them, as 8 × 8 × 8, it is 21 against 511. Large clusters gather in stages for this reason.
Prediction predict(const RankInfo& rank) {
  const int tp = rank.grid.tp(), dp = rank.grid.dp(), pp = rank.grid.pp();
  const ElementType type = ElementType::float32;
  Prediction prediction;
  prediction.ledger.add("tp", CollectiveKind::all_gather, type, 1, all_gather_traffic(tp, 1, type));
  prediction.ledger.add("dp", CollectiveKind::all_gather, type, 2,
                        all_gather_traffic(dp, 1, type) + all_gather_traffic(dp, tp, type));
  prediction.ledger.add("pp", CollectiveKind::all_gather, type, 2,
                        all_gather_traffic(pp, 1, type) + all_gather_traffic(pp, tp * dp, type));
  // At the peak: the coordinates, both lists of groups, and, while the world arrives, the stage that it is made of.
  prediction.peak_elements = 3 + 2 * (tp + dp + pp) + tp * dp + rank.grid.size();
  return prediction;
}

// ## The proof
//
// What is compared with the counting loops at the end: the coordinates and the groups that a rank worked out in its
// head, the groups as they answered through their sockets, and the world. The arithmetic alone would prove nothing
// about the connections, and the answers alone nothing about the arithmetic. Every later lesson relies on both.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_01_grid";
  info.title = "The grid";
  info.fp32_only = true;
  info.question = "what does the number of a rank say about its work, and with whom does it share it?";
  info.bugs = {{"dp_fastest", "a rank's coordinates are worked out as if dp varied fastest"},
               {"wrong_stride", "the DP group is taken for neighbouring numbers"},
               {"wrong_group", "the TP group is asked for the DP group's numbers"}};
  info.also_try = {"--dp 4 --pp 1", "--dp 1 --tp 4"};

  // By default all three dimensions have size 2: the smallest grid with a group of each kind.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2).pp(2), argc, argv);
  lesson.say("tp cuts every matrix, dp the data, pp the stack of layers; TP, DP and PP are how many pieces\n");
  lesson.say(grid_map_text(lesson.options().grid));
  lesson.step("find my coordinates: rank = tp + TP · (dp + DP · pp)", find_my_coordinates);
  lesson.step("work out my groups: 1, TP and TP · DP numbers apart", work_out_my_groups);
  lesson.step("ask who is there: all_gather over tp, dp and pp", ask_who_is_there);
  lesson.step("gather what was gathered: over dp, then over pp", find_the_world);
  lesson.check("my coordinates (dp, tp, pp)", &Local::coordinates, coordinates_reference);
  lesson.check("my groups, worked out", &Local::worked_out, groups_reference);
  lesson.check("my groups, as they answered", &Local::answered, groups_reference);
  lesson.check("the world in rank order", &Local::world, world_reference);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. In `--dp 8 --tp 4 --pp 2`, which ranks are in the groups of rank 37? Work it out, then look. Hint: write 37 as
  //    tp + 4 · (dp + 8 · pp). Answer: 37 = 1 + 4 · (1 + 8 · 1), so tp, dp and pp are all 1. Its TP group is 36 to 39,
  //    its DP group is every fourth number from 33 to 61, and its PP group is 5 and 37.
  // 2. Let `find_the_world` gather over pp first and over dp last. In which order do the ranks come now, and for which
  //    grids does it make no difference? Hint: a dimension of size 1 has nothing to reorder. Answer: 0 1 4 5 2 3 6 7:
  //    tp is still the fastest coordinate, but pp now comes before dp. It makes no difference where dp or pp is 1. (The
  //    check of the bytes fails as well, since the long list now travels over dp.)
  // 3. A machine has 8 GPUs. For which sizes of tp does every TP group stay within one machine? Hint: TP groups are
  //    neighbouring numbers; at which numbers can one begin? Answer: 1, 2, 4 and 8. Groups begin at the multiples of tp
  //    and machines at the multiples of 8, so tp has to divide 8. With tp 3, ranks 6, 7 and 8 are a group, and rank 8
  //    is in the second machine.
  return lesson.answer(
      "the number is three coordinates in one, with tp as the fastest digit, then dp, then pp; along each of them the "
      "rank has a group, with which it shares the pieces of the same matrices (tp), the same pieces under other data "
      "(dp), or a stack of layers (pp).");
}
