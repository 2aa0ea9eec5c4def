#include "lessons/lesson_18_read_a_trace/stand_in_for_model.hpp"

#include "src/numerics/philox.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk::sim {

void stand_in_for_model(const std::vector<NamedMatrix>& layers, Index tokens, int threads) {
  for (const NamedMatrix& layer : layers) {
    const Matrix inputs = random_matrix({0, 0}, layer.matrix.cols(), tokens);
    Matrix outputs, gradient_of_weights, gradient_of_inputs;
    multiply(layer.matrix, inputs, outputs, threads);
    multiply(outputs, inputs.transposed(), gradient_of_weights, threads);
    multiply(layer.matrix.transposed(), outputs, gradient_of_inputs, threads);
  }
}

}  // namespace muonwalk::sim
