#include "sim/lesson_14/memory_report.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "sim/lesson_14/memory_picture.hpp"
#include "sim/lesson_14/memory_text.hpp"
#include "sim/lesson_14/model_memory.hpp"

namespace muonwalk::sim {
namespace {

constexpr Index kExactInFloat = Index{1} << 24;

// The first of the ranks that hold the most in the last way.
int shown_rank(const Options& options, const MemoryReport& report) {
  int shown = 0;
  Index most = -1;
  for (int rank = 0; rank < options.grid.size(); ++rank) {
    const Index bytes = report.planned(options.seat(rank), report.ways.back()).most();
    if (bytes > most) most = bytes, shown = rank;
  }
  return shown;
}

std::string of_rank(int rank, const std::string& what) { return fmt::format("rank {}, {}", rank, what); }

ParameterCount count_of(const Layout& layout) {
  ParameterCount count;
  for (const Buffer& buffer : layout.buffers) {
    count.all += buffer.size - buffer.padding;
    if (buffer.group == 0) count.hidden = buffer.size - buffer.padding;
  }
  return count;
}

}  // namespace

std::vector<NamedMatrix> as_matrices(const CountedMemory& counted) {
  std::vector<NamedMatrix> all;
  for (const auto& [way, memory] : counted)
    for (const auto& [name, bytes] : numbers_of(memory, way)) {
      if (bytes > kExactInFloat)
        throw std::logic_error(fmt::format("{} bytes are more than a float32 counts exactly", bytes));
      all.push_back({name, Matrix(1, 1, {static_cast<float>(bytes)}), 0, 0});
    }
  return all;
}

void report_memory(LessonCore& lesson, const MemoryReport& report,
                   const std::vector<std::vector<NamedMatrix>>& counted) {
  lesson.in_parent([&] {
    const Options& options = lesson.options();
    NamedNumbers read, planned;
    for (int rank = 0; rank < options.grid.size(); ++rank) {
      for (const NamedMatrix& number : counted.at(static_cast<std::size_t>(rank)))
        read[of_rank(rank, number.name)] = static_cast<std::int64_t>(number.matrix(0, 0));
      for (const Way& way : report.ways)
        planned.merge(numbers_of(report.planned(options.seat(rank), way), of_rank(rank, way.name)));
    }
    lesson.check_numbers("bytes held, by kind and in each phase: all ranks counted what was planned", read, planned);

    const int rank = shown_rank(options, report);
    const Seat seat = options.seat(rank);
    std::vector<RankMemory> ways;
    for (const Way& way : report.ways)
      ways.push_back(with_numbers(report.planned(seat, way), of_rank(rank, way.name), read));
    const Layout layout = report.layout(seat, report.ways.back());
    lesson.say(memory_table(fmt::format("bytes that rank {} holds", rank),
                            {{"", ways.at(0), ways.at(1)}, {"ZeRO-1", ways.at(2), ways.at(3)}}, count_of(layout)));
    lesson.say(phase_chart(fmt::format("the most in each phase of {}", report.ways.back().name), ways.back(), layout));
  });
}

void report_models(LessonCore& lesson, const Grid& grid) {
  lesson.in_parent([&] { lesson.say(models_table(grid)); });
}

std::string planned_picture(const Options& options, const MemoryReport& report) {
  const int rank = shown_rank(options, report);
  const Seat seat = options.seat(rank);
  std::vector<std::pair<std::string, RankMemory>> ways;
  for (std::size_t w = report.ways.size() - 2; w < report.ways.size(); ++w)
    ways.emplace_back(report.ways[w].name, report.planned(seat, report.ways[w]));
  return memory_picture(rank, ways, report.layout(seat, report.ways.back()));
}

}  // namespace muonwalk::sim
