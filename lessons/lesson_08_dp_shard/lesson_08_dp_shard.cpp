// # Lesson 08 · DP shard
//
// A rank holds the orthogonal matrix, or its TP slice of it, and it could now change all of the weights. It does not.
// Of the data-parallel (DP) group every rank changes only the weights that it owns, and then they give each other what
// they have. This lesson is \ref lesson_04_dp_gather run backward, and with it the journey of a matrix ends.
//
// You need to know how a bucket is cut into DP shards (\ref lesson_04_dp_gather) and what TP has left of the matrix
// (\ref lesson_07_tp_shard).

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/cluster/lesson.hpp"
#include "sim/pictures/buffer_map.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/named_slice.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A rank owns an equal run of the bucket: in one place the end of one matrix and the start of the next, in another a
// piece out of the middle. Of a matrix that lies across its run it takes the elements that it owns (the DP shard), and
// the update goes to the weights at the same places. What it did not own it leaves as it was, and the other ranks'
// weights are missing until the *all-gather of weights* brings them:
//
//     dp 0  qqqqqq··················     dp 0  QQQQQQqquuuuuuuuuuuuoooo     dp 0  QQQQQQQQUUUUUUUUUUUUOOOO
//     dp 1  ······qquuuu············     dp 1  qqqqqqQQUUUUuuuuuuuuoooo     dp 1  QQQQQQQQUUUUUUUUUUUUOOOO
//     dp 2  ············uuuuuu······  →  dp 2  qqqqqqqquuuuUUUUUUuuoooo  →  dp 2  QQQQQQQQUUUUUUUUUUUUOOOO
//     dp 3  ··················uuoooo     dp 3  qqqqqqqquuuuuuuuuuUUOOOO     dp 3  QQQQQQQQUUUUUUUUUUUUOOOO
//     what I own of the update           capitals: weights that are new     all weights, new everywhere
//     (a letter is two elements)
//
// Why not let every rank change all weights, and save the gather? Because no rank has all of the update: it
// orthogonalizes only the matrices of which it owns something. That is ZeRO-1's bargain: each rank keeps the
// optimizer's state, and does its work, for what it owns, and pays with one gather of weights a step.

const std::vector<Parameter> kParameters = {
    {"q", {4, 4}, SplitDim::rows}, {"up", {6, 4}, SplitDim::rows}, {"o", {4, 2}, SplitDim::columns}};

// One bucket without padding between matrices: with 4 DP ranks, `up` lies on three of them. With tp 1 TP cuts nothing;
// with `--tp 2` every TP rank has a bucket of this plan for its own slices, of half the size.
//
// A TP size that does not divide a matrix is refused here, before any rank starts.
Layout plan(const Seat& seat) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  return plan_layout(kParameters, seat.grid, options);
}

// What one rank holds in this lesson.
struct Local {
  Buckets weights;                       // [0][0]: the whole bucket, as every DP rank has it
  std::vector<NamedMatrix> orthogonal;   // its TP slices of the orthogonal matrices of which it owns something
  std::vector<Flat> shards;              // what it owns of them
  std::vector<NamedMatrix> new_weights;  // at the end: the bucket as matrices
};

// ## The reference
//
// Weights and orthogonal matrices are random numbers here, from a generator that gives everyone the same for the same
// seed. That the second ones are not really orthogonal makes no difference to anything in this lesson: their elements
// are added to the weights, whatever they are.
Matrix weights_of(const Seat& seat, int p) {
  return random_matrix({seat.seed, 2 * std::uint64_t(p)}, kParameters[p].shape.rows, kParameters[p].shape.cols);
}
Matrix orthogonal_of(const Seat& seat, int p) {
  return random_matrix({seat.seed, 2 * std::uint64_t(p) + 1}, kParameters[p].shape.rows, kParameters[p].shape.cols);
}

// Muon's last line in plain loops, on whole matrices. The weights decay by the factor 1 − lr · wd (decoupled weight
// decay: it takes no part in the gradient), and are then moved by lr · 0.2 · √max(rows, cols) times the orthogonal
// matrix. An element of an orthogonal matrix is the smaller, the larger the matrix; the root makes up for that, so that
// weights of all matrices move alike. rows and cols are those of the whole matrix: this is a law about matrices, and
// neither TP nor DP has a say in it.
//
// Of the result a rank is to have its TP slice. It is rounded exactly as here, operation by operation; that is why the
// ranks can be held to every bit of it.
std::vector<NamedMatrix> new_weights(const Seat& seat) {
  const MuonSettings settings;
  std::vector<NamedMatrix> slices;
  for (int p = 0; p < int(kParameters.size()); ++p) {
    Matrix w = weights_of(seat, p);
    const Matrix orthogonal = orthogonal_of(seat, p);
    const float keep = 1.0f - settings.lr * settings.weight_decay;
    const float scale = settings.lr * settings.rms * std::sqrt(float(std::max(w.rows(), w.cols())));
    for (Index i = 0; i < w.rows(); ++i)
      for (Index j = 0; j < w.cols(); ++j) w(i, j) = w(i, j) * keep - scale * orthogonal(i, j);
    slices.push_back(named_slice(kParameters[p], w, seat.grid.tp(), seat.place.tp));
  }
  return slices;
}

// ## The steps
//
// Start where the journey has come to: with the old weights, all of the bucket, as the forward pass used them, and with
// my TP slices of the orthogonal matrices of which I own at least one element. The others I never had: to orthogonalize
// them was the work of other ranks. A matrix that lies on three ranks was orthogonalized three times.
//
// Memory is counted from the end of this step on; what it takes to set the scene is none of the lesson's.
void start(Rank& rank, Local& local) {
  const Layout layout = plan(rank);

  // What no rank of real training ever does: make all weights whole, to lay this rank's slices of them into a bucket.
  std::vector<Matrix> full;
  std::vector<const Matrix*> pointers;
  for (int p = 0; p < int(kParameters.size()); ++p) full.push_back(weights_of(rank, p));
  for (const Matrix& matrix : full) pointers.push_back(&matrix);
  local.weights = pack_buckets(layout, pointers, rank.place.tp);
  rank.show("weights", local.weights[0][0]).whole();

  for (const DistMeta& meta : layout.buffers[0].parameters) {
    if (layout.owned_range(meta, rank.place.dp).empty()) continue;
    const Matrix whole = orthogonal_of(rank, meta.parameter);
    local.orthogonal.push_back({meta.name, tp_shard(whole, meta.tp_split_dim, rank.grid.tp(), rank.place.tp)});
    rank.show(meta.name + ", orthogonal", local.orthogonal.back().matrix).whole();
  }
  full.clear();
  rank.memory().restart_peak();
}

// The DP shard: take the elements that I own out of each matrix. Nothing travels. A range says which elements of the
// slice, counted row by row, they are; it begins and ends in the middle of a row as it pleases.
//
// Look at rank 1: it owns the end of q and the start of up, and its numbers begin at 12 in the one and at 0 in the
// other.
//
// The planted bug `neighbours_share` takes, and later changes, what the next DP rank owns.
void shard(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const int dp_rank = rank.bug("neighbours_share") ? (rank.place.dp + 1) % rank.grid.dp() : rank.place.dp;
  std::size_t next = 0;
  std::string others;  // what I own nothing of
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const Index first = meta.global_range.begin;
    if (layout.owned_range(meta, rank.place.dp).empty()) {
      others += (others.empty() ? "nothing of " : ", ") + meta.name;
      continue;
    }

    // The slice is cut in memory order, so what I own of it is one run, and the bar shows where in the slice it lies.
    const Range owned = layout.owned_range(meta, dp_rank);
    local.shards.push_back(dp_shard(local.orthogonal[next++].matrix, layout, meta, dp_rank));
    rank.show(meta.name, local.shards.back()).elements({owned.begin - first, owned.end - first}, meta.shape.size());
  }
  if (!others.empty()) rank.say(others);
  local.orthogonal.clear();
}

// Change the weights that I own, and no others. `apply` in src/optim/steps.hpp is Muon's last line on a run of
// elements; what is left to do here is to call it in the right place. An element has three addresses now, and each
// array wants its own: in the slice (above), in the shard (`dp_shard` has dealt with it), and in the bucket, where the
// weights are.
//
// You should see runs that tile the bucket: together they are all of it, and no element is in two of them. So every
// weight is changed by one rank, once.
//
// Two planted bugs. `local_offset` writes where the element lies in my shard, and not where it lies in the bucket.
// `shard_shape` takes √max(rows, cols) of what it has in hand, a run of elements, where the whole matrix is meant.
void apply_to_mine(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const Bucket& bucket = layout.buffers[0].buckets[0];
  const int dp_rank = rank.bug("neighbours_share") ? (rank.place.dp + 1) % rank.grid.dp() : rank.place.dp;
  std::size_t next = 0;
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    if (layout.owned_range(meta, rank.place.dp).empty()) continue;

    // `at` counts in the bucket. This one begins at 0; with more buckets, where each begins has to be taken off.
    const Flat& orthogonal = local.shards[next++];
    Index at = layout.owned_range(meta, dp_rank).begin - bucket.range.begin;
    if (rank.bug("local_offset")) at = layout.local_range(meta, dp_rank).begin;
    Shape shape = meta.full_shape;
    if (rank.bug("shard_shape")) shape = {1, Index(orthogonal.size())};
    apply(local.weights[0][0].data() + at, orthogonal.data(), Index(orthogonal.size()), shape, MuonSettings());
  }
  local.shards.clear();

  // What is shown is the part of the bucket that I own, and what it was made of.
  const Range own = layout.dp_slice(0, 0, rank.place.dp);
  const float* weights = local.weights[0][0].data();
  Shown& shown = rank.show("weights", Flat(weights + own.begin, weights + own.end)).elements(own, bucket.range.size());
  shown.note("new");
  for (const DistMeta& meta : layout.buffers[0].parameters)
    if (!layout.owned_range(meta, rank.place.dp).empty()) shown.from(meta.name);
}

// All-gather the weights: everybody sends the run that it owns, padding included, and receives the others' into place.
// The weights travel as they are kept, in 4 bytes, also where the optimizer computes in bf16.
//
// Compare with the cost of \ref lesson_04_dp_gather: a bucket of weights costs what a bucket of updates costs. After it
// all ranks of the DP group hold the same weights again, as they did before the step.
//
// The planted bug `not_gathered` leaves it out. Each rank goes on with a few new weights among old ones.
void gather_weights(Rank& rank, Local& local) {
  const Layout layout = plan(rank);
  const Range own = layout.dp_slice(0, 0, rank.place.dp);
  Flat& weights = local.weights[0][0];
  if (!rank.bug("not_gathered")) rank.dp().all_gather(weights.data() + own.begin, own.size(), weights.data());
  rank.show("weights", weights).whole();
  local.new_weights = unpack_buckets(layout, local.weights, rank.place.tp);
}

// ## The cost
//
// The shard and the update cost nothing but arithmetic, each element once. Then a rank sends its part of the bucket to
// each of the dp − 1 others. It holds the bucket of weights throughout; beside it, first the slices it has something of
// and what it owns of them, and at the end the weights as matrices.
Prediction predict(const Seat& seat) {
  const Layout layout = plan(seat);
  const Buffer& buffer = layout.buffers[0];
  Prediction prediction;
  prediction.ledger.add("dp", CollectiveKind::all_gather, ElementType::float32, 1,
                        all_gather_traffic(seat.grid.dp(), buffer.size / seat.grid.dp(), ElementType::float32));

  // What I own of a matrix may be little; its slice I have had whole, or not at all. So the peak differs from rank to
  // rank: who owns a little of many matrices holds the most.
  Index slices = 0, owned = 0, all = 0;
  for (const DistMeta& meta : buffer.parameters) {
    const Index mine = layout.owned_range(meta, seat.place.dp).size();
    all += meta.shape.size();
    owned += mine;
    if (mine > 0) slices += meta.shape.size();
  }
  prediction.peak_elements = buffer.size + std::max(slices + owned, all);
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
               {"local_offset", "weights are changed at the place that the update has in the rank's shard"},
               {"shard_shape", "the update is scaled with the shape of the shard, not of the whole matrix"},
               {"not_gathered", "the new weights stay with their owners"}};
  info.also_try = {"--dp 2", "--tp 2", "--dp 3 --verbose 2"};

  // The map of the bucket first: the letters a, b and c are q, up and o.
  Lesson<Local> lesson(info, Grid().dp(4), argc, argv);
  lesson.require(plan);
  lesson.say(buffer_map_text(plan(lesson.seat())));
  lesson.step("start from the old weights and the matrices that I own something of", start);
  lesson.step("DP shard: the elements that I own, nothing travels", shard);
  lesson.step("apply the update to the weights that I own", apply_to_mine);
  lesson.step("all-gather of weights over dp", gather_weights);
  lesson.check("the new weights", &Local::new_weights, new_weights);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. With `--bug local_offset` a quarter of the weights is right all the same. Which, and why? Hint: for one DP
  //    rank the shard begins where the bucket begins.
  // 2. With which dp does the bucket need padding? What is in it before the gather, and what after? Hint: 48
  //    elements.
  // 3. Draw the picture of "The idea" for `--tp 2`. Which ranks gather with each other? Hint: a rank of another TP
  //    coordinate has other columns.
  return lesson.answer(
      "a rank takes from each orthogonal matrix the elements that it owns, changes its own weights with them and no "
      "others, and the all-gather of weights gives every rank of the DP group what the owners have computed, so "
      "that all start the next step with the same bits.");
}
