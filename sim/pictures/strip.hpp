#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/recording/recording.hpp"
#include "src/layout/parameter.hpp"

namespace muonwalk::sim {

/// All messages from one rank to another in a step.
struct StripArrow {
  int from = 0;         ///< the sender, a rank of the world
  int to = 0;           ///< the receiver, a rank of the world
  long long bytes = 0;  ///< the sum
  int messages = 0;     ///< how many
};

/// A part of a block that came from one rank: [begin, end) of `of` units.
struct StripSeam {
  int rank = 0;       ///< that it came from
  Index begin = 0;    ///< the first unit
  Index end = 0;      ///< one past the last
  Index of = 1;       ///< units of the whole
  bool rows = false;  ///< the units are rows
};

/// Where the elements of a block lie in a flat buffer that its rank held before.
struct StripPlace {
  const RecordedBlock* buffer = nullptr;  ///< one of the rank's blocks of `before`
  Range range;                            ///< counted in the buffer's own elements
};

/// A step of a recording as a strip shows it: for every rank what it held before and what it holds after, and what
/// moved.
struct Strip {
  std::vector<std::vector<const RecordedBlock*>> before;         ///< [rank]
  std::vector<std::vector<const RecordedBlock*>> after;          ///< [rank]
  std::map<const RecordedBlock*, std::vector<StripSeam>> seams;  ///< of a block of `after` that was gathered: its parts
  std::map<const RecordedBlock*, std::vector<int>> sums;         ///< of one that was summed: the ranks that had addends
  std::map<const RecordedBlock*, StripPlace> places;             ///< of one that came out of a buffer: where it lay
  std::vector<StripArrow> arrows;                                ///< by sender, then by receiver; never to itself
  /// Those of this block: none where it was not gathered.
  const std::vector<StripSeam>& seams_of(const RecordedBlock& block) const;
  std::string traffic;  ///< "all_gather over tp · 2 messages · 256 B", or "nothing travels"
};

/// The strip of step `step` (counted from 0). What a rank held before is what it showed last of the tensors that it
/// shows now; where it shows one for the first time, or shows none, what it showed in the step before.
Strip strip_of(const Recording& recording, int step);

/// True when the block is not part of something larger.
bool is_whole(const RecordedBlock& block);

/// "rows 0–3 of 8", "all of it".
std::string part_text(const RecordedBlock& block);

/// The name without the state: "w" of "w, orthogonalized".
std::string block_name(const RecordedBlock& block);

/// "4 × 8", or "64" of a flat array.
std::string block_shape_text(const RecordedBlock& block);

/// "from bucket 0, 8–19".
std::string place_text(const StripPlace& place);

/// "Σ of ranks 0, 2".
std::string sum_text(const std::vector<int>& ranks);

/// A step of a recording (counted from 0) in words, a line for its title and one for each rank: what it held before,
/// what it sent and what it holds after. For those who can't see the strip, and where no picture can be shown.
/// @{
std::string strip_words(const Recording& recording, int step);
std::string strip_words(const Recording& recording, int step, int rank);  ///< of one rank only
/// @}

/// A step of a recording (counted from 0) as a picture: ranks as lanes; on the left what each held before, on the right
/// what it holds after, each as its part of the whole; arrows for what moved, with their bytes. SVG with a title and a
/// description in words, in light and dark by prefers-color-scheme.
std::string strip_svg(const Recording& recording, int step);

/// Steps from `first` to `last` (counted from 0), the phases of one piece of work, as one rank goes through them: a row
/// each, with what it holds after it, and from whom and to whom something travels. Phases in which it holds nothing are
/// left out.
std::string phases_svg(const Recording& recording, int first, int last, int rank);

/// All steps below each other in one picture.
std::string strips_svg(const Recording& recording);

/// The recording as JSON, the format "muonwalk-recording" version 1, with a newline at its end. Floats have as many
/// digits as it takes to read the same bits back; infinities and NaN, which JSON has no numbers for, are the strings
/// "inf", "-inf" and "nan". A buffer that holds parameters has them as "spans": [[tensor, begin, end, first], …], the
/// members of RecordedSpan; any other block has no such key. The colour of a tensor that is only such a buffer is null.
/// Equal recordings give equal bytes.
std::string recording_json(const Recording& recording);

}  // namespace muonwalk::sim
