#include "tests/model/memory_sharers.hpp"

#include <algorithm>

#include "sim/fibers/fibers.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk::test {

void MemorySharers::Table::meet() {
  if (arrived_.size() + 1 < shown_.size()) {
    arrived_.push_back(sim::fiber::self());
    return sim::fiber::wait();
  }
  for (const int fiber : arrived_) sim::fiber::wake(fiber);
  arrived_.clear();
}

void MemorySharers::add(Matrix& mine) const {
  table_.shown_[static_cast<std::size_t>(rank_)] = &mine;
  table_.meet();
  std::vector<const float*> parts;
  for (const Matrix* part : table_.shown_) parts.push_back(part->data());
  Matrix sum(mine.rows(), mine.cols());
  tree_sum(parts, mine.size(), sum.data());
  table_.meet();
  mine = std::move(sum);
}

Matrix MemorySharers::all_gather_rows(Matrix mine) const {
  table_.shown_[static_cast<std::size_t>(rank_)] = &mine;
  table_.meet();
  Matrix all(mine.rows() * size(), mine.cols());
  for (int rank = 0; rank < size(); ++rank)
    std::copy_n(table_.shown_[static_cast<std::size_t>(rank)]->data(), mine.size(), all.data() + rank * mine.size());
  table_.meet();
  return all;
}

void share(int size, int threads, const std::function<void(const Sharers&)>& work) {
  MemorySharers::Table table(size);
  sim::run_fibers(size, [&](int rank) { work(MemorySharers(table, rank, threads)); }, {});
}

}  // namespace muonwalk::test
