#include "src/train/pipeline/tp_sharers.hpp"

namespace muonwalk {

Matrix TpSharers::all_gather_rows(Matrix mine) const {
  Matrix all(mine.rows() * tp_.size(), mine.cols());
  tp_.all_gather(mine.data(), mine.size(), all.data());
  return all;
}

}  // namespace muonwalk
