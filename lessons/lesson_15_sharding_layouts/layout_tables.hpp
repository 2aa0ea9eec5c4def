#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/layout/sharding.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// A layout by name, "per bucket"; those of one list are of the same parameters on the same grid.
using NamedLayout = std::pair<std::string, Layout>;

/// A way to share out matrices among data-parallel ranks.
struct OwnershipPolicy {
  std::string name;     ///< "per bucket"
  Ownership ownership;  ///< What it cuts.
  /// With Ownership::matrices, who owns which: one DP rank for each parameter.
  std::vector<int> (*owners)(const std::vector<Parameter>& parameters, const Grid& grid) = nullptr;
};

/// The layout of the parameters in one of these ways, or in each of them. A bucket is full at `bucket` elements, and
/// parameters begin at multiples of 64 elements, as with Megatron-LM. Throws as plan_layout does.
/// @{
Layout lay_out(const std::vector<Parameter>& parameters, const Grid& grid, const OwnershipPolicy& way, Index bucket);
std::vector<NamedLayout> layouts_of(const std::vector<Parameter>& parameters, const Grid& grid,
                                    const std::vector<OwnershipPolicy>& ways, Index bucket);
/// @}

/// Who orthogonalizes what: a line per matrix, in the order of the parameters, with its shape, the dimension that TP
/// cuts, the elements of a TP slice, the FLOPs of its Newton–Schulz, and for each layout the DP ranks that own an
/// element of it: "0–3". Throws std::invalid_argument where there is no layout.
std::string owners_table(const std::vector<NamedLayout>& layouts);

/// What each layout costs the ranks of a DP group (sharding.hpp), a line per layout: how many matrices are cut; what
/// the rank that gathers most receives for them, in elements of `gathered`; all Newton–Schulz that is done over what
/// has to be done once; the most elements that a rank owns, and the most work that it has, over the mean; and the most
/// work over an equal share of what has to be done once. Above that is all that there is; below it two bounds: every
/// rank owns a part of every matrix, and whole matrices dealt out as evenly as the largest one allows. At most 100
/// columns. With `experts`, the same layouts of what each rank of an EP group holds of the experts (with_experts), on
/// fewer DP ranks. Throws std::invalid_argument where there is no layout.
std::string sharding_table(const std::vector<NamedLayout>& layouts, Precision gathered,
                           const std::vector<NamedLayout>& experts = {});

/// What a TP rank has of each of these parameters, as parameters that TP does not cut. Throws as tp_shape does.
std::vector<Parameter> tp_slices(const std::vector<Parameter>& parameters, int tp);

/// What Muon takes of a published model (model_tensors). TP cuts it as Megatron-LM does, but leaves experts whole, as
/// frameworks do that give experts to the ranks of TP instead. Throws UsageError for a name that is not known.
std::vector<Parameter> with_whole_experts(const std::string& model);

/// The same in two lists: what belongs to no expert, and the experts that the first rank of an EP group holds; the
/// others hold as many of the same shapes. Throws UsageError where the model has no experts, where `ep` doesn't divide
/// those of a layer, or where it doesn't divide `dp`.
std::pair<std::vector<Parameter>, std::vector<Parameter>> with_dealt_experts(const std::string& model, int ep, int dp);

}  // namespace muonwalk::sim
