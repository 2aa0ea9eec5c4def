// The judgement: steps of all recipes are clean, in any precision, at any step, whatever the dump leaves out; and steps
// with one fault each are named.
#include "tools/check/judge.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <set>

#include "src/io/float16.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/serial_muon.hpp"

using namespace muonwalk;
using namespace muonwalk::check;

namespace {

Matrix scaled(Matrix x, float by) {
  for (float& value : x.flat()) value *= by;
  return x;
}
Matrix random(std::uint64_t seed, std::uint64_t tensor, Index rows, Index cols, float by) {
  return scaled(random_matrix({seed, tensor}, rows, cols), by);
}
Assembled one_version(const Flat& values, const char* dtype = "F32") {
  Assembled tensor;
  tensor.dtype = dtype;
  tensor.versions.push_back({{0}, values});
  return tensor;
}

// A parameter that a recipe has stepped a few times, before its next step.
struct Trained {
  std::string name;
  std::vector<std::int64_t> shape;
  Matrix w, m, g;  // all matrices of a stack below each other
  Flat v;
  int step = 1;
};
Trained trained(const std::string& name, std::vector<std::int64_t> shape, const MuonSettings& settings, int step,
                std::uint64_t seed) {
  Trained t{name, shape, {}, {}, {}, {}, step};
  const Index cols = shape.back();
  Index rows = 1;
  for (const std::int64_t size : shape) rows *= size;
  rows /= cols;
  const std::uint64_t id = std::hash<std::string>()(name);
  t.w = random(seed, id, rows, cols, 0.02f), t.m = Matrix(rows, cols);
  t.v.resize(static_cast<std::size_t>(settings.second_moment.count({rows, cols})));
  // Gradients of a network's steps have a part in common.
  const Matrix common = random(seed, id + 1, rows, cols, 0.005f);
  for (int s = 1; s <= step; ++s) {
    t.g = random(seed + 100 * static_cast<std::uint64_t>(s), id + 2, rows, cols, 0.01f);
    for (Index i = 0; i < t.g.size(); ++i) t.g.data()[i] += common.data()[i];
    if (s < step) recipe_step(t.w, t.m, t.g, settings, name, nullptr, t.v.empty() ? nullptr : &t.v);
  }
  return t;
}

ParameterCase before_step(const Trained& t, const MuonSettings& settings) {
  ParameterCase p;
  p.name = t.name, p.shape = t.shape, p.step = t.step, p.meant = Meant::muon;
  p.before = one_version(t.w.flat()), p.grad = one_version(t.g.flat());
  if (t.step > 1) p.momentum_before = one_version(t.m.flat());
  p.hyper.lr = settings.lr, p.hyper.momentum = settings.momentum, p.hyper.weight_decay = settings.weight_decay;
  p.hyper.nesterov = settings.nesterov, p.hyper.ns_steps = settings.newton_schulz.steps;
  return p;
}

ParameterCase clean_case(const std::string& name, std::vector<std::int64_t> shape, const MuonSettings& settings,
                         int step, std::uint64_t seed) {
  Trained t = trained(name, std::move(shape), settings, step, seed);
  ParameterCase p = before_step(t, settings);
  recipe_step(t.w, t.m, t.g, settings, name, nullptr, t.v.empty() ? nullptr : &t.v);
  p.after = one_version(t.w.flat()), p.momentum_after = one_version(t.m.flat());
  return p;
}

MuonSettings with(const char* recipe, Precision precision, float lr = 0.02f, float decay = 0.1f) {
  MuonSettings s = recipe_named(recipe).settings;
  s.lr = lr, s.weight_decay = decay, s.newton_schulz.precision = precision;
  return s;
}

const char* text(Verdict v) {
  constexpr const char* kTexts[] = {"clean", "unknown", "differs", "unjudgeable"};
  return kTexts[static_cast<int>(v)];
}
std::string text(const DumpVerdict& v) {
  std::string all = text(v.verdict);
  for (const Finding& f : v.findings) all += fmt::format("\n  {} on {}: {}", f.kind, f.axis, f.sentence);
  for (const ParameterVerdict& p : v.parameters)
    all += fmt::format("\n  {} {} {} {} distance {:.5f} α {:.3e} ({}) β {:.4e} ({}) {}", p.name, text(p.verdict),
                       p.optimizer, p.recipe, p.distance.value_or(-1), p.alpha.value_or(0), p.alpha_law,
                       p.beta.value_or(0), p.beta_law, p.reason);
  return all;
}

// The parts of a step of which a bug takes one in another way.
struct Faulty {
  ParameterCase p;
  MuonSettings settings;
  Matrix w, m, g;  // before the step; stacks as matrices below each other

  std::function<Matrix(Faulty&)> input;  // changes m
  std::function<Matrix(Faulty&, const Matrix&)> orthogonalize;
  std::function<double(Faulty&, Index rows, Index cols)> scale;
  std::function<void(Faulty&, Matrix& update)> change_update;
  double decay = 1;                             // times lr · decay
  std::vector<std::pair<Index, Index>> blocks;  // rows that are meant to be a matrix of their own

  Matrix newton(const Matrix& x) const { return newton_schulz(x, settings.newton_schulz); }
  void momentum_step(float of_gradient, float mu) {
    for (Index i = 0; i < m.size(); ++i) m.data()[i] = mu * m.data()[i] + of_gradient * g.data()[i];
  }
  float mu() const { return static_cast<float>(settings.momentum); }
  float of_gradient() const { return settings.arithmetic.lerp ? static_cast<float>(1 - settings.momentum) : 1; }
  Matrix looked_ahead(bool ahead) const {
    Matrix u = m;
    if (ahead)
      for (Index i = 0; i < u.size(); ++i) u.data()[i] = of_gradient() * g.data()[i] + mu() * m.data()[i];
    return u;
  }
  // Of some rows, as if they were a matrix.
  Matrix rows(const Matrix& x, Index begin, Index end) const {
    Matrix part(end - begin, x.cols());
    std::copy(x.data() + begin * x.cols(), x.data() + end * x.cols(), part.data());
    return part;
  }
  Matrix by_rows(const Matrix& x, const std::vector<std::pair<Index, Index>>& all) const {
    Matrix o = x;
    for (auto [begin, end] : all) {
      const Matrix part = newton(rows(x, begin, end));
      std::copy(part.data(), part.data() + part.size(), o.data() + begin * x.cols());
    }
    return o;
  }
  std::vector<std::pair<Index, Index>> equal(Index count) const {
    std::vector<std::pair<Index, Index>> all;
    for (Index i = 0; i < count; ++i) all.emplace_back(i * w.rows() / count, (i + 1) * w.rows() / count);
    return all;
  }

  ParameterCase stepped() {
    Matrix u;
    if (input)
      u = input(*this);
    else
      momentum_step(of_gradient(), mu()), u = looked_ahead(settings.nesterov);
    Matrix o = orthogonalize ? orthogonalize(*this, u) : blocks.empty() ? newton(u) : by_rows(u, blocks);
    const auto all = blocks.empty() ? equal(1) : blocks;
    for (auto [begin, end] : all) {
      const double rms = settings.arithmetic.scale == Scale::matched_rms ? settings.rms : 1;
      const double factor =
          settings.lr * (scale ? scale(*this, end - begin, w.cols())
                               : rms * shape_scale({end - begin, w.cols()}, settings.arithmetic.scale));
      for (Index i = begin * w.cols(); i < end * w.cols(); ++i) o.data()[i] = static_cast<float>(factor * o.data()[i]);
    }
    if (change_update) change_update(*this, o);
    const double keep = 1 - decay * settings.lr * settings.weight_decay;
    Matrix after = w;
    for (Index i = 0; i < w.size(); ++i) after.data()[i] = static_cast<float>(keep * w.data()[i] - o.data()[i]);
    if (!p.after.there()) p.after = one_version(after.flat());
    if (!p.momentum_after.there()) p.momentum_after = one_version(m.flat());
    return p;
  }
};

Faulty faulty(const std::string& name, std::vector<std::int64_t> shape, const MuonSettings& settings, int step,
              std::uint64_t seed) {
  const Trained t = trained(name, std::move(shape), settings, step, seed);
  return {before_step(t, settings), settings, t.w, t.m, t.g, {}, {}, {}, {}, 1, {}};
}

void cut_by(ParameterCase& p, const char* axis, int dim, Index count) {
  Cut cut{axis, Cut::shard, dim, {}};
  const Index whole = p.shape[static_cast<std::size_t>(dim)], each = (whole + count - 1) / count;  // as torch.chunk
  for (Index i = 0; i <= count; ++i) cut.bounds.push_back(std::min(whole, each * i));
  p.cuts.push_back(cut);
  p.mesh = {{axis, static_cast<int>(count)}};
  p.parts.clear();
  const Index cols = p.shape.back(), rows = p.shape.front();
  for (Index r = 0; r < count; ++r) {
    Part part{static_cast<int>(r), {}};
    const Index begin = cut.bounds[static_cast<std::size_t>(r)], end = cut.bounds[static_cast<std::size_t>(r + 1)];
    if (dim == 0)
      part.ranges = {{begin * cols, end * cols}};
    else
      for (Index i = 0; i < rows; ++i) part.ranges.emplace_back(i * cols + begin, i * cols + end);
    p.parts.push_back(part);
  }
}

}  // namespace

TEST_CASE("a judge: steps of all recipes are clean, in any precision, at any step, whatever the dump leaves out") {
  int checked = 0;
  for (const Recipe& recipe : recipes())
    for (const Precision precision : {Precision::bf16, Precision::fp32})
      for (const int step : {1, 2, 4}) {
        ++checked;
        const std::uint64_t seed = static_cast<std::uint64_t>(checked);
        MuonSettings settings = recipe.settings;
        settings.newton_schulz.precision = precision;
        settings.lr = 0.02f, settings.weight_decay = 0.1f;
        Judge judge;
        for (const auto& shape : std::vector<std::vector<std::int64_t>>{{16, 24}, {64, 64}, {64, 160}, {96, 40}}) {
          ParameterCase p = clean_case(fmt::format("layers.{}.w", shape[1]), shape, settings, step, seed);
          if (seed % 3 == 1) p.hyper = {};
          if (seed % 5 == 1) p.momentum_after = {};
          if (seed % 4 == 1 && step > 1) p.momentum_before = {};
          if (!p.momentum_before.there() && !p.momentum_after.there())
            p.momentum_before = one_version(Flat(p.before.values().size()));
          if (step > 1 && !p.momentum_after.there() && seed % 4 == 1) continue;
          judge.add(p);
        }
        const DumpVerdict verdict = judge.verdict();
        CAPTURE(fmt::format("{} {} step {} seed {}", recipe.name, precision_name(precision), step, seed));
        CAPTURE(text(verdict));
        if (!verdict.parameters.empty()) CHECK(verdict.verdict == Verdict::clean);
      }
  CHECK(checked == 6 * static_cast<int>(recipes().size()));
}

TEST_CASE("a judge: a step with one fault is named") {
  struct Plant {
    const char* kind;
    const char* axis;
    std::function<void(Faulty&)> fault;
    std::vector<std::int64_t> shape = {64, 96};
    bool others = true;  // whether the other parameters are right
  };
  using F = Faulty;
  const auto sliced = [](const char* axis) {
    return [axis](F& f) {
      cut_by(f.p, axis, 0, 2);
      f.orthogonalize = [](F& g, const Matrix& u) { return g.by_rows(u, g.equal(2)); };
    };
  };
  const std::vector<Plant> plants = {
      {"tp_slices", "tp", sliced("tp")},
      {"dp_slices", "dp", sliced("dp")},
      {"joined_other_dim", "tp",
       [](F& f) {
         cut_by(f.p, "tp", 0, 2);
         f.orthogonalize = [](F& g, const Matrix& u) {
           const Index rows = u.rows() / 2, cols = u.cols();
           Matrix beside(rows, 2 * cols), o = u;
           for (Index i = 0; i < u.rows(); ++i)
             for (Index j = 0; j < cols; ++j) beside(i % rows, i / rows * cols + j) = u(i, j);
           beside = g.newton(beside);
           for (Index i = 0; i < u.rows(); ++i)
             for (Index j = 0; j < cols; ++j) o(i, j) = beside(i % rows, i / rows * cols + j);
           return o;
         };
       }},
      {"joined_other_dim", "tp",
       [](F& f) {
         cut_by(f.p, "tp", 1, 2);
         f.orthogonalize = [](F& g, const Matrix& u) {
           const Index rows = u.rows(), cols = u.cols() / 2;
           Matrix below(2 * rows, cols), o = u;
           for (Index i = 0; i < rows; ++i)
             for (Index j = 0; j < u.cols(); ++j) below(j / cols * rows + i, j % cols) = u(i, j);
           below = g.newton(below);
           for (Index i = 0; i < rows; ++i)
             for (Index j = 0; j < u.cols(); ++j) o(i, j) = below(j / cols * rows + i, j % cols);
           return o;
         };
       }},
      {"local_norm", "tp",
       [](F& f) {
         cut_by(f.p, "tp", 0, 4);
         f.orthogonalize = [](F& g, Matrix u) {
           for (Index begin = 0; begin < u.rows(); begin += 16) {
             const float norm = static_cast<float>(frobenius_norm(g.rows(u, begin, begin + 16)));
             for (Index i = begin * u.cols(); i < (begin + 16) * u.cols(); ++i) u.data()[i] /= norm;
           }
           F own = g;
           own.settings.newton_schulz.normalization.cushion = 0.5;  // the norm of all four is 2, and stays
           return own.newton(u);
         };
       }},
      {"update_transposed",
       "",
       [](F& f) {
         f.orthogonalize = [](F& g, const Matrix& u) {
           const Matrix o = g.newton(u);
           Matrix turned(o.cols(), o.rows());
           for (Index i = 0; i < o.rows(); ++i)
             for (Index j = 0; j < o.cols(); ++j) turned(j, i) = o(i, j);
           return turned;
         };
       },
       {64, 64}},
      {"padding_shifts",
       "dp",
       [](F& f) {
         cut_by(f.p, "dp", 0, 4);  // 13, 13, 13 and 11 rows
         f.change_update = [](F&, Matrix& u) {
           std::copy_backward(u.data() + 96 * 37, u.data() + 96 * 48, u.data() + 96 * 50);
         };
       },
       {50, 96}},
      {"head_count", "heads",
       [](F& f) {
         f.p.blocks = {0, std::vector<std::int64_t>(8, 8)};
         f.orthogonalize = [](F& g, const Matrix& u) { return g.by_rows(u, g.equal(4)); };
       }},
      {"split_not_fused", "heads",
       [](F& f) { f.orthogonalize = [](F& g, const Matrix& u) { return g.by_rows(u, g.equal(4)); }; }},
      {"fused_not_split", "blocks",
       [](F& f) {
         f.p.blocks = {0, {32, 16, 16}};
         f.blocks = {{0, 32}, {32, 48}, {48, 64}};
         f.orthogonalize = [](F& g, const Matrix& u) { return g.newton(u); };
       }},
      {"fused_split_misplaced", "blocks",
       [](F& f) {
         f.p.blocks = {0, {32, 16, 16}};
         f.orthogonalize = [](F& g, const Matrix& u) { return g.by_rows(u, {{0, 16}, {16, 32}, {32, 64}}); };
       }},
      {"fused_interleaved", "blocks",
       [](F& f) {
         f.p.blocks = {0, {32, 32}};
         f.orthogonalize = [](F& g, const Matrix& u) {
           Matrix o = u;
           for (const Index part : {0, 1}) {
             Matrix x(32, u.cols());
             for (Index i = 0; i < 32; ++i)
               for (Index j = 0; j < u.cols(); ++j) x(i, j) = u(2 * i + part, j);
             x = g.newton(x);
             for (Index i = 0; i < 32; ++i)
               for (Index j = 0; j < u.cols(); ++j) o(2 * i + part, j) = x(i, j);
           }
           return o;
         };
       }},
      {"experts_flattened", "experts", [](F&) {}, {4, 16, 24}},
      {"expert_slabs",
       "experts",
       [](F& f) { f.orthogonalize = [](F& g, const Matrix& u) { return g.by_rows(u, g.equal(8)); }; },
       {4, 16, 24}},
      {"expert_axis_as_matrix",
       "experts",
       [](F& f) {
         f.orthogonalize = [](F& g, const Matrix& u) {
           const Matrix o = g.newton(Matrix(4, 16 * 24, u.flat()));
           return Matrix(64, 24, o.flat());
         };
       },
       {4, 16, 24}},
      {"eps_swallows", "",
       [](F& f) {
         f.g = scaled(f.g, 1e-8f), f.m = scaled(f.m, 1e-8f);
         f.p.grad = one_version(f.g.flat());
         if (f.p.momentum_before.there()) f.p.momentum_before = one_version(f.m.flat());
         f.settings.newton_schulz.normalization.epsilon = 1e-7;
       }},
      {"half_underflow", "",
       [](F& f) {
         f.g = scaled(f.g, 2e-5f), f.m = scaled(f.m, 2e-5f);
         f.p.grad = one_version(f.g.flat());
         if (f.p.momentum_before.there()) f.p.momentum_before = one_version(f.m.flat());
         f.orthogonalize = [](F& g, const Matrix& u) {
           Matrix x = u;
           for (float& value : x.flat()) value = float16_to_float(float_to_float16(value));
           return g.newton(x);
         };
       }},
      {"nesterov_mismatch", "",
       [](F& f) {
         f.input = [](F& g) { return g.momentum_step(g.of_gradient(), g.mu()), g.looked_ahead(!g.settings.nesterov); };
       }},
      {"momentum_ignored", "",
       [](F& f) { f.input = [](F& g) { return g.momentum_step(g.of_gradient(), g.mu()), g.g; }; }},
      {"momentum_stale", "",
       [](F& f) {
         f.input = [](F& g) {
           const Matrix old = g.m;
           g.momentum_step(g.of_gradient(), g.mu());
           return old;
         };
       }},
      {"momentum_mixed", "",
       [](F& f) {
         f.settings.nesterov = true, f.p.hyper.nesterov = true;
         f.input = [](F& g) {
           g.momentum_step(static_cast<float>(1 - g.settings.momentum), g.mu());
           Matrix u = g.m;
           for (Index i = 0; i < u.size(); ++i) u.data()[i] = g.g.data()[i] + g.mu() * g.m.data()[i];
           return u;
         };
       }},
      {"momentum_overwritten", "",
       [](F& f) {
         f.input = [](F& g) {
           g.momentum_step(g.of_gradient(), g.mu());
           const Matrix u = g.looked_ahead(g.settings.nesterov);
           double squares = 0;
           for (const float value : g.m.flat()) squares += static_cast<double>(value) * value;
           g.m = scaled(g.m, static_cast<float>(1 / std::sqrt(squares)));
           return u;
         };
       }},
      {"momentum_overwritten", "",
       [](F& f) {
         f.input = [](F& g) {
           g.momentum_step(g.of_gradient(), g.mu());
           const Matrix u = g.looked_ahead(g.settings.nesterov);
           g.m = g.newton(u);
           return u;
         };
       }},
      {"momentum_coefficient", "", [](F& f) { f.settings.momentum = 0.9; }},
      {"gradient_scaled", "",
       [](F& f) {
         f.input = [](F& g) { return g.momentum_step(g.of_gradient() / 4, g.mu()), g.looked_ahead(false); };
         f.p.hyper.nesterov = false;
       }},
      {"one_rank_gradient", "dp",
       [](F& f) {
         Assembled::Version other{{1}, random(5, 6, f.g.rows(), f.g.cols(), 0.01f).flat()};
         f.p.grad.versions.push_back(other);
         f.p.mesh = {{"dp", 2}};
       }},
      {"gradient_not_reduced", "dp",
       [](F& f) {
         F other = f;
         other.g = random(5, 6, f.g.rows(), f.g.cols(), 0.01f);
         const ParameterCase theirs = other.stepped();
         f.p.grad.versions.push_back({{1}, other.g.flat()});
         f.p.mesh = {{"dp", 2}};
         const ParameterCase mine = f.stepped();
         f.p.after = mine.after, f.p.momentum_after = mine.momentum_after;
         f.p.after.versions.push_back({{1}, theirs.after.values()});
         f.p.momentum_after.versions.push_back({{1}, theirs.momentum_after.values()});
       }},
      {"ns_steps", "", [](F& f) { f.settings.newton_schulz.steps = 4; }},
      {"not_orthogonalized", "", [](F& f) { f.orthogonalize = [](F&, const Matrix& u) { return scaled(u, 10); }; }},
      {"sign_update", "",
       [](F& f) {
         f.orthogonalize = [](F&, Matrix u) {
           for (float& value : u.flat()) value = value > 0 ? 0.05f : -0.05f;
           return u;
         };
       }},
      {"sign_flipped", "",
       [](F& f) {
         f.scale = [](F& g, Index r, Index c) { return -shape_scale({r, c}, g.settings.arithmetic.scale); };
       }},
      {"scale_missing", "", [](F& f) { f.scale = [](F&, Index, Index) { return 1.0; }; }, {96, 32}},
      {"scale_twice",
       "",
       [](F& f) {
         f.scale = [](F& g, Index r, Index c) { return std::pow(shape_scale({r, c}, g.settings.arithmetic.scale), 2); };
       },
       {96, 32}},
      {"scale_padded",
       "",
       [](F& f) { f.scale = [](F& g, Index, Index c) {
                    return shape_scale({64, c}, g.settings.arithmetic.scale);
                  }; },
       {50, 20}},
      {"scale_tp_local",
       "tp",
       [](F& f) {
         cut_by(f.p, "tp", 0, 2);
         f.scale = [](F& g, Index r, Index c) { return shape_scale({r / 2, c}, g.settings.arithmetic.scale); };
       },
       {160, 32}},
      {"scale_flipped",
       "",
       [](F& f) { f.scale = [](F& g, Index r, Index c) {
                    return shape_scale({c, r}, g.settings.arithmetic.scale);
                  }; },
       {32, 80}},
      {"scale_of_fused",
       "",
       [](F& f) {
         f.p.blocks = {0, {32, 32, 32}};
         f.blocks = {{0, 32}, {32, 64}, {64, 96}};
         f.scale = [](F& g, Index, Index c) { return shape_scale({96, c}, g.settings.arithmetic.scale); };
       },
       {96, 24}},
      {"lr_mismatch",
       "",
       [](F& f) { f.p.hyper.lr = *f.p.hyper.lr / 2, f.p.hyper.weight_decay = 0.2; },
       {64, 96},
       false},
      {"update_clipped",
       "",
       [](F& f) {
         f.change_update = [](F& g, Matrix& u) {
           double squares = 0;
           for (const float value : u.flat()) squares += static_cast<double>(value) * value;
           u = scaled(u, static_cast<float>(g.settings.lr / std::sqrt(squares)));
         };
       },
       {64, 96},
       false},
      {"decay_missing", "", [](F& f) { f.decay = 0; }},
      {"decay_twice", "", [](F& f) { f.decay = 2; }},
      {"decay_by_scaled_lr", "", [](F& f) { f.decay = std::sqrt(3.0); }, {96, 32}},
      {"decay_in_gradient", "",
       [](F& f) {
         f.decay = 0;
         for (Index i = 0; i < f.g.size(); ++i) f.g.data()[i] += f.settings.weight_decay * f.w.data()[i];
       }},
      {"never_stepped", "", [](F& f) { f.p.after = f.p.before; }},
      {"only_decayed", "", [](F& f) { f.change_update = [](F&, Matrix& u) { u = scaled(u, 0); }; }},
      {"stale_shard", "tp",
       [](F& f) {
         cut_by(f.p, "tp", 0, 4);
         const ParameterCase right = f.stepped();
         f.p.after = right.after;
         std::copy(f.w.data() + 96 * 16, f.w.data() + 96 * 32, f.p.after.versions[0].values.begin() + 96 * 16);
       }},
      {"shard_of_other_rank", "tp",
       [](F& f) {
         cut_by(f.p, "tp", 0, 4);
         f.change_update = [](F&, Matrix& u) { std::swap_ranges(u.data(), u.data() + 96 * 16, u.data() + 96 * 16); };
       }},
      {"frozen_moved", "", [](F& f) { f.p.meant = Meant::none; }},
      {"stepped_by_muon", "", [](F& f) { f.p.meant = Meant::adamw; }},
      {"stepped_by_adamw", "",
       [](F& f) {
         f.p.second_before = one_version(Flat(f.w.flat().size(), 1e-4f));
         f.p.second_after = f.p.second_before;
         f.orthogonalize = [](F& g, const Matrix&) {
           Matrix u = g.m;
           for (Index i = 0; i < u.size(); ++i) u.data()[i] /= 1e-2f;
           for (std::size_t i = 0; i < g.p.second_after.versions[0].values.size(); ++i)
             g.p.second_after.versions[0].values[i] = 1e-4f;
           return u;
         };
       }},
      {"half_overflow", "",
       [](F& f) {
         f.g = scaled(f.g, 1e8f);
         f.p.grad = one_version(f.g.flat());
         f.p.after = one_version(Flat(f.w.flat().size(), std::nanf("")));
       }},
  };
  std::string table;
  int wrong = 0, unknown = 0, right = 0;
  for (const Plant& plant : plants)
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const char* recipe : {"kellerjordan", "emerging"}) {
        MuonSettings settings = with(recipe, precision);
        settings.arithmetic.scale = Scale::tall;
        const int step = 3;
        Judge judge;
        const std::vector<std::vector<std::int64_t>> shapes = {{64, 96}, {96, 32}, {48, 48}};
        std::set<std::string> wanted;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          if (!plant.others) {
            Faulty f = faulty(fmt::format("layers.{}.right", i), shapes[i], settings, step, 7);
            plant.fault(f);
            judge.add(f.stepped());
            wanted.insert(f.p.name);
          } else {
            judge.add(clean_case(fmt::format("layers.{}.right", i), shapes[i], settings, step, 7));
          }
        }
        Faulty f = faulty("layers.0.wrong", plant.shape, settings, step, 11);
        plant.fault(f);
        judge.add(f.stepped());
        wanted.insert("layers.0.wrong");
        const DumpVerdict verdict = judge.verdict();
        std::string named;
        std::set<std::string> told;
        for (const Finding& finding : verdict.findings) {
          named += (named.empty() ? "" : " + ") + finding.kind + (finding.axis.empty() ? "" : "/" + finding.axis);
          told.insert(finding.parameters.begin(), finding.parameters.end());
        }
        const bool good = named == std::string(plant.kind) + (*plant.axis == 0 ? "" : std::string("/") + plant.axis) &&
                          told == wanted;
        (good ? right : verdict.verdict == Verdict::unknown ? unknown : wrong) += 1;
        table += fmt::format("{:22} {} {:13} {}\n", plant.kind, precision_name(precision), recipe,
                             good            ? "named"
                             : named.empty() ? text(verdict.verdict)
                                             : named);
        if (!good) table += "      " + text(verdict) + "\n";
      }
  std::cout << table << fmt::format("{} named, {} unknown, {} wrong\n", right, unknown, wrong);
  CHECK(wrong == 0);
}

TEST_CASE("a judge: two parameters that have each other's update, and coefficients of no known set") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const int right : {2, 0}) {
      const MuonSettings settings = with("emerging", precision);
      Judge judge, of_coefficients;
      for (int i = 0; i < right; ++i) {
        judge.add(clean_case(fmt::format("layers.{}.right", i), {40, 40}, settings, 3, 7));
        of_coefficients.add(clean_case(fmt::format("layers.{}.right", i), {40, 40}, settings, 3, 7));
      }
      Faulty up = faulty("layers.0.up", {64, 96}, settings, 3, 11),
             gate = faulty("layers.0.gate", {64, 96}, settings, 3, 12);
      Faulty other = faulty("layers.0.other", {64, 96}, settings, 3, 13);
      const auto newton_of = [](const Faulty& f) {
        Faulty g = f;
        g.momentum_step(g.of_gradient(), g.mu());
        return g.newton(g.looked_ahead(g.settings.nesterov));
      };
      up.orthogonalize = [&](Faulty&, const Matrix&) { return newton_of(gate); };
      gate.orthogonalize = [&, of = newton_of(up)](Faulty&, const Matrix&) { return of; };
      other.settings.newton_schulz.schedule.assign(5, Quintic{3.1f, -4.1f, 1.75f});
      of_coefficients.add(other.stepped());
      judge.add(up.stepped());
      judge.add(gate.stepped());
      const DumpVerdict swapped = judge.verdict(), coefficients = of_coefficients.verdict();
      CAPTURE(text(swapped));
      CAPTURE(text(coefficients));
      REQUIRE(swapped.findings.size() == 1);
      CHECK(swapped.findings[0].kind == "updates_swapped");
      CHECK(swapped.findings[0].parameters == std::vector<std::string>{"layers.0.up", "layers.0.gate"});
      CHECK(swapped.parameters.end()[-1].reason == "its update is that of \"layers.0.up\"");
      REQUIRE(coefficients.findings.size() == 1);
      CHECK(coefficients.findings[0].kind == "ns_coefficients");
    }
}
