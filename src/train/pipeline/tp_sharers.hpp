#pragma once

#include "src/comm/communicator.hpp"
#include "src/model/sharers.hpp"

namespace muonwalk {

/// The ranks of a TP group, which share every layer: the two conjugate operations as all-reduces over the group.
class TpSharers : public Sharers {
 public:
  /// `tp` must outlive it.
  explicit TpSharers(Communicator& tp, int threads = 1) : tp_(tp), threads_(threads) {}

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

 private:
  Communicator& tp_;
  int threads_;
};

}  // namespace muonwalk
