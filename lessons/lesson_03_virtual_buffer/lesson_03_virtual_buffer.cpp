// # Lesson 03 · The virtual buffer
//
// With ZeRO-1, every rank of a data-parallel (DP) group keeps an equal share of the optimizer's state. Matrices do not
// divide equally: there are few of them, and some are large. So they are laid end to end, flat, in one long range of
// elements, and that is cut. This lesson lays out the small layer that lessons 03 to 08 share, and gives one of its
// elements its address, one coordinate at a time. The next five lessons follow that element.
//
// You need to know the grid (lesson 01) and the all-gather (lesson 02). The next lesson gets the matrices back
// (lesson 04).

#include <fmt/format.h>

#include "sim/classroom/lesson.hpp"
#include "sim/replay/buffer_map.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/small_layer.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Think of a warehouse. (The image is from Jen Wei's tutorial
// [The "Muon is Scalable" Blueprint](https://huggingface.co/datasets/bird-of-paradise/muon-distributed), from which
// this project grew.) Goods are parameters. TP has *cut the boxes*: each TP rank has its slice of every matrix, and a
// warehouse of its own. Each *parameter group* (hidden matrices for Muon, the rest for AdamW) has an *aisle*: its
// buffer. Along the aisle stand *pallets*: buckets, each moved in one piece. The *blueprint* on the wall says where
// everything lies: `dist_meta`. Nobody has to search, and nobody has to ask.
//
//     a parameter's TP slice      bucket 0 of buffer 0
//     100 101 102                 ┌─────────────────────────────┬─────────────────────┬─────┐
//     110 111 112  row by row →   │ 100 101 102 110 111 112 · · │ the next parameter  │ · · │
//                                 └──────────────────────────↑──┴─────────────────────┴──↑──┘
//                                 padding up to the alignment         padding, so that dp divides the bucket
//                                 ├───────────── dp 0 ──────────────┼────────── dp 1 ───────┤
//
// - Slices are flattened row by row. Every TP rank has the same blueprint and other numbers.
// - Every parameter begins at a multiple of the *alignment*, for fast memory access. Megatron-LM takes 64 elements,
//   this lesson 4, so that you can count the padding.
// - A bucket is closed as soon as it holds a certain number of elements, and padded until dp divides it (and, here, 8).
// - Each bucket is cut into dp equal *DP shards*. The cuts know nothing of parameters.
//
// The buffer is *virtual* because nobody ever holds all of it: a rank holds its shard of every bucket, and for the
// moment of a gather one bucket.

// The four matrices of the small layer ([small_layer]): q 4 × 3 and up 8 × 3, which TP cuts by rows, o 3 × 4 and down 3
// × 8, which it cuts by columns. Only this lesson has two more, which are left to AdamW and so have a group, and an
// aisle, of their own.
std::vector<Parameter> small_model() {
  std::vector<Parameter> model = small_layer();
  model.push_back({"embedding", {8, 3}, SplitDim::rows, 1});
  model.push_back({"norm", {1, 3}, SplitDim::none, 1});
  return model;
}
const std::vector<Parameter> kParameters = small_model();

// The blueprint. It is a pure function of parameters, grid and options, so every rank computes all of it alone and
// nothing is sent. The planted bug `forgotten_padding` plans without the alignment.
Layout plan_buffers(const RankInfo& rank) {
  LayoutOptions options = small_layer_options(rank.grid.tp());
  if (rank.bug("forgotten_padding")) options.parameter_alignment = 1;
  return plan_layout(kParameters, rank.grid, options);
}

// ## One element, five coordinates
//
// The number at (row, col) of a whole matrix is 100 for the first parameter, 200 for the second, and so on, plus
// 10 · row + col. So a number says where it belongs. We mark one of them, 416: the fourth parameter, `down`, row 1,
// column 6. What does `dist_meta` have to say, so that everybody can find it?
//
// 1. `tp_split_dim` and `shape`. TP has cut `down` along its columns, and a slice has the shape 3 × 4. Column 6 is in
//    the second slice, that of TP rank 1, as its column 2. Row by row, that is element 1 · 4 + 2 of the slice.
// 2. `buffer_idx`, the aisle: the buffer of the parameter group that `down` belongs to.
// 3. `global_range`, the shelf: the elements of the buffer that the slice takes. Its start plus the element of the
//    slice is the element of the buffer. From here on rows and columns are forgotten.
// 4. `bucket_idx`, the pallet. What travels is a bucket, and in it elements are counted from where it begins.
// 5. `local_range`, what a DP rank owns of the parameter: the part of the `global_range` that lies in the rank's shard.
//    It is the only one of the five that differs between DP ranks.
//
// Beware of the fifth when you read the proof of concept (Moonshot AI's `MuonDistMeta`, in pull request 1428 of
// Megatron-LM). Its names are the ones used here, but its `local_range` counts from the start of the *buffer*; where it
// wants to count from the start of the shard, it subtracts that: `normalize_range(local_range, local_buffer_range[0])`.
// Here `local_range` counts from the start of the shard.

// The five coordinates, as the program prints them. With another grid the same element has another address; try
// `--tp 4` or `--dp 4`.
std::string address_of_416(const Layout& layout) {
  return "what dist_meta says of ★ down[1,6]; its number, 416, says parameter 4, row 1, column 6\n" +
         address_text(layout, marked_element(layout));
}

// What one rank holds.
struct Local {
  std::vector<NamedMatrix> shards;  // its DP shard of every bucket, 1 × bucket size / dp
  Flat bucket;                      // one bucket, after the gather
};

// ## The reference
//
// The whole warehouse laid by hand, with no plan: take the parameters one after the other, write the slice row by row,
// and pad with 0 where necessary. What comes out is a vector of buckets for each buffer.
std::vector<std::vector<Flat>> lay_by_hand(const RankInfo& rank) {
  const LayoutOptions options = small_layer_options(rank.grid.tp());
  const Index tp = rank.grid.tp(), dp = rank.grid.dp();
  std::vector<std::vector<Flat>> buffers(2, std::vector<Flat>(1));
  std::vector<Index> before = {0, 0};  // elements in the closed buckets of a buffer
  // A full bucket is padded, so that dp and the bucket's alignment divide it.
  const auto close = [&](int group) {
    Flat& bucket = buffers[group].back();
    while (Index(bucket.size()) % dp != 0 || Index(bucket.size()) % options.bucket_alignment != 0) bucket.push_back(0);
    before[group] += Index(bucket.size());
  };
  for (std::size_t p = 0; p < kParameters.size(); ++p) {
    const Parameter& parameter = kParameters[p];
    const int group = parameter.group;
    if (Index(buffers[group].back().size()) >= options.bucket_capacity) {
      close(group);
      buffers[group].emplace_back();
    }
    Flat& bucket = buffers[group].back();
    // The next parameter begins at a multiple of the alignment, counted in the whole buffer.
    while ((before[group] + Index(bucket.size())) % options.parameter_alignment != 0) bucket.push_back(0);
    // My rows and columns of it, flattened row by row.
    Index rows = parameter.shape.rows, cols = parameter.shape.cols, first_row = 0, first_col = 0;
    if (parameter.tp_split_dim == SplitDim::rows) rows /= tp, first_row = rows * rank.place.tp;
    if (parameter.tp_split_dim == SplitDim::columns) cols /= tp, first_col = cols * rank.place.tp;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) bucket.push_back(small_layer_number(int(p), first_row + i, first_col + j));
  }
  for (int group = 0; group < 2; ++group) close(group);
  return buffers;
}

// My part of it: an equal range of every bucket, the one with the number of my DP coordinate.
std::vector<NamedMatrix> shards_by_hand(const RankInfo& rank) {
  std::vector<NamedMatrix> shards;
  const auto buffers = lay_by_hand(rank);
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < buffers[b].size(); ++i) {
      const Index size = Index(buffers[b][i].size()) / rank.grid.dp();
      const auto begin = buffers[b][i].begin() + rank.place.dp * size;
      shards.push_back({fmt::format("buffer {} bucket {}", b, i), Matrix(1, size, Flat(begin, begin + size)), 0, 0});
    }
  return shards;
}
Flat last_bucket_by_hand(const RankInfo& rank) { return lay_by_hand(rank)[0].back(); }

// ## The steps
//
// Before any rank does anything, the program prints the plan. The map draws every element as a letter, and says of each
// parameter its `global_range` and which DP ranks own some of it. `up` and `down` cross the boundary between the
// shards, `up` in the middle of a row. (With `--dp 4`, a rank owns the middle of `up` and neither of its ends.) What
// the second buffer has, that of the embedding and the norm, is printed with `--verbose 2`.
bool every_buffer = false;

// Then the ranks fill their shards. Element number `at` of a parameter's flattened slice is in row at / columns and
// column at % columns, with the shape *after* TP. The planted bug `column_major` counts down the columns, as Fortran
// does. The planted bug `forgotten_tp` takes the columns of the whole parameter, which goes unnoticed until TP cuts
// columns.
float element(const Rank& rank, const DistMeta& meta, Index at) {
  const Index cols = rank.bug("forgotten_tp") ? meta.full_shape.cols : meta.shape.cols;
  Index row = at / cols, col = at % cols;
  if (rank.bug("column_major")) row = at % meta.shape.rows, col = at / meta.shape.rows;
  if (meta.tp_split_dim == SplitDim::rows) row += meta.shape.rows * rank.place.tp;
  if (meta.tp_split_dim == SplitDim::columns) col += meta.shape.cols * rank.place.tp;
  return small_layer_number(meta.parameter, row, col);
}

// Fill my shard of every bucket: what I own of a parameter is what its range and mine have in common, often nothing.
// You should see the ranks of a TP group own the same elements of the buffer, and hold other numbers there. Find 416.
// The planted bug `wrong_bucket` counts from the first bucket, which is right as long as there is only one.
void fill_my_shards(Rank& rank, Local& local) {
  const Layout layout = plan_buffers(rank);
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t i = 0; i < buffer.buckets.size(); ++i) {
      const Range mine = layout.dp_slice(int(b), rank.bug("wrong_bucket") ? 0 : int(i), rank.place.dp);
      Matrix shard(1, mine.size());
      for (const int p : buffer.buckets[i].parameters) {
        const DistMeta& meta = buffer.parameters[p];
        const Range owned = intersection(meta.global_range, mine);
        for (Index at = owned.begin; at < owned.end; ++at)
          shard(0, at - mine.begin) = element(rank, meta, at - meta.global_range.begin);
      }
      if (b == 0 || every_buffer)
        rank.say(fmt::format("{}.{}  {:<7}{}", b, i, range_text(mine), numbers_text(shard.flat(), 56)));
      local.shards.push_back({fmt::format("buffer {} bucket {}", b, i), std::move(shard), 0, 0});
    }
  }
  // The owner of the marked element looks it up by its address.
  const ElementAddress marked = marked_element(layout);
  if (marked.owned_by(rank.place))
    rank.say(marked_text(local.shards[1].matrix.flat(), marked.shard_element, "my shard of bucket 1"));
}

// Gather the last bucket of the first buffer, to see that the shards tile it: in rank order they *are* the bucket. This
// is lesson 04 in one line.
void gather_a_bucket(Rank& rank, Local& local) {
  const Layout layout = plan_buffers(rank);
  const std::size_t last = layout.buffers[0].buckets.size() - 1;
  local.bucket = rank.dp().all_gather(local.shards[last].matrix.flat());
  const Buffer& buffer = layout.buffers[0];
  rank.show(fmt::format("bucket {}", last), local.bucket).elements(buffer.buckets[last].range, buffer);

  const ElementAddress marked = marked_element(layout);
  if (marked.in_slice_of(rank.place)) rank.say(marked_text(local.bucket, marked.bucket_element, "the bucket"));
}

// ## Why cut elements and not matrices?
//
// One could give every rank some whole matrices instead. Then the shares would be as unequal as the matrices, and with
// more ranks than matrices some would get none. Cutting the flat range gives equal shares for any shapes and any dp.
// AdamW, which treats every element alone, never notices the cuts. Muon does, since it needs whole matrices: the
// gathers of the next two lessons are the price for the cuts of this one.
//
// ## The cost
//
// The plan costs nothing: all ranks compute it from what they know anyway. The peak is my shards and one bucket.
Prediction predict(const RankInfo& rank) {
  const int dp = rank.grid.dp();
  const Layout layout = plan_buffers(rank);
  const Index bucket = layout.buffers[0].buckets.back().range.size();
  Prediction prediction;
  prediction.ledger.add("dp", CollectiveKind::all_gather, ElementType::float32, 1,
                        all_gather_traffic(dp, bucket / dp, ElementType::float32));
  prediction.peak_elements = layout.shard_elements(rank.place.dp) + bucket;
  return prediction;
}

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
  info.also_try = {"--dp 4", "--tp 1", "--dp 3", "--verbose 2"};

  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(plan_buffers);
  // The plan first, as a map and for one element, and then what the ranks make of it.
  const Layout layout = plan_buffers(lesson.rank_info());
  every_buffer = lesson.options().verbose > 1;
  lesson.say(
      "buffer   the TP slices of a group of parameters, end to end; TP ranks have one map, other numbers\n"
      "bucket   a part of the buffer that travels at a time; of each, a DP rank owns an equal shard\n");
  lesson.say(buffer_map_text(every_buffer ? layout : layout.of_group(0)));
  lesson.say(address_of_416(layout));
  lesson.step("fill my shards (buffer.bucket, its elements, and the numbers in them)", fill_my_shards);
  lesson.step("gather one bucket: all_gather over dp (the bar: where in the buffer it lies)", gather_a_bucket);
  lesson.check("every shard", &Local::shards, shards_by_hand);
  lesson.check("the gathered bucket", &Local::bucket, last_bucket_by_hand);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. How many elements of padding does bucket 0 of buffer 0 have with `--dp 2`, with `--dp 3` and with `--dp 5`?
  //    Predict it, then look. Hint: there are two kinds of padding, and one of them does not know dp. Answer: 6, 6 and
  //    22. Two elements stand before `up` in any case. At the end the bucket is padded from 20 elements to a multiple
  //    of 8 and dp: to 24, to 24 and to 40.
  // 2. A model has 10⁹ parameters and dp is 64. How many elements does the padding at the ends of the buckets add at
  //    most, if there are 25 buckets? Hint: 8 divides 64; is it worth a thought? Answer: each bucket is padded by less
  //    than 64 elements, so all of them by at most 25 · 63 = 1575, less than two in a million. It is worth none.
  // 3. Who holds row 1, column 3 of `down`, and as which element of which shard? Work it out from the map, then look
  //    for the number. Hint: it is 413, and TP rank 0 holds columns 0 to 3, so a row of its slice is 4 long.
  //    Answer: element 1 · 4 + 3 = 7 of the slice of TP rank 0, 32 + 7 = 39 of the buffer. The shard of dp 1 begins at
  //    36, so it is element 3 of the shard of bucket 1 on rank 2, and the line `0.1` of rank 2 has 413 there.
  return lesson.answer(
      "all parameters of a group lie in one virtual buffer, slice after slice, row by row, padded and cut into "
      "buckets, and every bucket is cut into equal shards, one per DP rank; the plan that says where is a pure "
      "function of shapes, grid and options, so every rank computes it alone and nothing has to be sent.");
}
