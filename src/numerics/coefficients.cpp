#include "src/numerics/coefficients.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {

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
        {"polar_gram",
         "Amsel et al., divided by a safety factor of 1.05, as in gram-newton-schulz",
         {{7.892582874424408f, -20.38301394587957f, 13.555306149406924f},
          {3.911484868135431f, -2.5464635929060884f, 0.4268988319673074f},
          {3.760657955697423f, -2.512819018216563f, 0.4323647349070073f},
          {3.160399673686287f, -2.149649518898498f, 0.3996366907664389f},
          {2.1910971618617303f, -1.441662010214663f, 0.328146487623155f}},
         AfterLast::no_fewer},
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

void take_coefficients(NewtonSchulzSettings& settings, const std::string& name, std::optional<int> steps) {
  std::vector<std::string> known;
  for (const CoefficientSet& set : coefficient_sets()) {
    known.push_back(set.name);
    if (set.name != name) continue;
    settings.steps = steps.value_or(static_cast<int>(set.quintics.size()));
    settings.schedule = set.of_steps(settings.steps);
    if (name == "simple") settings.schedule.clear();  // the quintic, which every engine knows
    return;
  }
  throw UsageError("--coefficients " + in_quotes(name) + " are not known; it takes " + alternatives(known));
}

std::string coefficients_name(const NewtonSchulzSettings& settings) {
  if (settings.schedule.empty()) return "simple";
  for (const CoefficientSet& set : coefficient_sets())
    if (set.quintics.front().a == settings.schedule.front().a) return set.name;
  return "others";
}

}  // namespace muonwalk
