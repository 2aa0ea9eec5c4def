// # Lesson 06 · Newton–Schulz
//
// Here is what all the gathering was for. Muon does not take the update as it comes. It replaces it by the nearest
// matrix whose rows are orthogonal to each other and of length 1, and it does so with nothing but matrix products.
//
// You need to know how a rank came by the whole matrix (lesson 05), and what a singular value is.

#include <fmt/format.h>

#include <cmath>

#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/slicing.hpp"
#include "src/layout/small_layer.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Every matrix is X = U Σ Vᵀ: it takes direction v₀ to σ₀ u₀, direction v₁ to σ₁ u₁, and so on; the v are at right
// angles to each other, and so are the u. Where a few of the singular values σ are large and the others small, an
// update changes the weights along a few directions and hardly along the others. To *orthogonalize* X is to set every σ
// to 1 and keep the directions: U Vᵀ. Then all directions learn alike.
//
// No decomposition is needed. X Xᵀ X has the same U and V as X, with σ³ for σ, so a polynomial of odd powers in X works
// on every singular value by itself. *Newton–Schulz* is the iteration of one that drives all of them to 1. Muon's is a
// *quintic*, a σ + b σ³ + c σ⁵ with a = 3.4445, b = −4.7750 and c = 2.0315 (Keller Jordan, 2024). Its a is so large
// that a small σ more than triples in each of five steps. The price is that they do not arrive at 1 but stay about it,
// between 0.68 and 1.21 (the quintic's own minimum and maximum), which is near enough for an update.
//
//     X ← X / ‖X‖                 so that no σ is above 1, where the polynomial would run away
//     five times:
//       A = X Xᵀ                  m × m, symmetric: σ²
//       B = b A + c A A           m × m, symmetric: b σ² + c σ⁴
//       X ← a X + B X             m × n:            a σ + b σ³ + c σ⁵
//
// (‖X‖ is the root of the sum of the squares of all elements. It is also the root of the sum of all σ², and so at least
// the largest σ.) A matrix of more rows than columns is transposed before and after, so that m is the smaller of the
// two. `src/numerics/newton_schulz_eigen.cpp` writes these three lines in Eigen's words, and `--products chain` takes
// products of our own, whose bits are the same on every processor.
//
// And where does it happen? On every rank of the TP group, on the whole matrix, each for itself:
//
//     tp 0  ███···                 tp 0  ██████                     tp 0  ██████
//           ███···   → TP gather →       ██████   → Newton–Schulz →       ██████   the same bits,
//     tp 1  ···███                 tp 1  ██████                     tp 1  ██████   and nothing is sent
//           ···███                       ██████                           ██████

// We take `down` of the small layer ([small_layer]), 3 × 8, which TP cuts by columns.
const Parameter kParameter = small_layer()[3];
const Shape kShape = kParameter.shape;  // m × n

// What one rank holds in this lesson.
struct Local {
  Matrix slice;       // rows / tp × cols
  Matrix whole;       // rows × cols, after the TP gather
  Matrix orthogonal;  // rows × cols
  Matrix compared;    // rows × cols, with the formula's value wherever it is near enough
};

// A layout in which TP does not divide the columns is refused before any rank starts.
Layout plan(const RankInfo& rank) { return plan_layout({kParameter}, rank.grid); }

// ## The reference
//
// We want an update of which we know everything: its directions and its singular values. For the three directions u in
// the space of rows, take the columns of a mirror, 1 on the diagonal and −2 beside it: each has the length 3, and any
// two are orthogonal (1·(−2) + (−2)·1 + (−2)·(−2) = 0). For the directions v, let v(k, j) = (−1)^popcount(k & j), plus
// or minus 1: each has the length √8, and any two are orthogonal, too (Sylvester, 1867).
int u(Index i, Index k) { return i == k ? 1 : -2; }
int v(Index k, Index j) {
  int sign = 1;
  for (Index common = k & j; common != 0; common /= 2)
    if (common % 2 == 1) sign = -sign;
  return sign;
}

// In plain loops the sum of σ u vᵀ, where u and v are divided by their lengths. As we choose the σ ourselves, we know
// what each should become, without a program that finds singular values.
const double kLengths = 3 * std::sqrt(8.0);  // of a u times that of a v
Matrix with_singular_values(const std::vector<double>& sigma) {
  Matrix x(kShape.rows, kShape.cols);
  for (Index i = 0; i < kShape.rows; ++i)
    for (Index j = 0; j < kShape.cols; ++j) {
      double sum = 0;
      for (Index k = 0; k < kShape.rows; ++k) sum += sigma[k] * u(i, k) * v(k, j);
      x(i, j) = float(sum / kLengths);
    }
  return x;
}

// The update that is to be orthogonalized: the largest σ is 64 times the smallest. Its elements are whole multiples of
// 1/64, and exact in bfloat16 too.
std::vector<double> far_apart() { return {kLengths, kLengths / 8, kLengths / 64}; }

// The serial program: Newton–Schulz on the whole matrix, with no rank in sight. It is the function that the ranks call
// as well, so what is compared is whether sharing the matrix out and bringing it together has changed a single bit.
Matrix orthogonal_reference(const RankInfo& rank) {
  NewtonSchulzSettings settings;
  settings.precision = rank.precision;
  settings.products = rank.products;
  return newton_schulz(with_singular_values(far_apart()), settings);
}

// And if that function itself were wrong? Then ranks and reference would agree on it. So here is the definition,
// without one matrix product: the quintic, five times, on every singular value, in double precision.
Matrix formula(const RankInfo&) {
  std::vector<double> sigma = far_apart();
  double squares = 0;
  for (const double s : sigma) squares += s * s;  // the sum of all σ² is ‖X‖²
  for (double& s : sigma) {
    s /= std::sqrt(squares);
    for (int step = 0; step < 5; ++step) s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
  }
  return with_singular_values(sigma);
}

// ## The steps
//
// Cut my slice out of the matrix, and gather the whole again, as in lesson 05. From here on every rank of the TP group
// holds all of it. The marked element is in row 1, column 6. It was 416 as long as we wanted to see where it goes; in
// this update it is another number.
void start(Rank& rank, Local& local) {
  const Matrix whole = with_singular_values(far_apart());
  local.slice = tp_slice(whole, kParameter.tp_split_dim, rank.grid.tp(), rank.place.tp);
  rank.show("down", local.slice).columns(tp_range(kParameter, rank.grid.tp(), rank.place.tp), kShape.cols);
}

// The marked element of a whole matrix.
void say_marked(Rank& rank, const Matrix& whole) {
  const ElementAddress marked = marked_element(plan(rank));
  rank.say(marked_text(whole, marked.row, marked.col, "the whole matrix"));
}

void gather(Rank& rank, Local& local) {
  local.whole = tp_gather(rank.tp(), local.slice, kParameter.tp_split_dim, rank.precision);
  rank.show("down", local.whole).whole();
  say_marked(rank, local.whole);
}

// Orthogonalize the whole matrix. Every rank of the TP group does the same work, and gets the same bits. The line of
// the step has no "sent": nothing travels. You should see the marked element change, and change alike on both ranks. In
// PyTorch, a step of the iteration is
//
//     A = X @ X.T;  B = b * A + c * A @ A;  X = a * X + B @ X
//
// Four planted bugs. `block_wise` does what one would get without the gather: every slice is orthogonalized by itself.
// `four_steps` stops early. `cubic` uses the textbook's coefficients 1.5, −0.5 and 0, which leave a small σ small for
// long. `one_rank_in_bf16` has another precision on one rank: a good result, but not the one that the others have.
void orthogonalize_whole(Rank& rank, Local& local) {
  MuonSettings settings = muon_settings(rank.precision, rank.threads, rank.products);
  if (rank.bug("four_steps")) settings.newton_schulz.steps = 4;
  if (rank.bug("cubic")) settings.newton_schulz.quintic = {1.5f, -0.5f, 0.0f};
  if (rank.bug("one_rank_in_bf16") && rank.place.tp == 0) settings.newton_schulz.precision = Precision::bf16;

  if (rank.bug("block_wise")) {
    // The slices of all ranks side by side, each orthogonal in itself: what the others would have made.
    const int tp = rank.grid.tp();
    Flat blocks;
    for (int t = 0; t < tp; ++t) {
      const Matrix block = orthogonalize(tp_slice(local.whole, SplitDim::columns, tp, t), settings, "down");
      blocks.insert(blocks.end(), block.flat().begin(), block.flat().end());
    }
    local.orthogonal = join_slices(blocks, {kShape.rows, kShape.cols / tp}, SplitDim::columns, tp);
  } else {
    local.orthogonal = orthogonalize(local.whole, settings, "down");
  }
  local.whole = Matrix();  // done with
  rank.show("down, orthogonalized", local.orthogonal).whole();
  say_marked(rank, local.orthogonal);
}

// Look at every singular value after every step: σ number k is uₖᵀ X vₖ. The reference prints this; no rank does.
//
// It starts as the matrix divided by its norm. Read a line from left to right: σ₀ swings about 1 from the first step
// on, σ₁ from the second, and σ₂, 64 times smaller than σ₀, is more than tripled in each step until it has caught up.
// In bf16 they end elsewhere, and about 1 all the same. That is why Muon can afford bf16 here.
std::string table_of_singular_values() {
  const char* const sigmas[] = {"σ₀ ", "σ₁ ", "σ₂ "};
  std::vector<std::string> lines(7, "        ");
  lines[0] += "         start  step 1  step 2  step 3  step 4  step 5";
  std::size_t line = 1;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (Index k = 0; k < kShape.rows; ++k) lines[line + k] += precision_name(precision) + std::string(" ") + sigmas[k];

    // newton_schulz calls this with X before the first step (0) and after each.
    const auto add_column = [&](int, const Matrix& x) {
      for (Index k = 0; k < kShape.rows; ++k) {
        double sigma = 0;
        for (Index at = 0; at < x.size(); ++at)
          sigma += u(at / kShape.cols, k) * double(x.flat()[at]) * v(k, at % kShape.cols);
        // Three digits, so that the table is the same on every processor.
        lines[line + k] += fmt::format("   {:5.3f}", sigma / kLengths);
      }
    };
    NewtonSchulzSettings settings;
    settings.precision = precision;
    newton_schulz(with_singular_values(far_apart()), settings, "down", add_column);
    line += kShape.rows;
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

// Compare with the formula. Bits can't be asked for here: doubles and floats round differently. An error of one
// rounding, 2⁻²⁴ in float32, that is made at the start can grow by a = 3.4445 in each of five steps, which is 0.00003
// in the end. In bfloat16 that same bound would be 0.9 and say nothing; so there we ask for 0.03, almost three times
// what we saw. What is as near as that counts as equal.
void compare_with_formula(Rank& rank, Local& local) {
  const double tolerance = rank.precision == Precision::fp32 ? 0.00003 : 0.03;
  const Matrix wanted = formula(rank);
  local.compared = local.orthogonal;
  Index near = 0;
  for (Index at = 0; at < wanted.size(); ++at)
    if (std::fabs(local.orthogonal.flat()[at] - wanted.flat()[at]) < tolerance) {
      local.compared.flat()[at] = wanted.flat()[at];
      ++near;
    }
  rank.say(fmt::format("{} of {} elements are within {:.5f} of it", near, wanted.size(), tolerance));
}

// ## The cost
//
// Only the TP gather sends anything. At its peak a rank holds its slice and the whole matrix, and Newton–Schulz needs
// room for X, for the X that comes out of the step (both m × n), for A and for B (both m × m); in bf16 also for c A,
// rounded. With tp 1 nothing is sent at all: the slice is the whole.
Prediction predict(const RankInfo& rank) {
  const int tp = rank.grid.tp();
  const bool bf16 = rank.precision == Precision::bf16;
  const ElementType type = bf16 ? ElementType::bfloat16 : ElementType::float32;
  Prediction prediction;
  if (tp > 1)
    prediction.ledger.add("tp", CollectiveKind::all_gather, type, 1, all_gather_traffic(tp, kShape.size() / tp, type));
  const Index square = kShape.rows * kShape.rows;
  prediction.peak_elements = kShape.size() / tp + 3 * kShape.size() + (bf16 ? 3 : 2) * square;
  return prediction;
}

// The larger cost is arithmetic, and it does not shrink with the number of ranks. A step takes 2 m²n operations for A,
// 2 m³ for B and 2 m²n for B X. A and B are symmetric, so it is enough to compute one triangle of each and mirror it:
// about half of the first two. (The program does it tile by tile, so that a large matrix comes near to this and our
// small one does not. In bf16 it computes all of B: rounding c A leaves its product with A a little asymmetric.)
//
// A long matrix can do with less. A step is X ← (a + B) X with B = b A + c A A, so A itself becomes (a + B) A (a + B):
// small matrices alone, and X is needed only where the iteration begins and where it ends. That is *Gram Newton–Schulz*
// (Dao-AILab; A is the Gram matrix of X's rows). In exact numbers it is the same. In floats, an A that is carried on
// drifts away from X Xᵀ: on a 128 × 512 with σ from 1 to 1/1000, by the polynomials of its class, bfloat16 is off by
// 100 times the result. So it begins anew after two steps, with X multiplied out and A = X Xᵀ. Then it is off by a
// third, and the formula above by a twelfth; in float32 by 0.00007, and by 0.00001. It is another recipe, then, not a
// faster way to the same bits: `./lesson_09_full_step --recipe gram`.
//
// The last lines before `try` are for matrices of real models, in GFLOP, 10⁹ additions and multiplications: what the
// formula says, what is left of it with triangles, and what all ranks of a TP group do together without them.
std::string operations(Index m, Index n, int tp, bool gram) {
  NewtonSchulzSettings settings;
  settings.gram = gram;
  const double plain = newton_schulz_flops(m, n, settings) / 1e9;
  const Index long_pair = m * (m + 1) * n + 2 * m * m * n;  // half of X Xᵀ, and a product with X
  const Index halves = m * m * (m + 1);                     // a symmetric product of m × m
  const double triangles = 1e-9 * double(gram ? 2 * long_pair + 14 * halves : 5 * (long_pair + halves));
  return fmt::format("        {:<20} {:11.1f} GFLOP {:14.1f} GFLOP, {:2.0f} % less {:15.1f} GFLOP",
                     fmt::format("{} × {}{}", m, n, gram ? ", by gram" : ""), plain, triangles,
                     100 * (1 - triangles / plain), tp * plain);
}

// ## Why the whole matrix, and why on every rank?
//
// Two rows are orthogonal when their products, summed over *all* columns, come to zero. A rank that has half of the
// columns can make its half rows orthogonal, but cannot know what the other half adds: Newton–Schulz of the halves is
// not the half of Newton–Schulz. Try `--bug block_wise`. (Some optimizers do it all the same, to save the gather. It is
// then another update, not a faster way to this.)
//
// And the TP ranks could share the products out, but a product needs all of the one before, so its parts would have to
// be gathered again and again on the way through 15 of them. Doing all of it on every rank costs tp times the
// arithmetic and no message; and as every rank does the same operations in the same order on the same bits, all of them
// come to the same bits. The next lesson lives on that.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_06_newton_schulz";
  info.title = "Newton–Schulz";
  info.question = "what does Newton–Schulz do to a matrix, and why does every rank do all of it?";
  info.bugs = {{"block_wise", "every TP slice is orthogonalized by itself"},
               {"four_steps", "the iteration stops one step too early"},
               {"cubic", "the textbook's coefficients, which need many more steps for a small singular value"},
               {"one_rank_in_bf16", "rank tp 0 computes in a precision of its own"}};
  info.also_try = {"--tp 4", "--precision bf16", "--threads 2"};

  Lesson<Local> lesson(info, Grid().tp(2), argc, argv);
  lesson.require(plan);
  lesson.say("a bar: where in the whole matrix; ★ is not 416 here: an update whose singular values are known\n");
  lesson.step("start from my TP slice", start);
  lesson.step("TP gather: all_gather over tp", gather);
  lesson.step("Newton–Schulz on the whole matrix, on every rank: nothing travels", orthogonalize_whole);
  // The reference shows what happened inside of the step before, in either precision, whatever the ranks compute in.
  lesson.say("\nseen    the singular values σ after every step of the iteration, as the reference has them");
  lesson.say(table_of_singular_values());
  lesson.step("compare with the formula in double: σ ← 3.4445 σ − 4.7750 σ³ + 2.0315 σ⁵, five times",
              compare_with_formula);
  lesson.check("down, orthogonalized", &Local::orthogonal, orthogonal_reference);
  lesson.check("near the formula in double", &Local::compared, formula);
  lesson.cost(predict);
  lesson.say("flops   five steps on             all products      symmetric ones by half      on all TP ranks");
  lesson.say(operations(1024, 4096, lesson.rank_info().grid.tp(), false));
  lesson.say(operations(1024, 4096, lesson.rank_info().grid.tp(), true));
  lesson.say(operations(4096, 4096, lesson.rank_info().grid.tp(), false));

  // ## Exercises
  //
  // 1. How many steps does it take until a σ that starts at 1/1000 is above 0.5? Estimate, then compute it. Hint:
  //    while σ is small, σ³ is nothing. Answer: six. 3.4445⁵ is 485 and brings it to at most 0.485, in truth to 0.471
  //    because σ³ is not quite nothing in the end; the sixth step makes 1.17 of that.
  // 2. What does the quintic make of σ = 2, and of what comes out of that? Hint: this is what the division by the
  //    norm is for. (The largest σ would do as well, and is smaller, but costs more to find.) Answer: 33.7, and of that
  //    88 million. Above about 1.27 each step makes σ larger than the one before, without end.
  // 3. Suppose the TP ranks share out each product by rows of its result. How many elements would a rank have to
  //    receive in one step, against none now? Hint: A and B are m × m, X is m × n. Answer: the others' rows of A before
  //    it can make its rows of B, and the others' rows of X before the next A: (1 − 1/tp) · (m² + m·n) elements. For
  //    1024 × 4096 on 2 ranks that is 2.6 million per step, in two gathers that all of them wait for.
  return lesson.answer(
      "Newton–Schulz brings every singular value near 1 and keeps the directions; rows are orthogonal over their whole "
      "length or not at all, so it needs the whole matrix; and every rank of a TP group does all of it because that "
      "costs no message and gives all of them the same bits.");
}
