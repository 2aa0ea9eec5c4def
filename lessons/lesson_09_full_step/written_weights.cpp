#include "lessons/lesson_09_full_step/written_weights.hpp"

#include <fmt/format.h>

#include "sim/terminal/write_or_fail.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {

void write_weights(LessonCore& lesson, const FileTraining& files, const std::string& out,
                   const std::vector<std::vector<NamedMatrix>>& held) {
  lesson.in_parent([&] {
    if (!lesson.all_equal()) return;
    const std::vector<Matrix> whole = join_held_slices(files.parameters(), lesson.options().grid, held);
    write_or_fail([&] { files.write(whole); });
    lesson.say(fmt::format("wrote   {} new {} to {}", files.parameters().size(),
                           files.parameters().size() == 1 ? "tensor" : "tensors", visible_name(out)));
    if (!files.unchanged().empty())
      lesson.say(fmt::format("        not trained and written unchanged: {}", visible_names(files.unchanged())));
  });
}

}  // namespace muonwalk::sim
