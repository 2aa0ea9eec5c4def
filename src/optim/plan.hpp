#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/comm/call.hpp"
#include "src/comm/ledger.hpp"
#include "src/layout/buffer.hpp"

namespace muonwalk {

/// The name of a phase of a step, "DP gather": a literal, or a text that lives as long as the program.
using Phase = std::string_view;

/// A phase of a step begins: work on this rank alone, or what prepares the calls that follow.
struct Work {
  Phase phase;         ///< which one
  int parameter = -1;  ///< DistMeta::parameter of the matrix that it is about; −1: about a bucket
  Shape shape;         ///< The shape of what is worked on: a matrix, or a range of a bucket as one row.
  double flops = 0;    ///< floating point operations; a multiply-add is two

  /// All members are equal.
  friend bool operator==(const Work& a, const Work& b) {
    return a.phase == b.phase && a.parameter == b.parameter && a.shape == b.shape && a.flops == b.flops;
  }
};

/// Elements that this rank holds from here on, or, below 0, holds no more. An element counts as one whatever its type,
/// as a MemoryMeter counts it.
struct Memory {
  Index elements = 0;                       ///< how many
  std::string_view what;                    ///< What they are: "momentum"; a text that lives as long as the program.
  ElementType type = ElementType::float32;  ///< The type of each, which says how many bytes they take.

  /// Their bytes; below 0 where they are given back.
  Index bytes() const { return elements * element_size(type); }
  /// All members are equal.
  friend bool operator==(const Memory& a, const Memory& b) {
    return a.elements == b.elements && a.what == b.what && a.type == b.type;
  }
};

/// One thing that a rank does in a step.
using Operation = std::variant<Work, Call, Memory>;

/// What one rank does in one step, in order; worked out from the layout alone, so it can be made for ranks that
/// nobody has. It begins with what the step is handed and what the rank keeps; the rest is what the step does. Whatever
/// is predicted of a step is a sum over this list.
struct Plan {
  Grid grid;                          ///< The grid of all ranks.
  Place place;                        ///< The rank whose plan it is.
  std::vector<Operation> operations;  ///< All that it does, in the order in which it happens.

  /// Appends an operation; what is given back was taken before. In an all_to_all of a plan no rank has a piece for
  /// itself, so that its elements in are those that go to others, and those out come from them.
  /// @{
  void work(Phase phase, Shape shape, double flops = 0, const DistMeta* parameter = nullptr);
  void call(const std::string& group, CollectiveKind kind, ElementType type, Index in, Index out);
  void take(Index elements, std::string_view what, ElementType type = ElementType::float32) {
    operations.push_back(Memory{elements, what, type});
  }
  void give_back(Index elements, std::string_view what, ElementType type = ElementType::float32) {
    operations.push_back(Memory{-elements, what, type});
  }
  /// @}
};

/// What a call of a plan makes the plan's rank send and receive, by formula, without headers. Throws
/// std::invalid_argument for a group that no grid has, or that the rank is not in.
Traffic traffic_of(const Call& call, const Plan& plan);

/// A call of a plan, the phase in which it is made, and what this rank sends and receives in it.
struct PlannedCall {
  Phase phase;      ///< empty before the first one
  Call call;        ///< The call, as the plan lists it.
  Traffic traffic;  ///< without headers
};

/// The calls of a plan, in order.
std::vector<PlannedCall> calls_of(const Plan& plan);

/// What this rank sends and receives: a line for each group, kind and element type, in the order of their first calls.
Ledger ledger_of(const Plan& plan);

/// The most elements that this rank holds at one time, and the most bytes.
/// @{
Index peak_elements(const Plan& plan);
Index peak_bytes(const Plan& plan);
/// @}

/// Floating point operations of all phases, or of one of them.
/// @{
double flops(const Plan& plan);
double flops(const Plan& plan, Phase phase);
/// @}

/// How often a phase comes: of phases::orthogonalize, the calls of Newton–Schulz.
Index count(const Plan& plan, Phase phase);

/// Ranks that do the same: their plans differ at most in which matrices of the same shape they are about.
struct PlanKind {
  Plan plan;               ///< The plan of the first of them.
  std::vector<int> ranks;  ///< all of them, in order
};

/// The plan of every rank of a grid, each kind once, in the order of their first ranks. `stages` are the layouts of the
/// pipeline stages, in order, and `plan` says what the rank at a place of one does.
std::vector<PlanKind> plan_kinds(const std::vector<Layout>& stages,
                                 const std::function<Plan(const Layout&, const Place&)>& plan);

/// The floating point operations of one phase on all ranks.
double flops(const std::vector<PlanKind>& kinds, Phase phase);

/// A plan as a table of at most 100 columns, a line per operation: its number, what it is, the matrix, the shape or the
/// elements in and out, and FLOPs, bytes sent, or elements held from there on. Where the same operations come again and
/// again, only for another matrix, they stand once, with a line that says how often and up to which matrix. `layout` is
/// the one that was planned for, and knows the names of the matrices.
std::string plan_text(const Plan& plan, const Layout& layout);

/// All kinds, each with a heading: its ranks, and what the folds say of it.
std::string plan_text(const std::vector<PlanKind>& kinds, const std::vector<Layout>& stages);

/// What a rank holds in a phase of a step, in bytes: matrices and flat buffers, as a MemoryMeter counts them.
struct PhaseMemory {
  std::string phase;   ///< "DP gather"
  int parameter = -1;  ///< DistMeta::parameter of the matrix that it is about; −1: about a bucket
  Index held = 0;      ///< What is held as the phase begins.
  Index most = 0;      ///< at one time, until the next phase begins

  /// All members are equal.
  friend bool operator==(const PhaseMemory& a, const PhaseMemory& b) {
    return a.phase == b.phase && a.parameter == b.parameter && a.held == b.held && a.most == b.most;
  }
};

/// What the plan's rank holds in each phase, in order.
std::vector<PhaseMemory> phase_memory(const Plan& plan);

/// What it holds between two steps: all that is taken before the first phase, a line per name and type, in the order in
/// which they come first.
std::vector<Memory> held_between_steps(const Plan& plan);

/// The most bytes that it holds at one time in the step besides those.
Index transient_bytes(const Plan& plan);

/// Counts, on the rank itself, what phase_memory predicts: asks the rank's meter whenever a phase begins.
class PhaseMeter {
 public:
  /// Of nobody, until another one is assigned.
  PhaseMeter() = default;
  /// `meter` must outlive it. From here on the meter's peak in bytes is the last phase's own.
  explicit PhaseMeter(MemoryMeter& meter) : meter_(&meter) {}
  /// A phase begins, and with it the one before ends.
  void begin(Phase phase, const DistMeta* parameter = nullptr);
  /// The last one ends; returns all of them.
  std::vector<PhaseMemory> finish();

 private:
  void end_phase();
  MemoryMeter* meter_ = nullptr;
  std::vector<PhaseMemory> phases_;
};

}  // namespace muonwalk
