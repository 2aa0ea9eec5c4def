#include "src/train/reference_run.hpp"

#include <algorithm>
#include <utility>

#include "src/optim/named_slice.hpp"
#include "src/train/models.hpp"

namespace muonwalk {

ReferenceRun::ReferenceRun(const Training& training, std::unique_ptr<Optimizer> optimizer, Index most_elements,
                           MuonMemory kept)
    : training_(training), optimizer_(std::move(optimizer)), first_(std::move(kept)) {
  Index elements = 0;
  for (const Parameter& parameter : training.parameters()) elements += parameter.shape.size();
  most_results_ = static_cast<std::size_t>(most_elements / std::max<Index>(elements, 1));
}

const std::vector<NamedMatrix>& ReferenceRun::after(int step, int dp) {
  const int leaves = dp * training_.leaves_per_rank(dp);
  if (leaves != leaves_) {
    serial_.reset();
    results_.clear();
    leaves_ = leaves;
  }
  if (step <= static_cast<int>(results_.size())) return results_[static_cast<std::size_t>(step - 1)];
  if (serial_ == nullptr || step < done_) {
    serial_ = optimizer_->reference(training_.first_weights());
    serial_->go_on_from(first_);
    done_ = 0;
  }
  while (done_ < step) {
    serial_->step(training_.all_leaves(done_, dp, serial_->parameters()));
    if (done_++ == static_cast<int>(results_.size()) && results_.size() < most_results_)
      results_.push_back(serial_->parameters());
  }
  return serial_->parameters();
}

MuonMemory ReferenceRun::kept() const {
  MuonMemory kept;
  if (serial_ != nullptr) serial_->keep_in(kept);
  return kept;
}

std::vector<NamedMatrix> ReferenceRun::slices_after(int step, const Grid& grid, const Place& place) {
  const std::vector<Parameter>& parameters = training_.parameters();
  const Range mine = stage_parameters(static_cast<int>(parameters.size()), grid.pp(), place.pp);
  const std::vector<NamedMatrix>& whole = after(step, grid.dp());
  std::vector<NamedMatrix> slices;
  for (Index p = mine.begin; p < mine.end; ++p)
    slices.push_back(named_slice(parameters[static_cast<std::size_t>(p)], whole[static_cast<std::size_t>(p)].matrix,
                                 grid.tp(), place.tp));
  return slices;
}

}  // namespace muonwalk
