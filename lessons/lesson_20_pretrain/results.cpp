#include "lessons/lesson_20_pretrain/results.hpp"

#include "sim/terminal/write_or_fail.hpp"
#include "src/io/file_beside.hpp"

namespace muonwalk::sim {

void print_results_of(LessonCore& lesson, const PretrainingRequest& request,
                      const std::vector<std::unique_ptr<SerialRun>>& references) {
  const std::vector<LossCurve> curves = curves_of(references);
  lesson.say("\n" + loss_table(curves) + "\n");
  if (references.size() == 2) lesson.say(lead_table(curves[0], curves[1]) + "\n");
  for (const auto& reference : references) lesson.say(spectrum_line(*reference));  // of one matrix
  for (const auto& reference : references) lesson.say(written_line(*reference, "Each rank "));
  lesson.picture("losses", curves_svg("Losses of AdamW and of Muon", curves));
  if (!request.csv.empty()) write_or_fail([&] { write_text_file(request.csv, curves_csv(curves)); });
}

}  // namespace muonwalk::sim
