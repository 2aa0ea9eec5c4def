#include "tools/scale/published_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/scale/json_fields.hpp"
#include "tools/scale/muonwalk_scale_texts.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/training_time.hpp"

namespace muonwalk::sim {

namespace {

constexpr int kMostInColumn = 1 << 20;
constexpr const char* kCluster = "h100-efa";
constexpr const char* kPredicted[] = {"pred_tokens_per_s_per_gpu", "pred_memory_gb", "pred_fits"};

const Cluster& records_cluster() {
  static const Cluster cluster = cluster_of(kCluster);
  return cluster;
}

std::string without_spaces_around(const std::string& cell) {
  const std::size_t first = cell.find_first_not_of(" \t"), last = cell.find_last_not_of(" \t");
  return first == std::string::npos ? "" : cell.substr(first, last - first + 1);
}

// A table's text, cut into cells, without the spaces around each. Quotes keep a comma inside of a cell.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char each : line) {
    if (each == '"') {
      quoted = !quoted;
    } else if (each == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += each;
    }
  }
  for (std::string& cell : cells) cell = without_spaces_around(cell);
  return cells;
}

[[noreturn]] void refuse_table(const std::string& path, const std::string& reason) {
  throw UsageError(fmt::format("the table of runs {} can't be used: {}", in_quotes(path), reason));
}

// A text on its way into rows; knows where it is, for its sentences.
class RunTable {
 public:
  // Reads the first line, which names the columns. `path` is what sentences call the text.
  RunTable(std::string path, const std::string& all) : path_(std::move(path)), stream_(all) {
    if (!next_line()) refuse("it is empty");
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) text.erase(0, kByteOrderMark.size());
    columns_ = cells_of(text);
  }

  // Goes on to the next row; false at the end.
  bool next() {
    if (!next_line()) return false;
    cells_ = cells_of(text);
    if (cells_.size() == columns_.size()) return true;
    refuse_line(fmt::format("has {}, and the first line names {}",
                            count_text(static_cast<std::int64_t>(cells_.size()), "cell"),
                            count_text(static_cast<std::int64_t>(columns_.size()), "column")));
  }

  bool has(const std::string& column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }

  // A name that stands for two columns stands for neither.
  void require_once(const char* column) const {
    const auto times = std::count(columns_.begin(), columns_.end(), column);
    if (times == 0) refuse(fmt::format("it has no column {}", column));
    if (times > 1) refuse(fmt::format("it has {} columns {}", times, column));
  }

  // The cell of a column that is there.
  const std::string& cell(const std::string& column) const {
    return cells_[static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin())];
  }

  int whole(const std::string& column, int least) const {
    const std::optional<int> value = number_from<int>(cell(column));
    if (value && *value >= least && *value <= kMostInColumn) return *value;
    refuse_line(fmt::format("has {} = {}; it is a whole number from {} to {}", column, as_typed(cell(column)), least,
                            kMostInColumn));
  }

  double positive(const std::string& column) const {
    const std::optional<double> value = number_from<double>(cell(column));
    if (value && std::isfinite(*value) && *value > 0) return *value;
    refuse_line(
        fmt::format("has {} = {}; of a run that was measured it is a number above 0", column, as_typed(cell(column))));
  }

  [[noreturn]] void refuse(const std::string& reason) const { refuse_table(path_, reason); }
  [[noreturn]] void refuse_line(const std::string& reason) const { refuse(fmt::format("line {} {}", line_, reason)); }

  std::string text;  // the present line

 private:
  // The next line that is not empty, without its end.
  bool next_line() {
    while (std::getline(stream_, text)) {
      ++line_;
      if (!text.empty() && text.back() == '\r') text.pop_back();
      if (text.empty()) continue;
      // A cell that does not end would swallow the columns that are added behind it.
      if (std::count(text.begin(), text.end(), '"') % 2 != 0)
        refuse_line("has a quoted cell that does not end on it; a row is one line");
      return true;
    }
    return false;
  }

  std::string path_;
  std::istringstream stream_;
  int line_ = 0;
  std::vector<std::string> columns_, cells_;
};

void read_results(const RunTable& table, PublishedRun& run) {
  const std::string& status = table.cell("status");
  if (status != "measured" && status != "nan")
    table.refuse_line(fmt::format("has status = {}; it is measured or nan", as_typed(status)));
  run.measured = status == "measured";
  if (table.has("flags"))
    for (const std::string& flag : split_at(table.cell("flags"), ';'))
      if (!flag.empty()) run.flags.push_back(flag);
  if (!run.measured) return;
  run.tokens_per_second = table.positive("tokens_per_s") / run.layout.ranks();
  run.memory_gibibytes = table.positive("memory_gb");
}

PublishedRun run_of(const RunTable& table, bool has_results) {
  PublishedRun run;
  run.row = table.text;
  run.model = table.cell("model");
  run.layout.nodes = table.whole("nodes", 1);
  run.layout.dp = table.whole("dp", 1);
  run.layout.tp = table.whole("tp", 1);
  run.layout.pp = table.whole("pp", 1);
  run.layout.zero = table.whole("zero", 0);
  run.layout.micro_batch = table.whole("mbs", 1);
  run.layout.accumulation = table.whole("grad_acc", 1);
  try {
    model_shape(run.model);
    require_sensible(run.layout, records_cluster().node());
  } catch (const UsageError& error) {
    table.refuse_line(fmt::format("can't be predicted: {}", error.what()));
  }
  if (has_results) read_results(table, run);
  return run;
}

}  // namespace

bool PublishedRun::flagged(const std::string& flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

bool PublishedRun::clean() const {
  return measured && !flagged("stall") && !flagged("gqa") && !flagged("batch_mismatch");
}

namespace {

std::string text_of_file(const std::string& path) {
  return read_small_file(path, 64, [&path](const char* reason) { refuse_table(path, reason); });
}

// With results only where they are asked for, and the table has them.
PublishedRuns runs_of(const std::string& path, const std::string& text, bool results) {
  RunTable table(path, text);
  PublishedRuns all;
  all.header = table.text;
  for (const char* column : {"model", "nodes", "dp", "tp", "pp", "zero", "mbs", "grad_acc"}) table.require_once(column);
  for (const char* column : kPredicted)
    if (table.has(column)) table.refuse(fmt::format("it has a column {} already", column));
  all.has_results = results && table.has("status") && table.has("tokens_per_s") && table.has("memory_gb");
  while (table.next()) all.runs.push_back(run_of(table, all.has_results));
  if (all.runs.empty()) table.refuse("it has no row");
  return all;
}

}  // namespace

PublishedRuns read_layouts(const std::string& path) { return runs_of(path, text_of_file(path), false); }

PublishedRuns read_runs(const std::string& path) { return runs_of(path, text_of_file(path), true); }

PublishedRuns carried_runs() { return runs_of("ultrascale_runs.csv", page_texts::ultrascale_runs_csv, true); }

double predicted_speed(const PublishedRun& run, const TrainingSoftware& software) {
  const ModelShape& model = model_shape(run.model);
  const TrainingLayout& layout = run.layout;
  const double tokens = static_cast<double>(model.tokens) * layout.dp * layout.micro_batch * layout.accumulation;
  return tokens / step_seconds({model, records_cluster(), software, layout}) / layout.ranks();
}

RunPrediction predict_run(const PublishedRun& run, const TrainingSoftware& software) {
  const StepQuestion question{model_shape(run.model), records_cluster(), software, run.layout};
  RunPrediction prediction;
  prediction.tokens_per_second = predicted_speed(run, software);
  prediction.memory_gibibytes = total(stage_bytes(question, 0)) / kGibibyte;
  prediction.fits = fits(total(training_bytes(question)), question.cluster, software) &&
                    why_it_cannot_run(question.model, question.layout, software).empty();
  return prediction;
}

std::vector<std::string> predicted_rows(const PublishedRuns& runs) {
  const auto shown = [](const std::string& row) { return visible_name(row, 1 << 30); };
  std::vector<std::string> rows = {fmt::format("{},{}", shown(runs.header), fmt::join(kPredicted, ","))};
  for (const PublishedRun& run : runs.runs) {
    const RunPrediction prediction = predict_run(run);
    rows.push_back(fmt::format("{},{:.6g},{:.6g},{}", shown(run.row), prediction.tokens_per_second,
                               prediction.memory_gibibytes, prediction.fits ? 1 : 0));
  }
  return rows;
}

}  // namespace muonwalk::sim
