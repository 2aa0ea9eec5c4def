#include "tests/model/memory_sharers.hpp"

#include <algorithm>
#include <thread>

#include "src/numerics/tree_sum.hpp"

namespace muonwalk::test {

void MemorySharers::Table::meet() {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::size_t meeting = meetings_;
  if (++arrived_ == shown_.size()) {
    arrived_ = 0;
    ++meetings_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return meetings_ != meeting; });
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
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back([&, rank] { work(MemorySharers(table, rank, threads)); });
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace muonwalk::test
