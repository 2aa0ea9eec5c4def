#include "src/layout/sharding.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {

std::vector<double> work_of_owners(const Layout& layout, int ns_steps) { return sharding_of(layout, ns_steps).flops; }

std::vector<Strategy> strategies() {
  return {gather_everything(), boundary_matrices(), owner_in_turn(),    owner_by_work(),
          all_to_all(),        tp_duplicated(),     distributed_gram(), block_wise()};
}

}  // namespace muonwalk
