#include "tests/optim/random_case.hpp"

#include <sstream>

#include "src/numerics/philox.hpp"

namespace muonwalk::test {

Index Choices::between(Index low, Index high) {
  const std::uint64_t draw = drawn_++;
  const auto words = philox4x32_10({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32), 0, 0},
                                   {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  return low + static_cast<Index>(words[0] % static_cast<std::uint32_t>(high - low + 1));
}

std::vector<NamedMatrix> Case::weights() const {
  std::vector<NamedMatrix> all;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Shape shape = parameters[p].shape;
    all.push_back({parameters[p].name, random_matrix({seed, p}, shape.rows, shape.cols)});
  }
  return all;
}

std::vector<Matrix> Case::gradients(int step, int leaf) const {
  std::vector<Matrix> all;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Shape shape = parameters[p].shape;
    const std::uint64_t tensor = 1000 + 100 * static_cast<std::uint64_t>(step) + 10 * static_cast<std::uint64_t>(leaf);
    all.push_back(random_matrix({seed + 1, 1000 * tensor + p}, shape.rows, shape.cols));
  }
  return all;
}

std::string Case::text() const {
  std::ostringstream out;
  out << "seed " << seed << ", " << grid.text() << ", capacity " << options.bucket_capacity << ", alignments "
      << options.parameter_alignment << " and " << options.bucket_alignment << ", ownership "
      << ownership_name(options.ownership) << ", " << precision_name(settings.newton_schulz.precision) << ", threads "
      << settings.newton_schulz.threads << ", nesterov " << settings.nesterov << ", weight decay "
      << settings.weight_decay << ":";
  for (const Parameter& p : parameters) {
    out << ' ' << p.name << ' ' << p.shape.rows << 'x' << p.shape.cols << ' ' << split_name(p.tp_split_dim) << " group "
        << p.group << ';';
  }
  return out.str();
}

Case random_case(std::uint64_t seed) {
  Choices choose(seed);
  Case c;
  c.seed = seed;
  const int tp = static_cast<int>(choose.between(1, 4));
  c.grid = Grid().dp(static_cast<int>(choose.between(1, 4))).tp(tp);
  c.options.bucket_capacity = choose.one_of<Index>({0, 0, 1, 30, 300, 2000});
  c.options.parameter_alignment = choose.one_of<Index>({1, 1, 64, 7, 3});
  c.options.bucket_alignment = choose.one_of<Index>({1, 1, 64, 5, 9});

  const Index groups = choose.between(1, 3);
  const Index count = choose.between(1, 6);
  for (Index p = 0; p < count; ++p) {
    Parameter parameter;
    parameter.name = "w" + std::to_string(p);
    const auto length = [&] {
      if (choose.yes(10)) return Index{1};
      const Index any = choose.between(1, 40);
      return choose.yes(60) ? (any + tp - 1) / tp * tp : any;  // often one that TP divides
    };
    parameter.shape.rows = length();
    parameter.shape.cols = length();
    std::vector<SplitDim> splits = {SplitDim::none};
    if (parameter.shape.rows % tp == 0) splits.insert(splits.end(), {SplitDim::rows, SplitDim::rows});
    if (parameter.shape.cols % tp == 0) splits.insert(splits.end(), {SplitDim::columns, SplitDim::columns});
    parameter.tp_split_dim = choose.one_of(splits);
    parameter.group = static_cast<int>(choose.between(0, groups - 1));
    c.parameters.push_back(parameter);
  }

  c.settings.nesterov = choose.yes(50);
  c.settings.weight_decay = choose.yes(50) ? 0.1f : 0.0f;
  c.settings.lr = choose.one_of<float>({0.1f, 0.02f});
  c.settings.momentum = choose.one_of<double>({0.9, 0.95, 0.0});
  c.settings.newton_schulz.steps = static_cast<int>(choose.between(1, 5));
  c.settings.newton_schulz.threads = static_cast<int>(choose.between(1, 2));
  c.settings.newton_schulz.precision = choose.yes(50) ? Precision::bf16 : Precision::fp32;
  c.steps = static_cast<int>(choose.between(2, 3));
  c.settings.newton_schulz.products = choose.yes(50)   ? Products::eigen
                                      : choose.yes(70) ? Products::chain
                                                       : Products::tiles;
  return c;
}

std::vector<const Matrix*> pointers(const std::vector<NamedMatrix>& matrices) {
  std::vector<const Matrix*> all;
  for (const NamedMatrix& matrix : matrices) all.push_back(&matrix.matrix);
  return all;
}

std::vector<const Matrix*> pointers(const std::vector<Matrix>& matrices) {
  std::vector<const Matrix*> all;
  for (const Matrix& matrix : matrices) all.push_back(&matrix);
  return all;
}

}  // namespace muonwalk::test
