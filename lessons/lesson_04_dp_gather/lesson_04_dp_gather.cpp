// # Lesson 04 · DP gather
//
// Newton–Schulz needs matrices, and no rank has one. To save memory, the ranks of a data-parallel (DP) group have cut
// the optimizer's state into equal ranges of *elements*, and such a cut does not care where a row ends or the next
// matrix begins. This lesson brings the matrices back, pallet by pallet: all ranks gather a bucket, and each matrix is
// found again in what arrives.
//
// You need to know the virtual buffer, `dist_meta` and the address of `down[1,6]` (lesson 03), and what an all-gather
// does (lesson 02).

#include <algorithm>
#include <string>
#include <utility>

#include "sim/classroom/lesson.hpp"
#include "sim/replay/buffer_map.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/small_layer.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// The TP slices of the small layer lie end to end, flat, in one buffer. A few of them make up a *bucket*, and padding
// brings its size to a multiple of dp, so that every DP rank can own an equal range of it: its *DP shard*. A rank keeps
// momentum for its shards alone, so it knows the update of its shards alone. That is ZeRO-1: the optimizer's state is
// shared out, and nothing else is. The gather puts the shards of one bucket side by side in rank order, and that *is*
// the bucket:
//
//     dp 0  qqqqqq··uuuu                  dp 0  qqqqqq··uuuuuuuuuuuu····     q  2 × 3   up  4 × 3
//     dp 1              uuuuuuuu····   →  dp 1  qqqqqq··uuuuuuuuuuuu····  →  q  2 × 3   up  4 × 3
//     my DP shard                         the bucket, on every rank          its matrices
//     (a letter is an element; · is padding)
//
// The second arrow needs to know two things about a matrix: where it begins in the bucket, and into rows of which
// length the elements are to be cut. Nothing in the numbers says either; `dist_meta` does, with `global_range` and
// `shape`.

// The four matrices of [small_layer], packed into the two buckets that lesson 03 drew: q and up, o and down. A size of
// TP that does not divide a matrix is refused here, before any rank starts.
const std::vector<Parameter> kParameters = small_layer();
Layout plan(const RankInfo& rank) { return plan_layout(kParameters, rank.grid, small_layer_options(rank.grid.tp())); }

// What one rank holds in this lesson.
struct Local {
  std::vector<Flat> shards;           // its DP shards, one of each bucket: bucket size / dp elements
  Flat bucket;                        // the bucket that is gathered at the moment
  int bucket_idx = 0;                 // which one that is
  std::vector<NamedMatrix> matrices;  // this rank's slices: q 2 × 3, up 4 × 3, o 3 × 2, down 3 × 4
  std::vector<Flat> kept;             // only with the planted bug kept_buckets
};

// ## The reference
//
// What a rank should end up with is its TP slice of each matrix of numbers. (416 is in the fourth, row 1, column 6:
// [small_layer_number].) `named_slice` copies it out of the whole, element by element.
std::vector<NamedMatrix> numbers_of(const RankInfo& rank) {
  std::vector<NamedMatrix> matrices;
  for (int p = 0; p < int(kParameters.size()); ++p)
    matrices.push_back(named_slice(kParameters[p], small_layer_matrix(p), rank.grid.tp(), rank.place.tp));
  return matrices;
}

// With `--precision bf16` numbers travel as *bfloat16*, floats of 2 bytes. They reach as far as those of 4 bytes, but
// have 8 binary digits in place of 24: enough for every whole number up to 256, and from there to 512 for every even
// one. So 416 arrives as it was sent, and 415 does not.
std::vector<NamedMatrix> matrices_of(const RankInfo& rank) {
  std::vector<NamedMatrix> matrices = numbers_of(rank);
  if (rank.precision == Precision::bf16)
    for (NamedMatrix& slice : matrices) round_to_bf16(slice.matrix.data(), slice.matrix.size());
  return matrices;
}

// ## The steps
//
// Fill my DP shard of each bucket. Of a matrix I may own all elements, or some, or none; `local_range` says where in my
// shard they go. (It counts from the start of the shard, where `global_range` counts from the start of the buffer.)
// Padding is −1 here, so that nobody takes it for a value.
//
// (`dp_shard` picks the elements that I own out of a matrix; lesson 08 looks at it. In training they are in the shard
// from the start, because momentum is never kept anywhere else.)
//
// In the output, the range says which elements of the buffer a shard is, and the bar where in the buffer they lie. The
// line with a star looks `down[1,6]` up at its address and prints what stands there.
void start(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const Buffer& buffer = layout.buffers[0];
  const std::vector<NamedMatrix> matrices = numbers_of(rank);
  for (int b = 0; b < int(buffer.buckets.size()); ++b) {
    const Range mine = layout.dp_slice(0, b, rank.place.dp);
    Flat shard(mine.size(), -1.0f);
    for (const int p : buffer.buckets[b].parameters) {
      const DistMeta& meta = buffer.parameters[p];
      const Flat owned = dp_shard(matrices[p].matrix, layout, meta, rank.place.dp);
      std::copy(owned.begin(), owned.end(), shard.begin() + layout.local_range(meta, rank.place.dp).begin);
    }
    rank.show("bucket " + std::to_string(b), shard).elements(mine, buffer);
    local.shards.push_back(std::move(shard));
  }
  const ElementAddress marked = marked_element(layout);
  const std::string shard = "my shard of bucket " + std::to_string(marked.bucket_idx);
  if (marked.owned_by(rank.place)) rank.say(marked_text(local.shards[marked.bucket_idx], marked.shard_element, shard));
}

// Gather one bucket: every rank sends its shard to every other, and then holds the whole bucket. One call brings all
// matrices that lie in it, however many they are and wherever the cuts go through them. You should see the same range
// on all ranks of a DP group. In PyTorch:
//
//     bucket = torch.empty(dp_size * shard.numel(), dtype=shard.dtype)
//     dist.all_gather_into_tensor(bucket, shard, group=dp_group)
//
// The proof of concept calls them `ns_input_global_buffers[buffer_idx][bucket_idx]`, `ns_input_local_buffers[…][…]` and
// `dist_group`.
void gather_bucket(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  local.bucket = dp_gather(rank.dp(), local.shards[local.bucket_idx], rank.precision);
  const Range range = layout.buffers[0].buckets[local.bucket_idx].range;
  rank.show("bucket " + std::to_string(local.bucket_idx), local.bucket).elements(range, layout.buffers[0]);
  const ElementAddress marked = marked_element(layout);
  if (marked.bucket_idx == local.bucket_idx && marked.in_slice_of(rank.place))
    rank.say(marked_text(local.bucket, marked.bucket_element, "the bucket"));
}

// Find the matrices in the bucket, view each as `dist_meta.shape`, and let go of the bucket before the next one comes.
// In PyTorch, with `begin` and `end` of the `global_range`, and `offset`, where the bucket begins (the proof of concept
// keeps it in `global_buffer_sizes`):
//
//     ns_input = bucket[begin - offset : end - offset].view(dist_meta.shape)
//
// Three planted bugs misread the bucket. `flat_matrix` takes the numbers for a matrix of one row. `local_offset` looks
// where the matrix begins in this rank's own *shard*, which is right on dp 0 alone. `padding_dropped` looks for every
// matrix right behind the one before. And `kept_buckets` gets every value right, but does not let go of the bucket.
void view_matrices(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const Buffer& buffer = layout.buffers[0];
  const Bucket& bucket = buffer.buckets[local.bucket_idx];
  Index used = 0;  // elements of the matrices so far, padding not counted
  for (const int p : bucket.parameters) {
    DistMeta meta = buffer.parameters[p];
    const Index size = meta.shape.size();
    if (rank.bug("flat_matrix")) meta.shape = {1, size};
    Index begin = meta.global_range.begin;
    if (rank.bug("local_offset")) begin = bucket.range.begin + layout.local_range(meta, rank.place.dp).begin;
    if (rank.bug("padding_dropped")) begin = bucket.range.begin + used;
    meta.global_range = {begin, begin + size};
    used += size;

    // Each matrix is a copy out of the bucket, so that the bucket can go. It is this rank's TP slice.
    NamedMatrix slice = {meta.name, view_parameter(local.bucket, bucket.range.begin, meta)};
    const Parameter& parameter = kParameters[p];
    const Range part = tp_range(parameter, rank.grid.tp(), rank.place.tp);
    Shown& shown = rank.show(slice.name, slice.matrix);
    if (parameter.tp_split_dim == SplitDim::rows) shown.rows(part, parameter.shape.rows);
    if (parameter.tp_split_dim == SplitDim::columns) shown.columns(part, parameter.shape.cols);
    const ElementAddress marked = marked_element(layout);
    if (marked.parameter == slice.name && marked.in_slice_of(rank.place))
      rank.say(marked_text(slice.matrix, marked.slice_row, marked.slice_col, "my slice"));
    local.matrices.push_back(std::move(slice));
  }
  if (rank.bug("kept_buckets")) local.kept.push_back(std::move(local.bucket));
  local.bucket = Flat();
  ++local.bucket_idx;
}

// ## The cost
//
// All numbers of the table follow from the plan; no rank is asked. Each gather sends a rank's shard to all others of
// the group, dp − 1 of them, in elements of 4 bytes, or of 2 with `--precision bf16`. So over all buckets a rank sends
// (dp − 1) / dp of the buffer, padding included.
//
// A rank holds its shards all the time, each matrix from the moment it was viewed, and one bucket. (In bf16 the 2-byte
// elements arrive beside the bucket before they are widened, and here count as elements like any other.) Where shards
// and slices are small, the most is held in the first step, which cuts each slice out of a whole matrix.
Prediction predict(const RankInfo& rank) {
  const Layout layout = plan(rank);
  const bool bf16 = rank.precision == Precision::bf16;
  const ElementType type = bf16 ? ElementType::bfloat16 : ElementType::float32;
  Prediction prediction;

  Index slices = 0;  // those that are cut already
  for (const Parameter& parameter : kParameters) {
    const Index slice = tp_shape(parameter, rank.grid.tp()).size();
    prediction.peak_elements = std::max(prediction.peak_elements, slices + parameter.shape.size() + slice);
    slices += slice;
  }
  // Then bucket by bucket, as the steps do it; `held` is what is still there when the next bucket arrives.
  Index held = layout.shard_elements(rank.place.dp);
  for (const Bucket& bucket : layout.buffers[0].buckets) {
    const Index size = bucket.range.size();
    prediction.ledger.add("dp", CollectiveKind::all_gather, type, 1,
                          all_gather_traffic(rank.grid.dp(), size / rank.grid.dp(), type));
    Index matrices = 0;
    for (const int p : bucket.parameters) matrices += layout.buffers[0].parameters[p].shape.size();
    prediction.peak_elements =
        std::max({prediction.peak_elements, held + size + (bf16 ? size : 0), held + size + matrices});
    held += matrices;
  }
  return prediction;
}

// ## Why buckets, and why one at a time?
//
// One could gather matrix by matrix, but a shard's cuts go anywhere: of one matrix, some ranks own much, some a few
// elements and some nothing. A bucket is cut equally, whatever lies in it. And a message costs its sender a fixed time,
// however short it is: a model has hundreds of matrices, and dp − 1 messages for each of them is time spent on starting
// messages. A bucket of many matrices pays that once.
//
// One could also gather the whole buffer at once. That would be the fewest messages of all, and every rank would hold
// the update of the whole model: the very memory that ZeRO-1 came to save. Bucket by bucket, the most that a rank holds
// above its shards is one bucket and what is made of it. (This lesson keeps the matrices, to check them; the optimizer
// is done with each before it comes to the next.) So the bucket's size is a bargain between few messages and little
// memory.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_04_dp_gather";
  info.title = "DP gather";
  info.question = "how do the matrices come back from DP shards that know nothing of matrices?";
  info.bugs = {{"flat_matrix", "the gathered elements of a matrix are not viewed as dist_meta.shape"},
               {"local_offset", "a matrix is looked for where it begins in the rank's own shard"},
               {"padding_dropped", "matrices are looked for right behind each other, as if there were no padding"},
               {"kept_buckets", "a gathered bucket is kept while the next one arrives"}};
  info.also_try = {"--dp 4", "--tp 1", "--precision bf16", "--verbose 2"};

  // First the map of the buffer, as in lesson 03; then gather and view, once for each of the two buckets.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(plan);
  lesson.say(buffer_map_text(plan(lesson.rank_info())));
  lesson.say("a bar: where in the buffer, or in the whole matrix; ★ 416: parameter 4, row 1, column 6\n");
  lesson.step("start from my DP shards", start);
  lesson.step("DP gather of bucket 0: all_gather over dp", gather_bucket);
  lesson.step("view its matrices as dist_meta.shape, then free the bucket", view_matrices);
  lesson.step("DP gather of bucket 1: all_gather over dp", gather_bucket);
  lesson.step("view its matrices as dist_meta.shape, then free the bucket", view_matrices);
  lesson.check("all matrices", &Local::matrices, matrices_of);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. Make the capacity so large that there is one bucket: take a copy of `small_layer_options(…)` in `plan`, set its
  //    `bucket_capacity` to 0, and leave out the steps of bucket 1. Which matrices still have more than one owner, and
  //    what becomes of the peak? Hint: the buffer shrinks, since there is only one end of a bucket to pad. Answer:
  //    none, by luck: the buffer has 40 elements, and the one cut that is left falls between `up` and `o`. The peak
  //    rises from 84 elements to 96 all the same: 20 of the shard, 40 of the bucket, 36 of the matrices.
  // 2. `view_parameter` is told where the bucket begins. What would it read if it were always told 0? Hint: for one
  //    of the two buckets nothing would change, which is why this mistake lives long. Answer: in bucket 0 it would
  //    read the right elements. In bucket 1 it would look for `o` at elements 24 to 29 of a bucket that ends at 23. It
  //    refuses and says so; a program that doesn't check would read memory that belongs to something else.
  // 3. With `--dp 5` the buffer grows. By how much, and which ranks own nothing but padding? Hint: a bucket's size has
  //    to be a multiple of 5 and of 8, and this padding stands at its end. Answer: each bucket grows from 24 elements
  //    to 40, so the buffer from 48 to 80. All 32 new ones stand at the ends of the buckets: the ranks with dp 3 and
  //    dp 4 own padding and nothing else.
  return lesson.answer(
      "all DP ranks gather a whole bucket, which is nothing but their shards in rank order, and dist_meta says "
      "where in it a matrix lies and how many rows and columns to view it with; a bucket holds many matrices, so "
      "that messages are few, and is freed before the next one comes, so that memory is bounded.");
}
