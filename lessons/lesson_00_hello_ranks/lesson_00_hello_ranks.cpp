// # Lesson 00 · Hello, ranks
//
// A training run on sixty-four GPUs is sixty-four copies of one program. Each copy is a *rank*, all of them together
// are the *world*, and nothing but a number tells one from the other. This lesson starts a small world, lets every rank
// say who it is, and sends the first messages.
//
// You need to know a little C++, and nothing of distributed computing. The lessons go on with lesson 01.

#include <fmt/format.h>

#include <utility>

#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Each rank is a process of the operating system with an *address space* of its own: the same variable of the same
// program exists four times, and what one rank writes into it no other rank can see. What one wants another to know, it
// has to send.
//
//      rank 0            rank 1            rank 2            rank 3         the same line of the program,
//     ┌─────────┐       ┌─────────┐       ┌─────────┐       ┌─────────┐     four boards
//     │ 0 · · · │       │ · 1 · · │       │ · · 2 · │       │ · · · 3 │
//     └─────────┘       └─────────┘       └─────────┘       └─────────┘
//          └──── "0" ───→    └──── "1" ───→    └──── "2" ───→    └──── "3" ───→ back to rank 0
//
// The first line of the output says what was started: "4 processes over Gloo" are four ranks, and *Gloo* is the library
// that carries their messages, the same that PyTorch uses between CPUs. "fp32" are the numbers that they send, 4 bytes
// each. With `--world fibers` the ranks share one process and take turns: who has to wait for a message hands the turn
// on. It is the world for debuggers and notebooks. They could see each other's variables then, but no lesson ever
// looks, so nothing else changes.
//
// ## The rendezvous
//
// To send anything, a rank must know where the others listen, and these addresses exist only once everybody has
// started. So before the first message there is a *rendezvous*: a place that all ranks know beforehand, where each
// leaves its own address and its rank, and waits until it finds the addresses of all others. On a cluster it is a small
// server on the first machine, whose address every rank is given at the start (PyTorch calls it MASTER_ADDR and
// MASTER_PORT). Here it is a page of memory that the parent process laid out before it forked the ranks; the
// connections themselves are real TCP sockets on this machine.
//
// A rendezvous has to know the size of the world; otherwise nobody could tell whether all ranks have come. And if one
// does not come, it can only wait: try `--fault never-connect:2 --timeout 2`. The run ends after two seconds, with
// exit code 3 and a sentence that says which rank the others waited for.

// What one rank holds: its own copy of this, at an address that means nothing to the others.
struct Local {
  float number = -1;  // what it takes for its rank
  Flat heard;         // what its left neighbour told it: one number
  Flat board;         // a place for the number of each rank of the world; −1 while it knows nothing
};

// "0 · · ·": the board as text; of a world with many ranks, its two ends.
std::string board_text(const Flat& board) {
  std::string text;
  for (const float number : board) text += (text.empty() ? "" : " ") + (number < 0 ? "·" : fmt::format("{}", number));
  return visible_name(text, 48);  // in at most 48 characters
}

// A message needs two, and a grid of ranks is the next lesson: other worlds are refused before any rank is started.
void plan(const RankInfo& rank) {
  const Grid& grid = rank.grid;
  if (grid.tp() > 1 || grid.pp() > 1)
    throw UsageError(fmt::format("--{} {} would cut the world into groups, which is for lesson_01_grid; try --dp {}",
                                 grid.tp() > 1 ? "tp" : "pp", grid.tp() > 1 ? grid.tp() : grid.pp(), grid.size()));
  if (grid.dp() < 2) throw UsageError("--dp 1 is a world of one rank, which has nobody to talk to; try --dp 2 or more");
}

// ## The reference
//
// What every rank should know at the end, in plain loops, without a message. Each lesson has such a *reference*. The
// parent process computes it, which has started the ranks and is not a rank. The ranks send it what they hold, and it
// compares byte by byte: the lines that begin with `check`. If one bit differs, the program says where, and exits with
// code 1.
//
// `RankInfo` is what a rank knows without asking: the size of the world and its own number in it.
Matrix left_neighbour(const RankInfo& rank) {
  Matrix number(1, 1);
  number(0, 0) = static_cast<float>(rank.place.rank == 0 ? rank.grid.size() - 1 : rank.place.rank - 1);
  return number;
}
Matrix all_numbers(const RankInfo& info) {
  Matrix numbers(1, info.grid.size());
  for (int rank = 0; rank < info.grid.size(); ++rank) numbers(0, rank) = static_cast<float>(rank);
  return numbers;
}

// ## The steps
//
// Write my number on my board. All ranks run this line, and yet each board holds one number only: there are as many
// boards as ranks. A rank learns its number from whoever started it. On a cluster that is an environment variable, and
// where it is not set, every copy of the program takes itself for rank 0. `--bug all_are_rank_0` plants this mistake,
// so that you can see what comes of it. Each lesson has a few such *planted bugs*, and its checks catch all of them.
//
// (The lines that are printed say `dp 2` beside `rank 2`. In this lesson the world is one group, called dp; the next
// lesson says why.)
void who_am_i(Rank& rank, Local& local) {
  local.heard = Flat(1, -1.0f);
  local.number = static_cast<float>(rank.bug("all_are_rank_0") ? 0 : rank.rank());
  local.board = Flat(static_cast<std::size_t>(rank.grid.size()), -1.0f);
  local.board[static_cast<std::size_t>(local.number)] = local.number;
  rank.say(fmt::format("I am rank {} of {}   my board  {}", local.number, rank.grid.size(), board_text(local.board)));
}

// Tell my right neighbour my number, and hear the number of the left one. Every receive must meet a send of the same
// size. Who sends first matters: if all ranks sent first and a send waited for its receiver, all would wait forever.
// Therefore even ranks send first and odd ranks receive first.
//
// The planted bug `wrong_neighbour` goes round the other way. The planted bug `own_memory` looks for the neighbour's
// number where the neighbour wrote it, on the board; but that was another board.
void tell_my_neighbour(Rank& rank, Local& local) {
  const int world = rank.grid.size();
  int right = (rank.rank() + 1) % world;
  int left = (rank.rank() + world - 1) % world;
  if (rank.bug("wrong_neighbour")) std::swap(left, right);

  if (rank.rank() % 2 == 0) rank.dp().send(&local.number, 1, right);
  rank.dp().recv(local.heard.data(), 1, left);
  if (rank.rank() % 2 == 1) rank.dp().send(&local.number, 1, right);
  if (rank.bug("own_memory")) local.heard[0] = local.board[static_cast<std::size_t>(left)];
  rank.say(fmt::format("told rank {}, and heard \"{}\" from rank {}", right, local.heard[0], left));
}

// Gather everybody's number. A call that all ranks of a group make together is a *collective*; this one, the
// all-gather, is the collective that most of these lessons are about. After it the boards are equal, though they are
// still four.
void gather_all_numbers(Rank& rank, Local& local) {
  rank.dp().all_gather(&local.number, 1, local.board.data());
  rank.say(fmt::format("my board  {}", board_text(local.board)));
}

// ## The cost
//
// The neighbours' round is one message out of every rank and one into it, 4 bytes each. The all-gather sends the number
// to each of the others. All of this is predicted before it is sent, and counted as it is handed to the sockets. On
// Linux the kernel is asked as well: it has counted every byte of the connections, and so also the headers, a preamble
// of Gloo's and a few bytes of ours before each message, which say what is coming and how long it is. The last line of
// the table is memory: the most elements (numbers, of any size) that a rank's arrays held at a time.
Prediction predict(const RankInfo& rank) {
  const int world = rank.grid.size();
  Prediction prediction;
  prediction.ledger.add("dp", CollectiveKind::send, ElementType::float32, 1, send_traffic(1, ElementType::float32));
  prediction.ledger.add("dp", CollectiveKind::recv, ElementType::float32, 1, recv_traffic(1, ElementType::float32));
  prediction.ledger.add("dp", CollectiveKind::all_gather, ElementType::float32, 1,
                        all_gather_traffic(world, 1, ElementType::float32));
  prediction.peak_elements = world + 1;  // the board, and what was heard
  return prediction;
}

// ## Kill one and see
//
// A world lives no longer than any of its ranks. `--fault kill:2:1` kills rank 2 at the start of step 1, as a
// machine that loses power would. The others would wait for its messages forever, so the process that started them
// watches over them: it ends the run, says "rank 2 was killed by signal 9 (SIGKILL) in step 'who am I'" on standard
// error, and exits with code 3. A real training run ends the same way, and starts again from its last checkpoint.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_00_hello_ranks";
  info.title = "Hello, ranks";
  info.fp32_only = true;
  info.question = "what is a rank, and how does it learn what another one knows?";
  info.bugs = {{"all_are_rank_0", "every rank takes itself for rank 0"},
               {"wrong_neighbour", "numbers go round to the left instead of to the right"},
               {"own_memory", "the neighbour's number is read from the rank's own memory"}};
  info.also_try = {"--dp 8", "--fault kill:2:1", "--fault never-connect:2 --timeout 2", "--world fibers"};

  Lesson<Local> lesson(info, Grid().dp(4), argc, argv);
  lesson.require(plan);
  lesson.say(
      "dp         all ranks are one group, which has this name (lesson 01)\n"
      "board      a place for each rank's number, in a rank's own memory; · is one that it doesn't know\n"
      "reference  a program in plain loops, without ranks: what they hold is checked against it\n"
      "predicted  worked out before the run, and counted in it; peak: what is held at the same time\n");
  lesson.step("who am I", who_am_i);
  lesson.step("tell my right neighbour: send and recv", tell_my_neighbour);
  lesson.step("everybody's number: all_gather", gather_all_numbers);
  lesson.check("what my left neighbour told me", &Local::heard, left_neighbour);
  lesson.check("everybody's number", &Local::board, all_numbers);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. How many messages does the all-gather take in all with 4 ranks, and how many with 64? Predict, then run `--dp
  //    64` and multiply what a rank sends. Hint: everybody tells everybody else. Answer: n · (n − 1): 12 with 4 ranks
  //    and 4,032 with 64. The table has 63 messages for each of the 64 ranks.
  // 2. Numbers could also travel round the ring until everybody knows all of them. Write that as a step, with send and
  //    recv. How many messages does a rank send now? Hint: pass on what you heard last. Answer: still n − 1, and as
  //    many bytes, but all of them to one neighbour and one after the other: what rank 0 knows needs n − 1 rounds to
  //    reach rank n − 1. The boards come out right and the check of the bytes fails, because `predict` still speaks of
  //    an all-gather: give it n − 1 sends and receives more.
  // 3. Let all ranks receive first and send afterwards. What happens, and how long does it take with `--timeout 2`?
  //    Hint: who could be the first to send? Answer: nobody ever sends. This is a *deadlock*: after two seconds the run
  //    ends with exit code 3 and says that rank 0 waits for rank 3, rank 3 for rank 2, rank 2 for rank 1, and rank 1
  //    for rank 0.
  return lesson.answer(
      "a rank is one of many copies of the same program, with memory of its own and a number that tells it apart; "
      "it learns what another rank knows only by a message, which somebody has to send and somebody to receive, "
      "and before the first message all ranks meet once, at the rendezvous, to learn where the others are.");
}
