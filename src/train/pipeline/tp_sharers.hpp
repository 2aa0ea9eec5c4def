#pragma once

#include <algorithm>
#include <vector>

#include "src/comm/communicator.hpp"
#include "src/model/sharers.hpp"

namespace muonwalk {

/// The ranks of a TP group, which share every layer: the two conjugate operations as all-reduces over the group. Where
/// experts are dealt out, rows go to them and back by an all-to-all over the EP group.
class TpSharers : public Sharers {
 public:
  /// `tp` and `ep` must outlive it; without `ep`, this rank has all experts.
  explicit TpSharers(Communicator& tp, int threads = 1, Communicator* ep = nullptr)
      : tp_(tp), threads_(threads), ep_(ep) {}

  int size() const override { return tp_.size(); }
  int rank() const override { return tp_.rank(); }
  int threads() const override { return threads_; }
  void enter_backward(Matrix& gradient) const override { tp_.all_reduce(gradient.data(), gradient.size()); }
  void leave_forward(Matrix& partial) const override { tp_.all_reduce(partial.data(), partial.size()); }
  Matrix all_gather_rows(Matrix mine) const override {
    Matrix all(mine.rows() * tp_.size(), mine.cols());
    tp_.all_gather(mine.data(), mine.size(), all.data());
    return all;
  }
  int experts_over() const override { return ep_ == nullptr ? 1 : ep_->size(); }
  // A rank's own part is not sent: it waits behind the others.
  Matrix exchange_rows(Matrix rows) const override {
    if (ep_ == nullptr) return rows;
    const Index part = rows.size() / ep_->size();
    std::vector<Index> counts(static_cast<std::size_t>(ep_->size()), part);
    counts[static_cast<std::size_t>(ep_->rank())] = 0;
    float *own = rows.data() + ep_->rank() * part, *end = rows.data() + rows.size();
    std::rotate(own, own + part, end);
    Flat others(static_cast<std::size_t>(rows.size() - part));
    ep_->all_to_all_v(rows.data(), counts, others.data(), counts);
    std::copy(others.begin(), others.end(), rows.data());
    std::rotate(own, end - part, end);
    return rows;
  }

 private:
  Communicator& tp_;
  int threads_;
  Communicator* ep_;
};

}  // namespace muonwalk
