#include "src/optim/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

// A class's numbers, in the order of the table in tests/golden/recipes/README.md.
MuonSettings defaults(double lr, double decay, bool nesterov, Normalization normalization, Scale scale) {
  MuonSettings settings;
  settings.lr = static_cast<float>(lr);
  settings.momentum = 0.95;
  settings.weight_decay = static_cast<float>(decay);
  settings.nesterov = nesterov;
  settings.newton_schulz.normalization = normalization;
  settings.arithmetic.scale = scale;
  return settings;
}

Recipe moonshot() {
  MuonSettings s = defaults(1e-3, 0.1, true, {}, Scale::matched_rms);
  s.arithmetic.fused = true;
  return {"moonshot",
          "Muon of toy_train.py",
          "MoonshotAI/Moonlight c2ad5b20, 2025-08-02, examples/toy_train.py",
          s,
          "simple",
          true,
          true};
}

// The orthogonal matrix stays in bf16, so multiplying it by the scale rounds again.
Recipe kellerjordan() {
  MuonSettings s = defaults(0.02, 0, true, {}, Scale::tall);
  s.arithmetic.lerp = s.arithmetic.fused = s.arithmetic.round_scaled = true;
  s.arithmetic.scaling = Scaling::twice;
  return {"kellerjordan", "SingleDeviceMuon", "KellerJordan/Muon 857d1adc, 2025-11-23, muon.py", s, "simple"};
}

Recipe torch() {
  MuonSettings s = defaults(1e-3, 0.1, true, {1e-7, true}, Scale::tall);
  s.arithmetic.lerp = s.arithmetic.fused = true;
  s.newton_schulz.lines = IterationLines::one_call;
  Recipe recipe{"torch", "torch.optim.Muon", "PyTorch 2.13.0, torch/optim/_muon.py", s, "simple", true, true};
  recipe.scales = {{"original", Scale::tall}, {"match_rms_adamw", Scale::matched_rms}};
  return recipe;
}

// The same class with other arguments: another scale, or other coefficients.
Recipe named(const Recipe& base, const std::string& name, const std::string& scale, const std::string& coefficients) {
  Recipe recipe = base;
  recipe.name = name;
  std::stable_partition(recipe.scales.begin(), recipe.scales.end(),
                        [&](const auto& each) { return each.first == scale; });
  if (!scale.empty()) recipe.settings.arithmetic.scale = recipe.scales.front().second;
  if (!coefficients.empty()) recipe.coefficients = coefficients;
  return recipe;
}

Recipe emerging() {
  MuonSettings s = defaults(3e-4, 0.01, false, {1e-15, true, 1, false}, Scale::largest);
  s.arithmetic.lerp = s.arithmetic.fused = true;
  s.arithmetic.decay = Decay::subtracts;
  s.arithmetic.scaling = Scaling::thrice;
  s.newton_schulz.lines = IterationLines::one_call;
  Recipe recipe{
      "emerging",
      "Muon of Emerging-Optimizers",
      "NVIDIA-NeMo/Emerging-Optimizers fd772926, 2026-08-20, orthogonalized_optimizers/muon.py, muon_utils.py",
      s,
      "quintic",
      true,
      true};
  recipe.scales = {{"spectral", Scale::largest}, {"unit_rms_norm", Scale::ratio}, {"shape_scaling", Scale::tall}};
  return recipe;
}

Recipe dion() {
  MuonSettings s = defaults(0.01, 0.01, false, {1e-8, false, 1.02}, Scale::ratio);
  s.newton_schulz.lines = IterationLines::square_first;
  s.newton_schulz.from_the_right = true;
  s.arithmetic.round_scaled = true;
  Recipe recipe{"dion", "Muon of dion", "microsoft/dion 0a059a45, 2026-08-07, dion/muon.py, polar_express.py",
                s,      "polar_dion",   true};
  recipe.has_cautious = true;
  recipe.scales = {{"spectral_norm", Scale::ratio}, {"rms_norm", Scale::matched_rms}, {"none", Scale::none}};
  return recipe;
}

Recipe dion_quintic() {
  Recipe recipe = named(dion(), "dion-quintic", "", "quintic");
  recipe.source = "microsoft/dion 0a059a45, 2026-08-07, dion/muon.py, newton_schulz_triton.py";
  recipe.settings.newton_schulz.normalization.cushion = 1;
  recipe.settings.newton_schulz.from_the_right = false;
  return recipe;
}

Recipe dion_reference() {
  MuonSettings s = defaults(1e-3, 0.1, true, {1e-8}, Scale::ratio);
  s.newton_schulz.lines = IterationLines::square_first;
  s.arithmetic.fused = true;
  Recipe recipe{"dion-reference",
                "Muon of muon_reference.py",
                "microsoft/dion 0a059a45, 2026-08-07, dion/muon_reference.py",
                s,
                "simple",
                true,
                true};
  recipe.scales = dion().scales;
  return recipe;
}

Recipe normuon() {
  Recipe recipe = named(dion(), "normuon", "", "");
  recipe.whose = "NorMuon of dion";
  recipe.source = "microsoft/dion 0a059a45, 2026-08-07, dion/normuon.py, polar_express.py";
  recipe.settings.second_moment.used = true;
  recipe.settings.arithmetic.round_scaled = false;  // float32 from the division on
  return recipe;
}

// The class has no defaults. These are those of GPT.setup_optimizer (gpt.py).
Recipe nanochat() {
  MuonSettings s = defaults(0.02, 0, true, {1e-6, false, 1.01}, Scale::tall);
  s.newton_schulz.normalization.equal_rows = true;
  s.newton_schulz.lines = IterationLines::square_first;
  s.newton_schulz.from_the_right = true;
  s.arithmetic.lerp = s.arithmetic.float_momentum = true;
  s.arithmetic.decay = Decay::cautious;
  s.arithmetic.decay_scaled = true;
  s.second_moment = {true, 0.9f, 1e-10f, true, true, true};
  Recipe recipe{"nanochat", "MuonAdamW of nanochat", "karpathy/nanochat 92d63d4e, 2026-07-03, nanochat/optim.py", s,
                "polar_dion"};
  recipe.has_steps = true;
  return recipe;
}

std::vector<Recipe> all_recipes() {
  std::vector<Recipe> all = {moonshot(), kellerjordan(), torch(),
                             emerging(), dion(),         named(torch(), "torch-rms", "match_rms_adamw", "")};
  for (const char* set : {"simple", "polar_express", "cans", "aol", "deepseekv4", "cubic5"}) {
    std::string name = fmt::format("emerging-{}", set);
    std::replace(name.begin(), name.end(), '_', '-');
    all.push_back(named(emerging(), name, "", set));
  }
  all.push_back(named(emerging(), "emerging-shape-scaling", "shape_scaling", ""));
  all.push_back(named(emerging(), "emerging-unit-rms-norm", "unit_rms_norm", ""));
  for (const auto& make : {dion_quintic, dion_reference, normuon, nanochat}) all.push_back(make());
  for (Recipe& recipe : all)
    take_coefficients(recipe.settings, recipe.coefficients, recipe.settings.newton_schulz.steps);
  return all;
}

std::string names(const std::vector<std::string>& all) {
  return fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
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
  throw UsageError("--recipe " + in_quotes(name) + " is not known; it takes " + names(known));
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
  if (asked.steps) take_coefficients(settings, recipe.coefficients, *asked.steps);
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
                                 recipe.name, names(words)));
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
         return !s.second_moment.used ? "nothing" : s.second_moment.shorter ? "√v of rows or columns" : "√v of rows";
       },
       [](S& mine, const S& other) { mine.second_moment = other.second_moment; }},
  };
  return lines;
}

const char* after_last_text(AfterLast after) {
  constexpr const char* kTexts[] = {"repeats the last", "begins again", "takes no more", "takes these alone"};
  return kTexts[static_cast<int>(after)];
}

std::vector<Quintic> CoefficientSet::of_steps(int steps) const {
  const int known = static_cast<int>(quintics.size());
  if ((after == AfterLast::nothing && steps > known) || (after == AfterLast::no_fewer && steps != known))
    throw UsageError(fmt::format("--ns-steps {} does not go with the coefficients {}, which are for {}{}", steps, name,
                                 after == AfterLast::nothing ? "at most " : "", count_text(known, "step")));
  std::vector<Quintic> all;
  for (int step = 0; step < steps; ++step)
    all.push_back(quintics[after == AfterLast::begins_again ? step % known : std::min(step, known - 1)]);
  return all;
}

const std::vector<CoefficientSet>& coefficient_sets() {
  static const std::vector<CoefficientSet> sets = [] {
    const Quintic jordan, halves{2.0f, -1.5f, 0.5f};
    std::vector<Quintic> deepseek(8, jordan);
    deepseek.insert(deepseek.end(), 2, halves);
    return std::vector<CoefficientSet>{
        {"simple", "Keller Jordan, \"Muon\", 2024", std::vector<Quintic>(5, jordan), AfterLast::begins_again},
        {"quintic",
         "You Jiacheng, in modded-nanogpt",
         {{4.0848f, -6.8946f, 2.9270f},
          {3.9505f, -6.3029f, 2.6377f},
          {3.7418f, -5.5913f, 2.3037f},
          {2.8769f, -3.1427f, 1.2046f},
          {2.8366f, -3.0525f, 1.2012f}},
         AfterLast::begins_again},
        {"polar_express",
         "Amsel et al., arXiv:2505.16932, as in Emerging-Optimizers",
         {{8.2051f, -22.9019f, 16.4607f},
          {4.0664f, -2.8612f, 0.5184f},
          {3.9096f, -2.8234f, 0.5250f},
          {3.2856f, -2.4153f, 0.4853f},
          {2.2779f, -1.6198f, 0.3985f},
          {1.8726f, -1.2307f, 0.3585f},
          {1.8564f, -1.2132f, 0.3568f},
          {1.8750f, -1.2500f, 0.3750f}},
         AfterLast::repeats},
        {"polar_dion",
         "Amsel et al., made for a cushion of 0.02, as in dion and nanochat",
         {{8.156554524902461f, -22.48329292557795f, 15.878769915207462f},
          {4.042929935166739f, -2.808917465908714f, 0.5000178451051316f},
          {3.8916678022926607f, -2.772484153217685f, 0.5060648178503393f},
          {3.285753657755655f, -2.3681294933425376f, 0.46449024233003106f},
          {2.3465413258596377f, -1.7097828382687081f, 0.42323551169305323f}},
         AfterLast::nothing},
        {"cans",
         "CANS, in Emerging-Optimizers",
         {{8.4703f, -25.1081f, 18.6293f},
          {4.1828f, -3.1087f, 0.5806f},
          {3.9619f, -2.9541f, 0.5630f},
          {3.2866f, -2.4647f, 0.5074f},
          {2.2737f, -1.6447f, 0.4162f}},
         AfterLast::repeats},
        {"aol",
         "thib-s/flash-newton-schulz, in Emerging-Optimizers",
         {{4.0098f, -7.0585f, 2.4635f},
          {3.4585f, -5.5479f, 2.5959f},
          {2.7573f, -3.2939f, 1.4254f},
          {2.7215f, -3.0494f, 1.3169f}},
         AfterLast::begins_again},
        {"deepseekv4", "DeepSeek-V4, in microsoft/dion#67", deepseek, AfterLast::repeats},
        {"cubic5",
         "cubic polynomials of Emerging-Optimizers",
         {{3.3656576f, -3.3420992f, 0},
          {2.5744352f, -1.4957376f, 0},
          {2.5368962f, -1.4312570f, 0},
          {2.4418906f, -1.2764040f, 0},
          {2.2230472f, -0.9630650f, 0}},
         AfterLast::no_fewer},
    };
  }();
  return sets;
}

void take_coefficients(MuonSettings& settings, const std::string& name) {
  for (const CoefficientSet& set : coefficient_sets())
    if (set.name == name) return take_coefficients(settings, name, static_cast<int>(set.quintics.size()));
  take_coefficients(settings, name, 0);  // which refuses it
}

void take_coefficients(MuonSettings& settings, const std::string& name, int steps) {
  std::vector<std::string> known;
  for (const CoefficientSet& set : coefficient_sets()) {
    known.push_back(set.name);
    if (set.name != name) continue;
    settings.newton_schulz.schedule = set.of_steps(steps);
    if (name == "simple") settings.newton_schulz.schedule.clear();  // the quintic, which every engine knows
    settings.newton_schulz.steps = steps;
    return;
  }
  throw UsageError("--coefficients " + in_quotes(name) + " are not known; it takes " + names(known));
}

std::string coefficients_name(const NewtonSchulzSettings& settings) {
  if (settings.schedule.empty()) return "simple";
  for (const CoefficientSet& set : coefficient_sets())
    if (set.quintics.front().a == settings.schedule.front().a) return set.name;
  return "others";
}

}  // namespace muonwalk
