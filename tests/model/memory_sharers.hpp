#pragma once

#include <functional>
#include <vector>

#include "src/model/sharers.hpp"

namespace muonwalk::test {

/// Sharers that are fibers: each shows its matrix to the others and takes what it needs of theirs.
class MemorySharers : public Sharers {
 public:
  /// What `size` of them have in common.
  class Table {
   public:
    explicit Table(int size) : shown_(static_cast<std::size_t>(size)) {}

   private:
    friend class MemorySharers;
    void meet();

    std::vector<int> arrived_;  // and wait for the last
    std::vector<const Matrix*> shown_;
  };

  MemorySharers(Table& table, int rank, int threads) : table_(table), rank_(rank), threads_(threads) {}
  int size() const override { return static_cast<int>(table_.shown_.size()); }
  int rank() const override { return rank_; }
  int threads() const override { return threads_; }
  void enter_backward(Matrix& gradient) const override { add(gradient); }
  void leave_forward(Matrix& output) const override { add(output); }
  Matrix all_gather_rows(Matrix mine) const override;

 private:
  void add(Matrix& mine) const;

  Table& table_;
  int rank_, threads_;
};

/// Calls work(sharers) on a fiber each. All have to take part in the same exchanges.
void share(int size, int threads, const std::function<void(const Sharers&)>& work);

}  // namespace muonwalk::test
