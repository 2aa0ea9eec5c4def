#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/layout/grid.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// Elements of a flat block that are those of a parameter: a flat buffer holds several, and padding between them.
struct RecordedSpan {
  int tensor = 0;   ///< The parameter, as an index into Recording::tensors.
  Index begin = 0;  ///< The span is the half-open range [begin, end) of the block's own elements.
  Index end = 0;    ///< The element behind its last one.
  Index first = 0;  ///< The number of its first element in the rank's TP slice of the parameter, row-major.
};

/// Something that a rank showed in a step: a matrix or a flat array, and which part of a whole it is.
struct RecordedBlock {
  std::string name;     ///< The name as it is shown: "down, as it arrived".
  int tensor = 0;       ///< The tensor whose elements these are, as an index into Recording::tensors.
  Index rows = 0;       ///< The rows of the block, not of the whole.
  Index cols = 0;       ///< The columns of the block, not of the whole.
  bool flat = false;    ///< It is a flat array of `cols` elements, without rows.
  long long bytes = 0;  ///< The size of its elements.
  std::string unit;     ///< "rows", "columns" or "elements"; "" for the whole.
  Index begin = 0;      ///< It is the half-open range [begin, end) of the whole.
  Index end = 1;        ///< The unit behind its last one.
  Index of = 1;         ///< How many units the whole has.
  std::optional<std::vector<float>> values;  ///< The values, row-major; none of what is too large, or has none.
  std::optional<std::string> digest;         ///< The digest of all values, 16 hex digits; none of what has no values.
  std::optional<std::string> note;           ///< What the rank said of it.
  std::vector<int> from;                     ///< The tensors that it was made of, besides its own.
  /// Of a flat buffer: the parameters in it, in order, none over another; what is in no span is padding. None: all
  /// elements are its own tensor's.
  std::optional<std::vector<RecordedSpan>> spans;
};

/// One message, as its sender handed it to the transport.
struct RecordedMove {
  int from = 0;            ///< The sender, a rank of the world.
  int to = 0;              ///< The receiver, a rank of the world.
  std::string group;       ///< The group: "tp".
  std::string collective;  ///< The collective: "all_gather".
  std::string type;        ///< The element type: "float32".
  long long elements = 0;  ///< How many elements of `type` it has.
  long long bytes = 0;     ///< Its size, without headers.
  int call = 0;            ///< The number of the call among the sender's calls in the step, counted from 0.
};

/// One step: what the ranks showed and said when it had ended, and what they sent meanwhile.
struct RecordedStep {
  int number = 1;                                 ///< The place of the step in the recording, counted from 1.
  std::string title;                              ///< The title as it is printed.
  std::vector<std::string> lines;                 ///< The lines that were printed, up to the next step.
  std::vector<std::vector<RecordedBlock>> holds;  ///< What each rank showed, by its number.
  std::vector<std::vector<std::string>> says;     ///< What each rank said, by its number.
  std::vector<RecordedMove> moves;                ///< The messages: by sender, in the order in which it sent.
};

/// A matrix or buffer whose elements are shown, in one or more steps. What stands before the first comma of a block's
/// name tells it from others: "w" and "w, orthogonalized" are the same tensor at two moments.
/// Parameters of a layout have the palette's colours in the layout's order, as on maps, and other tensors in the order
/// in which they were first shown. A buffer has no colour: what is seen of it are its parameters.
struct RecordedTensor {
  std::string name;           ///< The name: "w".
  std::optional<int> colour;  ///< An index into the palette's tensors; none of what is shown only with spans.
};

/// A lesson's run, as far as the player on its page can replay it. It holds plain data and knows no rank, so that it is
/// the same for processes and for threads.
struct Recording {
  std::string name;                     ///< The lesson: "lesson_05_tp_gather".
  std::string number;                   ///< Its number: "05".
  std::string title;                    ///< Its title: "TP gather".
  std::string question;                 ///< The question of the lesson.
  std::string heading;                  ///< The first line that is printed.
  Grid grid;                            ///< The grid of the run.
  std::string precision;                ///< The precision: "fp32".
  std::vector<RecordedTensor> tensors;  ///< All of them, in the order in which they were first shown.
  std::vector<RecordedStep> steps;      ///< The steps, in order.
  std::vector<std::string> before;      ///< The lines that are printed before the first step.
  std::vector<std::string> after;       ///< The lines that are printed after the last step.
  bool ok = false;                      ///< Every check held.
};

/// The most elements of which a recording keeps the values; of more it keeps the digest.
constexpr Index kMostRecordedValues = 1024;

/// The recording as JSON, the format "muonwalk-recording" version 1, with a newline at its end. Floats have as many
/// digits as it takes to read the same bits again; NaN and infinities are the words "nan", "inf" and "-inf".
std::string recording_json(const Recording& recording);

}  // namespace muonwalk::sim
