// # Lesson 03 · The virtual buffer
//
// With ZeRO-1, every rank of a data-parallel (DP) group keeps an equal share of the optimizer's state. Matrices do not
// divide equally: there are few of them, and some are large. So they are laid in a row, flat, as one long run of
// elements, and the run is cut. This lesson draws the run, reads off who owns what, and lets every rank fill the part
// that is its own.
//
// You need to know the grid (\ref lesson_01_grid) and the all-gather (\ref lesson_02_collectives). The next lesson gets
// the matrices back out of the run (\ref lesson_04_dp_gather).

#include <fmt/format.h>

#include <algorithm>

#include "sim/cluster/lesson.hpp"
#include "sim/pictures/buffer_map.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/ownership_table.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Think of a warehouse. Goods are parameters, and each *parameter group* (say, hidden matrices for Muon, the rest for
// AdamW) has an *aisle* of its own: its buffer, number `buffer_idx`. Along the aisle stand *pallets*: buckets, number
// `bucket_idx`, of about equal size, which are moved in one piece. The *master plan* on the wall says for every
// parameter where it lies: its `dist_meta`. Nobody has to search, and nobody has to ask.
//
//     a parameter's TP slice      bucket 0 of buffer 0
//      0  1  2                    ┌────────────────────┬─────────────────────┬─────┐
//     10 11 12   row by row →     │ 0 1 2 10 11 12 · · │ the next parameter  │ · · │
//                                 └─────────────────↑──┴─────────────────────┴──↑──┘
//                                 padding up to the alignment       padding, so that dp divides the bucket
//                                 ├─── dp 0 ───┼─── dp 1 ───┼─── dp 2 ──┼── dp 3 ──┤
//
// - What is laid is the *TP slice* of each parameter: its rows or columns that this TP rank holds, flattened row by
//   row. Every TP rank has a buffer of the same plan with other numbers in it.
// - Every parameter begins at a multiple of the *alignment*, for the sake of fast memory access. Megatron takes 64
//   elements; here it is 4, so that the padding can be counted by eye.
// - A bucket is closed as soon as it holds a certain number of elements, and padded until dp divides it.
// - Each bucket is cut into dp equal *DP shards*. The cuts know nothing of parameters.
//
// The plan says of every parameter (`DistMeta` in src/layout/buffer.hpp): its `buffer_idx` and `bucket_idx`; its
// `shape` after TP, and along which dimension TP has cut it, the `tp_split_dim`; and its `global_range`, the elements
// of the buffer that it takes. What a DP rank owns of it is the part of that range which lies in the rank's shard.
// Counted from the start of the shard, it is the parameter's `local_range` on that rank.
//
// The buffer is *virtual* because nobody ever holds all of it: a rank holds its shard of every bucket, and for the
// moment of a gather one bucket.

// Group 0 is for Muon, group 1 for AdamW. Small enough to draw, and tp may be 1 or 2.
const std::vector<Parameter> kParameters = {
    {"up", {10, 3}, SplitDim::rows, 0},        {"wq", {6, 4}, SplitDim::rows, 0},
    {"wo", {4, 6}, SplitDim::columns, 0},      {"down", {3, 10}, SplitDim::columns, 0},
    {"embedding", {14, 2}, SplitDim::rows, 1}, {"norm", {1, 3}, SplitDim::none, 1}};
constexpr Index kAlignment = 4;
constexpr Index kCapacity = 24;  // elements at which a bucket is closed

// The master plan. It is a pure function of parameters, grid and options, so every rank computes all of it alone and
// nothing is sent.
//
// The planted bug `forgotten_padding` plans without the alignment.
Layout plan_buffers(const Seat& seat) {
  LayoutOptions options;
  options.parameter_alignment = seat.bug("forgotten_padding") ? 1 : kAlignment;
  options.bucket_capacity = kCapacity;
  return plan_layout(kParameters, seat.grid, options);
}

// What one rank holds.
struct Local {
  std::vector<NamedMatrix> shards;  // its DP shard of every bucket, 1 × bucket size / dp
  Flat bucket;                      // one bucket, after the gather
};

// The number that stands at (row, col) of a whole parameter: 1000 for the first parameter, 2000 for the second, and so
// on, plus 10 · row + col. Padding is 0. So a number says where it belongs.
float number_at(int parameter, Index row, Index col) {
  return static_cast<float>(1000 * (parameter + 1) + 10 * row + col);
}

// ## The reference
//
// The whole warehouse laid by hand, with no plan: take the parameters one after the other, write the slice row by row,
// and pad where it has to be. What comes out is [buffer][bucket], each bucket from its first element to its last.
std::vector<std::vector<Flat>> lay_by_hand(const Seat& seat) {
  const Index tp = seat.grid.tp(), dp = seat.grid.dp();
  std::vector<std::vector<Flat>> buffers(2, std::vector<Flat>(1));
  std::vector<Index> before = {0, 0};  // elements in the closed buckets of a buffer
  // A full bucket is padded, so that dp divides it.
  const auto close = [&](int group) {
    Flat& bucket = buffers[group].back();
    while (static_cast<Index>(bucket.size()) % dp != 0) bucket.push_back(0);
    before[group] += static_cast<Index>(bucket.size());
  };
  for (std::size_t p = 0; p < kParameters.size(); ++p) {
    const Parameter& parameter = kParameters[p];
    const int group = parameter.group;
    if (static_cast<Index>(buffers[group].back().size()) >= kCapacity) {
      close(group);
      buffers[group].emplace_back();
    }
    Flat& bucket = buffers[group].back();
    // The next parameter begins at a multiple of the alignment, counted in the whole buffer.
    while ((before[group] + static_cast<Index>(bucket.size())) % kAlignment != 0) bucket.push_back(0);
    // My rows and columns of it, flattened row by row.
    Index rows = parameter.shape.rows, cols = parameter.shape.cols, first_row = 0, first_col = 0;
    if (parameter.tp_split_dim == SplitDim::rows) rows /= tp, first_row = rows * seat.place.tp;
    if (parameter.tp_split_dim == SplitDim::columns) cols /= tp, first_col = cols * seat.place.tp;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) bucket.push_back(number_at(static_cast<int>(p), first_row + i, first_col + j));
  }
  for (int group = 0; group < 2; ++group) close(group);
  return buffers;
}

// My part of it: an equal run of every bucket. The reference knows which run from the rank's place in its DP group, the
// ranks in the steps below know it from the plan, and every element has to agree.
std::vector<NamedMatrix> shards_by_hand(const Seat& seat) {
  std::vector<NamedMatrix> shards;
  const auto buffers = lay_by_hand(seat);
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < buffers[b].size(); ++i) {
      const Index size = static_cast<Index>(buffers[b][i].size()) / seat.grid.dp();
      const auto begin = buffers[b][i].begin() + seat.place.dp * size;
      shards.push_back({fmt::format("buffer {} bucket {}", b, i), Matrix(1, size, Flat(begin, begin + size)), 0, 0});
    }
  return shards;
}
Flat last_bucket_by_hand(const Seat& seat) { return lay_by_hand(seat)[0].back(); }

// ## Reading the plan
//
// Before any rank does anything, the program prints the plan. The map draws every element as a letter. A line of the
// table is a parameter with its `global_range` and, for each DP rank, its `local_range`: the places in the rank's shard
// that the parameter takes. All cases are there. An empty cell (·) is a parameter that lies wholly outside the rank's
// shard; `norm` lies in one shard; `wq` and `wo` cross one boundary; `up`, `down` and `embedding` span three ranks, so
// that the second of them holds the middle of a matrix and neither of its ends.
//
// Two rules are worth a look. A bucket that is almost full still takes a whole parameter: bucket 0 of buffer 0 is
// closed at 28 elements, not at 24, because a parameter is never cut between two buckets. And the two kinds of padding
// can be told apart on the map: one stands before a parameter, the other at the end of a bucket.

// ## The steps
//
// Element number `at` of a parameter's flattened slice, on this TP rank: row = at / columns, column = at % columns,
// with the shape *after* TP.
//
// The planted bug `column_major` counts down the columns, as Fortran and Eigen's own matrices do. The planted bug
// `forgotten_tp` takes the columns of the whole parameter, which goes unnoticed until TP cuts columns.
float element(const Rank& rank, const DistMeta& meta, Index at) {
  const Index cols = rank.bug("forgotten_tp") ? meta.full_shape.cols : meta.shape.cols;
  Index row = at / cols, col = at % cols;
  if (rank.bug("column_major")) row = at % meta.shape.rows, col = at / meta.shape.rows;
  if (meta.tp_split_dim == SplitDim::rows) row += meta.shape.rows * rank.place.tp;
  if (meta.tp_split_dim == SplitDim::columns) col += meta.shape.cols * rank.place.tp;
  return number_at(meta.parameter, row, col);
}

// Fill my shard of every bucket. You should see on TP rank 0 which elements of the buffer a rank owns and what stands
// in them; the other TP ranks own the same places, and hold other rows or columns there. What I own of a parameter is
// what its run and mine have in common, often nothing. The place in my shard is counted from where my run of *this
// bucket* begins. (`Layout::owned_range` and `Layout::local_range` say the same; here it is written out.)
//
// The planted bug `wrong_bucket` counts from the first bucket of the buffer, which is right as long as there is only
// one.
void fill_my_shards(Rank& rank, Local& local) {
  const Layout layout = plan_buffers(rank);
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t i = 0; i < buffer.buckets.size(); ++i) {
      const int bucket_idx = rank.bug("wrong_bucket") ? 0 : static_cast<int>(i);
      const Range mine = layout.dp_slice(static_cast<int>(b), bucket_idx, rank.place.dp);
      Matrix shard(1, mine.size());
      for (const int p : buffer.buckets[i].parameters) {
        const DistMeta& meta = buffer.parameters[p];
        const Range owned = intersection(meta.global_range, mine);
        for (Index at = owned.begin; at < owned.end; ++at)
          shard(0, at - mine.begin) = element(rank, meta, at - meta.global_range.begin);
      }
      if (rank.place.tp == 0)
        rank.say(fmt::format("{}.{}  {:<7}{}", b, i, range_text(mine), numbers_text(shard.flat(), 56)));
      local.shards.push_back({fmt::format("buffer {} bucket {}", b, i), std::move(shard), 0, 0});
    }
  }
  if (rank.place.tp > 0) rank.say(fmt::format("the same ranges, other numbers: {} …", local.shards[0].matrix(0, 0)));
}

// Gather the last bucket of the first buffer, to see that the shards tile it: in rank order they are the bucket, no
// element missing and none there twice. This is lesson 04 in one line.
void gather_a_bucket(Rank& rank, Local& local) {
  const std::size_t last = plan_buffers(rank).buffers[0].buckets.size() - 1;
  local.bucket = rank.dp().all_gather(local.shards[last].matrix.flat());
  rank.show(fmt::format("bucket {} of buffer 0", last), local.bucket).whole();
}

// ## Why cut elements and not matrices?
//
// One could give every rank some whole matrices instead. Then the shares would be as unequal as the matrices are, a
// rank might get none, and with more ranks than matrices the rest would have nothing to do. Cutting the flat run gives
// equal shares for any shapes and any dp. AdamW, which treats every element alone, never notices the cuts. Muon does,
// since it needs whole matrices: the gathers of the next two lessons are the price for the cuts of this one.
//
// ## The cost
//
// The plan costs nothing: a pure function of what every rank knows anyway is computed by all and sent by none. The one
// bucket that is gathered is sent like any other. The peak is the sum of my shards and that bucket.
Prediction predict(const Seat& seat) {
  const int dp = seat.grid.dp();
  const Layout layout = plan_buffers(seat);
  const Index bucket = layout.buffers[0].buckets.back().range.size();
  Prediction prediction;
  prediction.ledger.add("dp", CollectiveKind::all_gather, ElementType::float32, 1,
                        all_gather_traffic(dp, bucket / dp, ElementType::float32));
  prediction.peak_elements = layout.shard_elements(seat.place.dp) + bucket;
  return prediction;
}

// The map of the buffers as a picture, in which the shards of one DP rank, that of `--mark`, are framed.
int mark = -1;
std::string draw_map(const Seat& seat) { return buffer_map_svg(plan_buffers(seat), mark); }

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_03_virtual_buffer";
  info.title = "The virtual buffer";
  info.fp32_only = true;
  info.question = "where does every element lie, and how does each rank know it without asking?";
  info.bugs = {{"forgotten_padding", "parameters are laid without alignment"},
               {"wrong_bucket", "a rank's part is counted from the first bucket of the buffer"},
               {"column_major", "slices are flattened column by column"},
               {"forgotten_tp", "a slice is read with the columns of the whole parameter"}};
  info.also_try = {"--dp 2 --tp 1", "--dp 5", "--verbose 2", "--svg map.svg --mark 1"};
  info.options = {{"--mark", "the DP rank whose shards the map of --svg frames", &mark}};

  // The map is drawn in any case, and before any rank is started: a --mark that can't be is refused. --svg writes it.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(draw_map);
  lesson.picture("buffer", draw_map(lesson.seat()));
  // The plan first, as a map and as a table, and then what the ranks make of it.
  const Layout layout = plan_buffers(lesson.seat());
  lesson.say(buffer_map_text(layout));
  lesson.say(ownership_table(layout));
  lesson.step("fill my shards (buffer.bucket, its elements, and the numbers in them)", fill_my_shards);
  lesson.step("gather one bucket: all_gather over dp", gather_a_bucket);
  lesson.check("every shard", &Local::shards, shards_by_hand);
  lesson.check("the gathered bucket", &Local::bucket, last_bucket_by_hand);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. How much padding has bucket 0 of buffer 0 with `--dp 4`, with `--dp 5` and with `--dp 7`? Predict it, then look.
  //    Hint: there are two kinds of padding, and one of them does not know dp.
  // 2. A model has 10⁹ parameters and dp is 64. How many elements does the padding of the buckets add at most, if there
  //    are 25 buckets? Hint: less than dp a bucket; is it worth a thought?
  // 3. Who holds row 2, column 7 of `down`, and at which place of which shard? Work it out from the table, then look
  //    the number up with `--verbose 2`. Hint: TP rank 1 holds columns 5 to 9, so a row of its slice is 5 long.
  return lesson.answer(
      "all parameters of a group lie in one virtual buffer, slice after slice, row by row, padded and cut into "
      "buckets, and every bucket is cut into equal shards, one a DP rank; the plan that says where is a pure function "
      "of shapes, grid and options, so every rank computes it alone and nothing has to be sent.");
}
