#include "src/train/pipeline/outbox.hpp"

#include <utility>

namespace muonwalk {

void Outbox::send(Matrix values, int peer) {
  wait();
  values_ = std::move(values);
  under_way_.emplace(group_.isend(values_.data(), values_.size(), peer));
}

void Outbox::wait() {
  if (!under_way_) return;
  under_way_->wait();
  under_way_.reset();
  values_ = Matrix();
}

Matrix received(Communicator& group, Index rows, Index cols, int peer) {
  Matrix values(rows, cols);
  group.recv(values.data(), values.size(), peer);
  return values;
}

}  // namespace muonwalk
