#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {

std::vector<Strategy> strategies() {
  return {gather_everything(), boundary_matrices(), owner_in_turn(),    owner_by_work(),
          all_to_all(),        tp_duplicated(),     distributed_gram(), block_wise()};
}

}  // namespace muonwalk
