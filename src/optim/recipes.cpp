#include "src/optim/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

// A class with its defaults, in the order of the table in tests/golden/recipes/README.md.
struct Defaults {
  double lr, weight_decay;
  bool nesterov;
  Scale scale;
  const char* coefficients;
};
Recipe recipe_of(const std::string& name, const char* whose, const char* source, const Defaults& defaults) {
  Recipe recipe{name, whose, source, {}, defaults.coefficients};
  recipe.settings.lr = static_cast<float>(defaults.lr);
  recipe.settings.momentum = 0.95;
  recipe.settings.weight_decay = static_cast<float>(defaults.weight_decay);
  recipe.settings.nesterov = defaults.nesterov;
  recipe.settings.arithmetic.scale = defaults.scale;
  return recipe;
}

Recipe moonshot() {
  Recipe recipe =
      recipe_of("moonshot", "Muon of toy_train.py", "MoonshotAI/Moonlight c2ad5b20, 2025-08-02, examples/toy_train.py",
                {1e-3, 0.1, true, Scale::matched_rms, "simple"});
  recipe.has_nesterov = recipe.has_steps = true;
  recipe.settings.arithmetic.fused = true;
  return recipe;
}

// The orthogonal matrix stays in bf16, so multiplying it by the scale rounds again.
Recipe kellerjordan() {
  Recipe recipe = recipe_of("kellerjordan", "SingleDeviceMuon", "KellerJordan/Muon 857d1adc, 2025-11-23, muon.py",
                            {0.02, 0, true, Scale::tall, "simple"});
  ElementArithmetic& arithmetic = recipe.settings.arithmetic;
  arithmetic.lerp = arithmetic.fused = arithmetic.round_scaled = true;
  arithmetic.scaling = Scaling::twice;
  return recipe;
}

Recipe torch() {
  Recipe recipe = recipe_of("torch", "torch.optim.Muon", "PyTorch 2.13.0, torch/optim/_muon.py",
                            {1e-3, 0.1, true, Scale::tall, "simple"});
  recipe.has_nesterov = recipe.has_steps = true;
  recipe.scales = {{"original", Scale::tall}, {"match_rms_adamw", Scale::matched_rms}};
  recipe.settings.arithmetic.lerp = recipe.settings.arithmetic.fused = true;
  recipe.settings.newton_schulz.normalization.floor = true;
  recipe.settings.newton_schulz.lines = IterationLines::one_call;
  return recipe;
}

Recipe torch_rms() {
  Recipe recipe = torch();
  recipe.name = "torch-rms";
  recipe.settings.arithmetic.scale = Scale::matched_rms;
  std::swap(recipe.scales[0], recipe.scales[1]);
  return recipe;
}

Recipe emerging(const std::string& name = "emerging", const char* coefficients = "quintic",
                Scale scale = Scale::largest) {
  Recipe recipe = recipe_of(
      name, "Muon of Emerging-Optimizers",
      "NVIDIA-NeMo/Emerging-Optimizers fd772926, 2026-08-20, orthogonalized_optimizers/muon.py, muon_utils.py",
      {3e-4, 0.01, false, scale, coefficients});
  recipe.has_nesterov = recipe.has_steps = true;
  recipe.scales = {{"spectral", Scale::largest}, {"unit_rms_norm", Scale::ratio}, {"shape_scaling", Scale::tall}};
  std::stable_partition(recipe.scales.begin(), recipe.scales.end(),
                        [scale](const auto& each) { return each.second == scale; });
  ElementArithmetic& arithmetic = recipe.settings.arithmetic;
  arithmetic.lerp = arithmetic.fused = true;
  arithmetic.decay = Decay::subtracts;
  arithmetic.scaling = Scaling::thrice;
  Normalization& normalization = recipe.settings.newton_schulz.normalization;
  normalization.epsilon = 1e-15;
  normalization.floor = true;
  normalization.round_first = false;
  recipe.settings.newton_schulz.lines = IterationLines::one_call;
  return recipe;
}

Recipe dion() {
  Recipe recipe =
      recipe_of("dion", "Muon of dion", "microsoft/dion 0a059a45, 2026-08-07, dion/muon.py, polar_express.py",
                {0.01, 0.01, false, Scale::ratio, "polar_dion"});
  recipe.has_nesterov = recipe.has_cautious = true;
  recipe.scales = {{"spectral_norm", Scale::ratio}, {"rms_norm", Scale::matched_rms}, {"none", Scale::none}};
  recipe.settings.arithmetic.round_scaled = true;
  NewtonSchulzSettings& iteration = recipe.settings.newton_schulz;
  iteration.normalization.epsilon = 1e-8;
  iteration.normalization.cushion = 1.02;
  iteration.lines = IterationLines::square_first;
  iteration.from_the_right = true;
  return recipe;
}

Recipe dion_quintic() {
  Recipe recipe = dion();
  recipe.name = "dion-quintic";
  recipe.source = "microsoft/dion 0a059a45, 2026-08-07, dion/muon.py, newton_schulz_triton.py";
  recipe.coefficients = "quintic";
  recipe.settings.newton_schulz.normalization.cushion = 1;
  recipe.settings.newton_schulz.from_the_right = false;
  return recipe;
}

Recipe dion_reference() {
  Recipe recipe = recipe_of("dion-reference", "Muon of muon_reference.py",
                            "microsoft/dion 0a059a45, 2026-08-07, dion/muon_reference.py",
                            {1e-3, 0.1, true, Scale::ratio, "simple"});
  recipe.has_nesterov = recipe.has_steps = true;
  recipe.scales = dion().scales;
  recipe.settings.arithmetic.fused = true;
  recipe.settings.newton_schulz.normalization.epsilon = 1e-8;
  recipe.settings.newton_schulz.lines = IterationLines::square_first;
  return recipe;
}

Recipe normuon() {
  Recipe recipe = dion();
  recipe.name = "normuon";
  recipe.whose = "NorMuon of dion";
  recipe.source = "microsoft/dion 0a059a45, 2026-08-07, dion/normuon.py, polar_express.py";
  recipe.settings.second_moment.used = true;
  recipe.settings.arithmetic.round_scaled = false;  // float32 from the division on
  return recipe;
}

// The class has no defaults. These are those of GPT.setup_optimizer (gpt.py).
Recipe nanochat() {
  Recipe recipe =
      recipe_of("nanochat", "MuonAdamW of nanochat", "karpathy/nanochat 92d63d4e, 2026-07-03, nanochat/optim.py",
                {0.02, 0, true, Scale::tall, "polar_dion"});
  recipe.has_steps = true;
  ElementArithmetic& arithmetic = recipe.settings.arithmetic;
  arithmetic.lerp = arithmetic.float_momentum = arithmetic.decay_scaled = true;
  arithmetic.decay = Decay::cautious;
  NewtonSchulzSettings& iteration = recipe.settings.newton_schulz;
  iteration.normalization.epsilon = 1e-6;
  iteration.normalization.cushion = 1.01;
  iteration.normalization.equal_rows = true;
  iteration.lines = IterationLines::square_first;
  iteration.from_the_right = true;
  SecondMoment& second_moment = recipe.settings.second_moment;
  second_moment.used = second_moment.floor = second_moment.longer_side = second_moment.unit_norm = true;
  second_moment.beta2 = 0.9f;
  second_moment.epsilon = 1e-10f;
  return recipe;
}

// The class iterates in float16, which no rank here computes in.
Recipe gram() {
  Recipe recipe = recipe_of(
      "gram", "Muon of gram-newton-schulz",
      "Dao-AILab/gram-newton-schulz f08f25e1, 2026-06-26, gram_newton_schulz/gram_newton_schulz.py, muon/muon.py",
      {1e-3, 0.1, true, Scale::matched_rms, "polar_gram"});
  recipe.has_nesterov = true;
  recipe.scales = {{"rms_norm", Scale::matched_rms}, {"spectral_norm", Scale::ratio}, {"none", Scale::none}};
  recipe.settings.arithmetic.round_scaled = true;
  NewtonSchulzSettings& iteration = recipe.settings.newton_schulz;
  iteration.normalization.round_first = false;
  iteration.lines = IterationLines::one_call;
  iteration.gram = true;
  return recipe;
}

std::vector<Recipe> all_recipes() {
  std::vector<Recipe> all = {moonshot(), kellerjordan(), torch(), emerging(), dion(), torch_rms()};
  for (const auto& [name, set] : {std::pair{"simple", "simple"},
                                  {"polar-express", "polar_express"},
                                  {"cans", "cans"},
                                  {"aol", "aol"},
                                  {"deepseekv4", "deepseekv4"},
                                  {"cubic5", "cubic5"}})
    all.push_back(emerging(fmt::format("emerging-{}", name), set));
  all.push_back(emerging("emerging-shape-scaling", "quintic", Scale::tall));
  all.push_back(emerging("emerging-unit-rms-norm", "quintic", Scale::ratio));
  for (const auto& make : {dion_quintic, dion_reference, normuon, nanochat, gram}) all.push_back(make());
  for (Recipe& recipe : all)
    take_coefficients(recipe.settings.newton_schulz, recipe.coefficients, recipe.settings.newton_schulz.steps);
  return all;
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = all_recipes();
  return all;
}

const Recipe& recipe_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Recipe& recipe : recipes()) {
    if (recipe.name == name) return recipe;
    known.push_back(recipe.name);
  }
  throw UsageError("--recipe " + in_quotes(name) + " is not known; it takes " + alternatives(known));
}

MuonSettings called(const Recipe& recipe, const RecipeArguments& asked) {
  const auto require = [&](bool has, const char* option, const char* instead) {
    if (!has)
      throw UsageError(fmt::format("{} has no place in --recipe {}, because {} has no such argument; {}", option,
                                   recipe.name, recipe.whose, instead));
  };
  MuonSettings settings = recipe.settings;
  if (asked.lr) settings.lr = static_cast<float>(*asked.lr);
  if (asked.momentum) settings.momentum = *asked.momentum;
  if (asked.weight_decay) settings.weight_decay = static_cast<float>(*asked.weight_decay);
  require(!asked.nesterov || recipe.has_nesterov, asked.nesterov.value_or(true) ? "--nesterov" : "--no-nesterov",
          settings.nesterov ? "it always looks ahead" : "it never looks ahead");
  settings.nesterov = asked.nesterov.value_or(settings.nesterov);
  require(!asked.steps || recipe.has_steps, "--ns-steps", "it always takes five steps");
  if (asked.steps) take_coefficients(settings.newton_schulz, recipe.coefficients, *asked.steps);
  require(!asked.beta2 || settings.second_moment.used, "--beta2", "normuon and nanochat have one");
  if (asked.beta2) settings.second_moment.beta2 = static_cast<float>(*asked.beta2);
  require(!asked.cautious || recipe.has_cautious, "--cautious",
          recipe.settings.arithmetic.decay == Decay::cautious ? "it is always cautious" : "dion and normuon have one");
  if (asked.cautious) settings.arithmetic.decay = Decay::cautious;
  if (asked.scale.empty()) return settings;
  require(!recipe.scales.empty(), "--adjust-lr", "it has one way to scale an update");
  std::vector<std::string> words;
  for (const auto& [word, scale] : recipe.scales) {
    words.push_back(word);
    if (word == asked.scale) settings.arithmetic.scale = scale;
  }
  if (std::find(words.begin(), words.end(), asked.scale) == words.end())
    throw UsageError(fmt::format("--adjust-lr {} is not known to --recipe {}; it takes {}", as_typed(asked.scale),
                                 recipe.name, alternatives(words)));
  return settings;
}

MuonSettings with_recipe(const std::string& name, const MuonSettings& knobs) {
  MuonSettings settings = recipe_named(name).settings;
  settings.lr = knobs.lr;
  settings.momentum = knobs.momentum;
  settings.weight_decay = knobs.weight_decay;
  settings.rms = knobs.rms;
  settings.newton_schulz.precision = knobs.newton_schulz.precision;
  settings.newton_schulz.products = knobs.newton_schulz.products;
  settings.newton_schulz.threads = knobs.newton_schulz.threads;
  settings.gather = knobs.gather;
  settings.fused = knobs.fused;
  return settings;
}

const std::vector<RecipeLine>& recipe_lines() {
  using S = MuonSettings;
  static const std::vector<RecipeLine> lines = {
      {"decay",
       [](const S& s) -> std::string {
         constexpr const char* kTexts[] = {"w·(1−lr·wd)", "w−(lr·wd)·w", "where signs agree"};
         return kTexts[static_cast<int>(s.arithmetic.decay)];
       },
       [](S& mine, const S& other) {
         mine.arithmetic.decay = other.arithmetic.decay;
         mine.arithmetic.decay_scaled = other.arithmetic.decay_scaled;
       }},
      {"momentum", [](const S& s) -> std::string { return s.arithmetic.lerp ? "lerp(m,g,1−μ)" : "μm+g"; },
       [](S& mine, const S& other) {
         mine.arithmetic.lerp = other.arithmetic.lerp;
         mine.arithmetic.float_momentum = other.arithmetic.float_momentum;
       }},
      {"Nesterov", [](const S& s) -> std::string { return s.nesterov ? "yes" : "no"; },
       [](S& mine, const S& other) { mine.nesterov = other.nesterov; }},
      {"divides by",
       [](const S& s) {
         const Normalization& n = s.newton_schulz.normalization;
         const std::string norm = n.cushion == 1 ? "‖X‖" : fmt::format("{}‖X‖", n.cushion);
         return n.floor ? fmt::format("max({},{:.0e})", norm, n.epsilon) : fmt::format("{}+{:.0e}", norm, n.epsilon);
       },
       [](S& mine, const S& other) {
         Normalization& n = mine.newton_schulz.normalization;
         const Normalization before = n;
         n = other.newton_schulz.normalization;
         n.round_first = before.round_first;
         n.equal_rows = before.equal_rows;
       }},
      {"to bf16",
       [](const S& s) -> std::string {
         return s.newton_schulz.normalization.round_first ? "before norm" : "after division";
       },
       [](S& mine, const S& other) {
         mine.newton_schulz.normalization.round_first = other.newton_schulz.normalization.round_first;
       }},
      {"rows before",
       [](const S& s) -> std::string {
         return s.newton_schulz.normalization.equal_rows ? "made equal" : "as they are";
       },
       [](S& mine, const S& other) {
         mine.newton_schulz.normalization.equal_rows = other.newton_schulz.normalization.equal_rows;
       }},
      {"coefficients",
       [](const S& s) -> std::string {
         const std::string name = coefficients_name(s.newton_schulz);
         return name == "simple" ? "3.4445 × 5" : name;
       },
       [](S& mine, const S& other) { mine.newton_schulz.schedule = other.newton_schulz.schedule; }},
      {"square term",
       [](const S& s) -> std::string {
         constexpr const char* kTexts[] = {"(cA)A", "c(AA)", "bA+cAA at once"};
         return kTexts[static_cast<int>(s.newton_schulz.lines)];
       },
       [](S& mine, const S& other) { mine.newton_schulz.lines = other.newton_schulz.lines; }},
      {"tall matrix",
       [](const S& s) -> std::string { return s.newton_schulz.from_the_right ? "X(XᵀX)" : "transposed"; },
       [](S& mine, const S& other) { mine.newton_schulz.from_the_right = other.newton_schulz.from_the_right; }},
      {"iterates on", [](const S& s) -> std::string { return s.newton_schulz.gram ? "X·Xᵀ" : "X"; },
       [](S& mine, const S& other) { mine.newton_schulz.gram = other.newton_schulz.gram; }},
      {"scale",
       [](const S& s) -> std::string {
         constexpr const char* kTexts[] = {"0.2√max(A,B)", "√max(A,B)", "√max(1,A/B)", "√(A/B)", "1"};
         return kTexts[static_cast<int>(s.arithmetic.scale)];
       },
       [](S& mine, const S& other) { mine.arithmetic.scale = other.arithmetic.scale; }},
      {"multiplied",
       [](const S& s) -> std::string {
         const std::string times = s.arithmetic.scaling == Scaling::once    ? "once"
                                   : s.arithmetic.scaling == Scaling::twice ? "twice"
                                                                            : "3 times";
         return times + (s.arithmetic.round_scaled ? ", rounded" : "");
       },
       [](S& mine, const S& other) {
         mine.arithmetic.scaling = other.arithmetic.scaling;
         mine.arithmetic.round_scaled = other.arithmetic.round_scaled;
         mine.arithmetic.fused = other.arithmetic.fused;
       }},
      {"divided by",
       [](const S& s) -> std::string {
         return !s.second_moment.used         ? "nothing"
                : s.second_moment.longer_side ? "√v of rows or columns"
                                              : "√v of rows";
       },
       [](S& mine, const S& other) { mine.second_moment = other.second_moment; }},
  };
  return lines;
}

}  // namespace muonwalk
