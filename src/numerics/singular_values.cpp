#include <Eigen/SVD>
#include <vector>

#include "src/numerics/eigen_view.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {

std::vector<double> singular_values(const Matrix& x) {
  if (x.empty()) return {};
  const Eigen::MatrixXd values_in_double = eigen_view(x).cast<double>();
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(values_in_double);
  const Eigen::VectorXd& values = svd.singularValues();
  return {values.data(), values.data() + values.size()};
}

}  // namespace muonwalk
