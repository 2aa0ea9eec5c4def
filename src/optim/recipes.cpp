#include "src/optim/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

const std::vector<Quintic>& quintics_of(const std::string& name) {
  const auto& sets = coefficient_sets();
  return std::find_if(sets.begin(), sets.end(), [&](const CoefficientSet& set) { return set.name == name; })->quintics;
}

// MoonshotAI/Moonlight, examples/toy_train.py: the defaults of MuonSettings.
MuonSettings moonshot() { return {}; }

// KellerJordan/Muon, muon.py. The orthogonal matrix stays in bf16, so multiplying it by the scale rounds again.
MuonSettings kellerjordan() {
  MuonSettings settings;
  settings.arithmetic.lerp = true;
  settings.arithmetic.scale = Scale::tall;
  settings.arithmetic.scaling = Scaling::twice;
  settings.arithmetic.round_scaled = true;
  return settings;
}

// PyTorch, torch/optim/_muon.py.
MuonSettings torch() {
  MuonSettings settings;
  settings.arithmetic.lerp = true;
  settings.arithmetic.scale = Scale::tall;
  settings.newton_schulz.normalization.floor = true;
  return settings;
}

// NVIDIA-NeMo/Emerging-Optimizers, orthogonalized_optimizer.py, muon.py and muon_utils.py.
MuonSettings emerging() {
  MuonSettings settings;
  settings.arithmetic.decay_subtracts = true;
  settings.arithmetic.lerp = true;
  settings.nesterov = false;
  settings.newton_schulz.normalization = {1e-15, true, 1, false};
  settings.newton_schulz.schedule = quintics_of("quintic");
  settings.newton_schulz.product_first = true;
  settings.arithmetic.scale = Scale::largest;
  settings.arithmetic.scaling = Scaling::thrice;
  return settings;
}

// microsoft/dion, dion/muon.py and megabatch_base.py.
MuonSettings dion() {
  MuonSettings settings;
  settings.nesterov = false;
  settings.newton_schulz.normalization = {1e-8, false, 1.02, true};
  settings.newton_schulz.schedule = quintics_of("polar_express");
  settings.newton_schulz.product_first = true;
  settings.newton_schulz.from_the_right = true;
  settings.arithmetic.scale = Scale::ratio;
  settings.arithmetic.round_scaled = true;
  return settings;
}

std::string names(const std::vector<std::string>& all) {
  return fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      {"moonshot", "MoonshotAI/Moonlight, examples/toy_train.py", moonshot()},
      {"kellerjordan", "KellerJordan/Muon, muon.py", kellerjordan()},
      {"torch", "PyTorch, torch/optim/_muon.py", torch()},
      {"emerging", "NVIDIA-NeMo/Emerging-Optimizers, orthogonalized_optimizers", emerging()},
      {"dion", "microsoft/dion, dion/muon.py", dion()}};
  return all;
}

MuonSettings with_recipe(const std::string& name, const MuonSettings& knobs) {
  std::vector<std::string> known;
  for (const Recipe& recipe : recipes()) {
    known.push_back(recipe.name);
    if (recipe.name != name) continue;
    MuonSettings settings = recipe.settings;
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
  throw UsageError("--recipe " + in_quotes(name) + " is not known; it takes " + names(known));
}

const std::vector<RecipeLine>& recipe_lines() {
  using S = MuonSettings;
  static const std::vector<RecipeLine> lines = {
      {"decay", [](const S& s) -> std::string { return s.arithmetic.decay_subtracts ? "w−(lr·wd)·w" : "w·(1−lr·wd)"; },
       [](S& mine, const S& other) { mine.arithmetic.decay_subtracts = other.arithmetic.decay_subtracts; }},
      {"momentum", [](const S& s) -> std::string { return s.arithmetic.lerp ? "lerp(m,g,1−μ)" : "μm+g"; },
       [](S& mine, const S& other) { mine.arithmetic.lerp = other.arithmetic.lerp; }},
      {"Nesterov", [](const S& s) -> std::string { return s.nesterov ? "yes" : "no"; },
       [](S& mine, const S& other) { mine.nesterov = other.nesterov; }},
      {"divides by",
       [](const S& s) {
         const Normalization& n = s.newton_schulz.normalization;
         const std::string norm = n.cushion == 1 ? "‖X‖" : fmt::format("{}‖X‖", n.cushion);
         return n.floor ? fmt::format("max({},{:.0e})", norm, n.epsilon) : fmt::format("{}+{:.0e}", norm, n.epsilon);
       },
       [](S& mine, const S& other) {
         const bool round_first = mine.newton_schulz.normalization.round_first;
         mine.newton_schulz.normalization = other.newton_schulz.normalization;
         mine.newton_schulz.normalization.round_first = round_first;
       }},
      {"to bf16",
       [](const S& s) -> std::string {
         return s.newton_schulz.normalization.round_first ? "before norm" : "after division";
       },
       [](S& mine, const S& other) {
         mine.newton_schulz.normalization.round_first = other.newton_schulz.normalization.round_first;
       }},
      {"coefficients",
       [](const S& s) -> std::string {
         if (s.newton_schulz.schedule.empty()) return "3.4445 × 5";
         return s.newton_schulz.schedule.front().a > 8 ? "polar_express" : "quintic";
       },
       [](S& mine, const S& other) { mine.newton_schulz.schedule = other.newton_schulz.schedule; }},
      {"square term", [](const S& s) -> std::string { return s.newton_schulz.product_first ? "c(AA)" : "(cA)A"; },
       [](S& mine, const S& other) { mine.newton_schulz.product_first = other.newton_schulz.product_first; }},
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
       }},
  };
  return lines;
}

const std::vector<CoefficientSet>& coefficient_sets() {
  static const std::vector<CoefficientSet> sets = [] {
    const Quintic jordan, halves{2.0f, -1.5f, 0.5f};
    std::vector<Quintic> deepseek(8, jordan);
    deepseek.insert(deepseek.end(), 2, halves);
    return std::vector<CoefficientSet>{
        {"simple", "Keller Jordan, \"Muon\", 2024", std::vector<Quintic>(5, jordan)},
        {"quintic",
         "You Jiacheng, in modded-nanogpt",
         {{4.0848f, -6.8946f, 2.9270f},
          {3.9505f, -6.3029f, 2.6377f},
          {3.7418f, -5.5913f, 2.3037f},
          {2.8769f, -3.1427f, 1.2046f},
          {2.8366f, -3.0525f, 1.2012f}}},
        {"polar_express",
         "Amsel et al., arXiv:2505.16932, with a cushion of 0.02 as in modded-nanogpt and dion",
         {{8.156554524902461f, -22.48329292557795f, 15.878769915207462f},
          {4.042929935166739f, -2.808917465908714f, 0.5000178451051316f},
          {3.8916678022926607f, -2.772484153217685f, 0.5060648178503393f},
          {3.285753657755655f, -2.3681294933425376f, 0.46449024233003106f},
          {2.3465413258596377f, -1.7097828382687081f, 0.42323551169305323f}}},
        {"aol",
         "thib-s/flash-newton-schulz, in Emerging-Optimizers",
         {{4.0098f, -7.0585f, 2.4635f},
          {3.4585f, -5.5479f, 2.5959f},
          {2.7573f, -3.2939f, 1.4254f},
          {2.7215f, -3.0494f, 1.3169f}}},
        {"deepseekv4", "DeepSeek-V4, in microsoft/dion#67", deepseek},
    };
  }();
  return sets;
}

void take_coefficients(MuonSettings& settings, const std::string& name) {
  std::vector<std::string> known;
  for (const CoefficientSet& set : coefficient_sets()) {
    known.push_back(set.name);
    if (set.name != name) continue;
    settings.newton_schulz.schedule = set.quintics;
    settings.newton_schulz.steps = static_cast<int>(set.quintics.size());
    return;
  }
  throw UsageError("--coefficients " + in_quotes(name) + " are not known; it takes " + names(known));
}

}  // namespace muonwalk
