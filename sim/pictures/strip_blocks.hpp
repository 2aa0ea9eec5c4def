#pragma once

#include <string>
#include <vector>

#include "sim/pictures/strip.hpp"
#include "sim/recording/recording.hpp"

namespace muonwalk::sim {

/// A piece of a picture and how high it is.
struct Piece {
  std::string svg;    ///< its elements
  double height = 0;  ///< in units of the picture
};

/// The width of a letter of the small monospaced font, rounded up, and the distance of two lines of it.
/// @{
constexpr double kLetter = 6.7;
constexpr double kLine = 14;
/// @}

/// Bytes of real sizes, short enough for a picture: "128 B", "386 kB", "1.5 MB". The exact ones are in its titles and
/// its description.
std::string short_bytes(long long bytes);

/// Where something is drawn.
struct Box {
  double x = 0;       ///< the left edge
  double y = 0;       ///< the upper edge
  double width = 0;   ///< to the right
  double height = 0;  ///< downwards
};

/// The words that explain the pictures' colours, and what draws the hatching of padding: once per picture.
/// @{
constexpr char kGrammar[] = "filled: a parameter · outlined: the rank that it came from · hatched: padding";
std::string hatching_svg();
/// @}

/// Draws the blocks of a strip, each as the part of its whole that it is: filled in the colour of its parameter, or of
/// each that a flat buffer holds, outlined in that of the rank that it came from, and hatched where there is padding.
class StripBlocks {
 public:
  /// Both must outlive it.
  StripBlocks(const Recording& recording, const Strip& strip) : recording_(&recording), strip_(&strip) {}

  /// The blocks of `rank`, one below the other, many of them small; where there is room for two beside each other, they
  /// share it.
  Piece column(const std::vector<const RecordedBlock*>& blocks, int rank, double x, double y, double width);

 private:
  Piece side_by_side(const std::vector<const RecordedBlock*>& blocks, double x, double y, double width) const;
  Piece one(const RecordedBlock& block, double x, double y, double width) const;
  Piece row(const RecordedBlock& block, double x, double y, double width) const;
  Piece run(const RecordedBlock& block, double x, double y, double width) const;
  Piece matrix(const RecordedBlock& block, double x, double y, double width) const;
  std::string part_of(const RecordedBlock& block, const Box& box) const;
  std::string filled(const RecordedBlock& block, const Box& part, const char* more = "") const;
  std::string span(const RecordedSpan& span, const RecordedBlock& block, const Box& part, const char* more) const;
  std::string names(const RecordedBlock& block, const Box& box) const;
  Box held_part(const RecordedBlock& block, const Box& box) const;
  Box part_of_whole(const RecordedBlock& block, const Box& box, Index begin, Index end, Index of, bool down) const;
  std::string outlines(const RecordedBlock& block, const Box& box) const;
  Piece addends(const RecordedBlock& block, const Box& box) const;
  std::vector<std::string> words_of(const RecordedBlock& block) const;

  const Recording* recording_;
  const Strip* strip_;
  int rank_ = 0;  // whose blocks are being drawn
};

}  // namespace muonwalk::sim
