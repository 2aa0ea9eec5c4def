// # Lesson 08 · DP shard
//
// A rank holds its TP slice of the orthogonal matrix, and it could now change all the weights of that slice. It does
// not. Of the data-parallel (DP) group every rank changes only the weights that it owns, and then they give each other
// what they have. This lesson is lesson 04 backward: the goods go back on their shelves, and with it the journey of a
// matrix ends.
//
// You need to know how a bucket is cut into DP shards (lesson 04) and what TP has left of the matrix (lesson 07).

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/small_layer.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A rank owns an equal range of each bucket: here the end of one matrix and the start of the next, there a piece out of
// the middle. Of a matrix that lies across its range it takes the elements that it owns (the DP shard), and the update
// goes to those weights. What it does not own it leaves as it was, and the other ranks' weights are missing until the
// *all-gather of weights* brings them. Bucket 1 of the small layer, with `o` and `down`:
//
//     dp 0  oooooo··dddd                 dp 0  OOOOOO··DDDDdddddddd····     dp 0  OOOOOO··DDDDDDDDDDDD····
//     dp 1              dddddddd····  →  dp 1  oooooo··ddddDDDDDDDD····  →  dp 1  OOOOOO··DDDDDDDDDDDD····
//     what I own of the update           capitals: weights that are new     all weights, new everywhere
//     (a letter is an element)
//
// Why not let every rank change all weights, and save the gather? Because no rank has all of the update: it
// orthogonalizes only the matrices of which it owns something. That is ZeRO-1's bargain: each rank keeps the
// optimizer's state, and does its work, for what it owns, and pays with one gather of weights per step.

// The four matrices of [small_layer], in the two buckets that lesson 03 drew. A size of TP that does not divide a
// matrix is refused here, before any rank starts.
const std::vector<Parameter> kParameters = small_layer();
Layout plan(const RankInfo& rank) { return plan_layout(kParameters, rank.grid, small_layer_options(rank.grid.tp())); }

// What one rank holds in this lesson.
struct Local {
  Buckets weights;                       // [0][b]: all of bucket b, as every DP rank has it
  std::vector<NamedMatrix> orthogonal;   // its TP slices of the orthogonal matrices of which it owns something
  std::vector<Flat> shards;              // what it owns of them
  std::vector<NamedMatrix> new_weights;  // at the end: the buckets as matrices
};

// ## The reference
//
// Weights are the numbers of the small layer, and the orthogonal matrices a thousandth of them: 416 and 0.416 for the
// marked element, so that it can be recognized in either. That the second ones are not orthogonal makes no difference
// to anything in this lesson: their elements are subtracted from the weights, whatever they are.
Matrix weights_of(const RankInfo&, int p) { return small_layer_matrix(p); }
Matrix orthogonal_of(const RankInfo&, int p) {
  Matrix orthogonal = small_layer_matrix(p);
  for (Index at = 0; at < orthogonal.size(); ++at) orthogonal.data()[at] /= 1000;
  return orthogonal;
}

// Muon's last line in plain loops, on whole matrices. The weights decay by the factor 1 − lr · wd (decoupled weight
// decay: it takes no part in the gradient), and are then moved by lr · 0.2 · √max(rows, cols) times the orthogonal
// matrix. An element of an orthogonal matrix is the smaller, the larger the matrix; the root makes up for that, so that
// weights of all matrices move alike. rows and cols are those of the whole matrix: this is a law about matrices, and
// neither TP nor DP has a say in it.
//
// Of the result a rank is to have its TP slice. It is rounded exactly as here, operation by operation; that is why the
// ranks can be held to every bit of it.
std::vector<NamedMatrix> new_weights(const RankInfo& rank) {
  const MuonSettings settings;
  std::vector<NamedMatrix> slices;
  for (int p = 0; p < int(kParameters.size()); ++p) {
    Matrix w = weights_of(rank, p);
    const Matrix orthogonal = orthogonal_of(rank, p);
    const float keep = 1.0f - settings.lr * settings.weight_decay;
    const float scale = settings.lr * settings.rms * std::sqrt(float(std::max(w.rows(), w.cols())));
    for (Index i = 0; i < w.rows(); ++i)
      for (Index j = 0; j < w.cols(); ++j) w(i, j) = w(i, j) * keep - scale * orthogonal(i, j);
    slices.push_back(named_slice(kParameters[p], w, rank.grid.tp(), rank.place.tp));
  }
  return slices;
}

// ## The steps
//
// What is shown of the weights: a part of each bucket, what it was made of where the update has just been applied, and
// the marked element, where the part has it.
template <class PartOfBucket>
void show_weights(Rank& rank, const Local& local, const PartOfBucket& part_of_bucket) {
  const Layout layout = plan(rank);
  const bool is_new = !local.shards.empty();
  const ElementAddress marked = marked_element(layout);
  for (int b = 0; b < int(local.weights[0].size()); ++b) {
    const Flat& weights = local.weights[0][b];
    const Range part = part_of_bucket(b);
    const auto begin = weights.begin() + (part.begin - layout.buffers[0].buckets[b].range.begin);
    Shown& shown = rank.show("weights of bucket " + std::to_string(b), Flat(begin, begin + part.size()));
    shown.elements(part, layout.buffers[0]).note(is_new ? "new" : "");
    // For the player: what I own of the update has gone into it.
    for (const DistMeta& meta : layout.buffers[0].parameters)
      if (is_new && meta.bucket_idx == b && !layout.owned_range(meta, rank.place.dp).empty()) shown.from(meta.name);
    const bool has = part.begin <= marked.buffer_element && marked.buffer_element < part.end;
    if (b == marked.bucket_idx && has && marked.in_slice_of(rank.place))
      rank.say(marked_text(weights, marked.bucket_element, "the bucket"));
  }
}

// Start where the journey has come to: with the old weights, all of the buckets, as the forward pass used them.
void start_from_weights(Rank& rank, Local& local) {
  const Layout layout = plan(rank);

  // What no rank of real training ever does: make all weights whole, to lay this rank's slices of them into buckets.
  std::vector<Matrix> full;
  std::vector<const Matrix*> pointers;
  for (int p = 0; p < int(kParameters.size()); ++p) full.push_back(weights_of(rank, p));
  for (const Matrix& matrix : full) pointers.push_back(&matrix);
  local.weights = pack_buckets(layout, pointers, rank.place.tp);
  show_weights(rank, local, [&](int b) { return layout.buffers[0].buckets[b].range; });
}

// And with my TP slices of the orthogonal matrices of which I own at least one element. The others I never had: to
// orthogonalize them was the work of other ranks. A matrix that lies on two ranks was orthogonalized twice.
//
// Memory is counted from the end of this step on; what it takes to set the scene does not count.
void start_from_matrices(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    if (layout.owned_range(meta, rank.place.dp).empty()) continue;
    const Matrix whole = orthogonal_of(rank, meta.parameter);
    local.orthogonal.push_back({meta.name, tp_shard(whole, meta.tp_split_dim, rank.grid.tp(), rank.place.tp)});
    rank.show(meta.name + ", orthogonal", local.orthogonal.back().matrix).whole();
  }
  rank.memory().restart_peak();
}

// The DP shard: take the elements that I own out of each matrix. Nothing travels. The range says which elements of the
// slice, counted row by row, they are; it begins and ends in the middle of a row as it pleases. In PyTorch, with the
// `local_range` counted from where the parameter begins (in the proof of concept,
// `normalize_range(local_range, global_range[0])`):
//
//     update = update.reshape(-1)[begin:end]
//
// You should see that rank 3 has elements 4 to 11 of its slice of `down`, as rank 2 has of another slice. The marked
// element was number 6 of the slice, and is number 2 of what the rank owns.
//
// The planted bug `neighbours_share` takes, and later changes, what the next DP rank owns.
void shard(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const int dp_rank = rank.bug("neighbours_share") ? (rank.place.dp + 1) % rank.grid.dp() : rank.place.dp;
  std::size_t next = 0;
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const Index first = meta.global_range.begin;
    if (layout.owned_range(meta, rank.place.dp).empty()) continue;

    // The slice is cut in memory order, so what I own of it is one range. The bar shows where in the slice it lies.
    const Range owned = layout.owned_range(meta, dp_rank);
    local.shards.push_back(dp_shard(local.orthogonal[next++].matrix, layout, meta, dp_rank));
    rank.show(meta.name, local.shards.back()).elements({owned.begin - first, owned.end - first}, meta.shape.size());
    const ElementAddress marked = marked_element(layout);
    if (meta.name == marked.parameter && marked.owned_by(rank.place))
      rank.say(marked_text(local.shards.back(), marked.buffer_element - owned.begin, "what I own of the update"));
  }
  local.orthogonal.clear();
}

// Change the weights that I own, and no others. `apply` in src/optim/steps.hpp is Muon's last line on a range of
// elements; what is left to do here is to call it on the right weights. An element has three addresses now, and each
// array wants its own: in the slice (above), in the shard (`dp_shard` has dealt with it), and in the bucket, where the
// weights are. In PyTorch, with what the proof of concept calls `adjusted_lr`:
//
//     p.mul_(1 - lr * weight_decay)
//     p.add_(update, alpha=-lr * 0.2 * math.sqrt(max(rows, cols)))
//
// You should see ranges that tile the buckets: together they are all of them, and no element is in two. So every weight
// is changed by one rank, once. The marked one was 416, and is now 416 · 0.99 − 0.416 · 0.02 · √8.
//
// Two planted bugs. `local_offset` writes where the element lies in my shard, and not where it lies in the bucket.
// `shard_shape` takes √max(rows, cols) of what it has in hand, a row of elements, where the whole matrix is meant.
void apply_to_mine(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const int dp_rank = rank.bug("neighbours_share") ? (rank.place.dp + 1) % rank.grid.dp() : rank.place.dp;
  std::size_t next = 0;
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    if (layout.owned_range(meta, rank.place.dp).empty()) continue;

    // `at` counts in the bucket, so where the bucket begins has to be taken off.
    const Flat& orthogonal = local.shards[next++];
    Index at = layout.owned_range(meta, dp_rank).begin - layout.buffers[0].buckets[meta.bucket_idx].range.begin;
    if (rank.bug("local_offset")) at = layout.local_range(meta, dp_rank).begin;
    Shape shape = meta.full_shape;
    if (rank.bug("shard_shape")) shape = {1, Index(orthogonal.size())};
    float* weights = local.weights[0][meta.bucket_idx].data() + at;
    apply(weights, orthogonal.data(), Index(orthogonal.size()), shape, MuonSettings());
  }
  show_weights(rank, local, [&](int b) { return layout.dp_slice(0, b, rank.place.dp); });
  local.shards.clear();
}

// All-gather the weights, bucket by bucket: everybody sends the range that it owns, padding included, and receives the
// others' where they belong. The weights travel as they are kept, in 4 bytes, also where the optimizer computes in
// bf16. In PyTorch (Megatron-LM does it, not the proof of concept; `mine` is a view of my range of the bucket):
//
//     dist.all_gather_into_tensor(bucket, mine, group=dp_group)
//
// Compare with the cost of lesson 04: a bucket of weights costs what a bucket of updates costs. After it all ranks of
// the DP group hold the same weights again, as they did before the step. Viewed as matrices, the buckets are what the
// next forward pass uses. The marked element is back at home in `down`, and on rank 1 as well, which has not computed
// it.
//
// The planted bug `not_gathered` leaves it out. Each rank goes on with a few new weights among old ones.
void gather_weights(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const std::vector<Bucket>& buckets = layout.buffers[0].buckets;
  for (int b = 0; b < int(buckets.size()); ++b) {
    const Range own = layout.dp_slice(0, b, rank.place.dp);
    Flat& weights = local.weights[0][b];
    if (rank.bug("not_gathered")) continue;
    // What goes out begins within the bucket where my range does; what comes in is all of the bucket, in rank order.
    rank.dp().all_gather(weights.data() + own.begin - buckets[b].range.begin, own.size(), weights.data());
  }
  show_weights(rank, local, [&](int b) { return buckets[b].range; });
  local.new_weights = unpack_buckets(layout, local.weights, rank.place.tp);
  const ElementAddress marked = marked_element(layout);
  if (marked.in_slice_of(rank.place))
    rank.say(marked_text(local.new_weights.back().matrix, marked.slice_row, marked.slice_col, "my slice of down"));
}

// ## The cost
//
// The shard and the update cost nothing but arithmetic, each element once. Then a rank sends its part of each bucket to
// each of the dp − 1 others. It holds the buckets of weights throughout; beside them, first the slices it has something
// of and what it owns of them, and at the end the weights as matrices. (What is shown of a bucket is a copy, too. On
// many DP ranks a bucket has so much padding that it is more than all matrices.)
Prediction predict(const RankInfo& rank) {
  const Layout layout = plan(rank);
  const Buffer& buffer = layout.buffers[0];
  Prediction prediction;
  for (const Bucket& bucket : buffer.buckets)
    prediction.ledger.add(
        "dp", CollectiveKind::all_gather, ElementType::float32, 1,
        all_gather_traffic(rank.grid.dp(), bucket.range.size() / rank.grid.dp(), ElementType::float32));

  // What I own of a matrix may be little; its slice I have had whole, or not at all. So the peak differs from rank to
  // rank: who owns a little of many matrices holds the most.
  Index slices = 0, owned = 0, all = 0, shown = 0;
  for (const Bucket& bucket : buffer.buckets) shown = std::max(shown, bucket.range.size());
  for (const DistMeta& meta : buffer.parameters) {
    const Index mine = layout.owned_range(meta, rank.place.dp).size();
    all += meta.shape.size();
    owned += mine;
    if (mine > 0) slices += meta.shape.size();
  }
  prediction.peak_elements = buffer.size + std::max({slices + owned, all, shown});
  return prediction;
}

// ## Why gather the weights and not the update?
//
// One could gather the orthogonal elements instead, and let every rank change all weights: as many bytes, and each rank
// would do the arithmetic of all. What is worse, the ranks' weights would never meet again. If one bit went wrong on
// one rank, its weights would be others from then on, and nothing would ever bring them back. As it is, there is one
// owner for every weight, and all others have what it sent.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_08_dp_shard";
  info.title = "DP shard";
  info.fp32_only = true;
  info.question = "who changes which weights, and how do all ranks come to the same new ones?";
  info.bugs = {{"neighbours_share", "a rank takes what the next DP rank owns"},
               {"local_offset", "weights are changed where the update lies in the rank's shard"},
               {"shard_shape", "the update is scaled with the shape of the shard, not of the whole matrix"},
               {"not_gathered", "the new weights stay with their owners"}};
  info.also_try = {"--dp 4", "--tp 1", "--dp 3 --verbose 2"};

  // The layout is that of lesson 03, where its map is.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(plan);
  lesson.say(
      "★ is 416 as a weight; its update, 0.416, stands in for an orthogonal one; the new weight is\n"
      "416 · 0.99 − 0.416 · 0.02 · √8 = 411.8: decay, and lr · 0.2 · √(longer side) · update;\n"
      "a bar: where in the buffer, or in the whole slice\n");
  lesson.step("start from the old weights", start_from_weights);
  lesson.step("and from the orthogonal matrices that I own something of", start_from_matrices);
  lesson.step("DP shard: the elements that I own, nothing travels", shard);
  lesson.step("apply the update to the weights that I own", apply_to_mine);
  lesson.step("all-gather of weights over dp", gather_weights);
  lesson.check("the new weights", &Local::new_weights, new_weights);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. With `--bug shard_shape`, dp 1 changes its weights rightly all the same. Why, and is it right with `--dp 4`?
  //    Hint: how many elements does it own of `up` and of `down`, and what is max(rows, cols)? Answer: by chance: 8 of
  //    each, and 8 is also the longer side of both. With `--dp 4` no rank owns 8 elements of anything, and not one
  //    weight comes out right.
  // 2. How many of the bytes that rank 3 sends are padding? Hint: lesson 03 draws where it lies. Answer: 32 of 96.
  //    At the end of each bucket stand 4 elements of padding, and they belong to the last DP rank.
  // 3. Which ranks gather weights with each other, and why don't all four? Hint: a rank of another TP coordinate has
  //    other rows or columns. Answer: ranks 0 and 2, and ranks 1 and 3: those of one TP coordinate, whose buckets hold
  //    the same weights. The others' weights are other parts of the matrices, and nobody needs both to go on.
  return lesson.answer(
      "a rank takes from each orthogonal matrix the elements that it owns, changes its own weights with them and no "
      "others, and the all-gather of weights gives every rank of the DP group what the owners have computed, so "
      "that all start the next step with the same bits.");
}
