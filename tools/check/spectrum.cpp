#include "tools/check/spectrum.hpp"

#include <Eigen/Eigenvalues>

#include "src/numerics/eigen_view.hpp"

namespace muonwalk::check {

Spectrum spectrum_of(const Matrix& x, const Matrix& step, const Matrix& weights) {
  using Wide = Eigen::MatrixXd;
  const bool tall = x.rows() > x.cols();
  const auto wide = [tall](const Matrix& m) -> Wide {
    if (tall) return eigen_view(m).cast<double>().transpose();
    return eigen_view(m).cast<double>();
  };
  const Wide columns = wide(x).transpose();
  Spectrum result;
  result.norm = columns.norm();
  const Eigen::SelfAdjointEigenSolver<Wide> solver(columns.transpose() * columns);
  const Wide& q = solver.eigenvectors();
  const auto along = [&](const Matrix& m) -> Eigen::VectorXd {
    const Wide product = wide(m) * columns;
    return (q.transpose() * product).cwiseProduct(q.transpose()).rowwise().sum();
  };
  const Eigen::VectorXd d = along(step), w = along(weights);
  const double largest = solver.eigenvalues().size() == 0 ? 0 : solver.eigenvalues().maxCoeff();
  for (Eigen::Index i = 0; i < d.size(); ++i) {
    const double square = solver.eigenvalues()[i];
    if (!(square > largest * 1e-14)) continue;
    result.values.push_back(std::sqrt(square));
    result.step.push_back(d[i] / result.values.back());
    result.weights.push_back(w[i] / result.values.back());
  }
  return result;
}

}  // namespace muonwalk::check
