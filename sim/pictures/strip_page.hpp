#pragma once

#include <string>

#include "sim/pictures/strip_blocks.hpp"

namespace muonwalk::sim {

// Lengths in the pictures' own units; the viewer scales them. Narrow, so that letters stay readable on a phone.
/// The width of a picture of steps, its margin, where its right margin begins, and where a row begins at the earliest,
/// right of a rank's label.
/// @{
constexpr double kStripWidth = 560;
constexpr double kMargin = 16;
constexpr double kRight = kStripWidth - kMargin;
constexpr double kLeft = 84;
/// @}

/// The page of a picture of steps: its style and, where anything is in colour, the words that explain the colours.
std::string strip_page(const std::string& title, const std::string& description, Piece body);

}  // namespace muonwalk::sim
