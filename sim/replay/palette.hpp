#pragma once

namespace muonwalk {

/// A colour on a light and on a dark page, as "#rrggbb".
struct Colour {
  const char* light;  ///< The colour on a light page.
  const char* dark;   ///< The colour on a dark page.
};

// The one place for the colours of pages and players, so that a parameter and a rank look the same
// everywhere. Hues are evenly spaced in OKLCH and ordered so that neighbours lie 135° apart and differ in lightness,
// too, for readers who can't tell the hues. Parameters are fills: their text is kInk on light and on dark pages, at a
// contrast of at least 4.5. Ranks are lines and letters on kPaper.

/// How many colours there are of either kind.
constexpr int kColours = 8;

/// The fills of parameters.
constexpr Colour kParameterColours[kColours] = {
    {"#a3cffd", "#295e90"},  // blue
    {"#ef958e", "#742e2b"},  // red
    {"#87e1b2", "#126b47"},  // green
    {"#b6a3f0", "#4c3b77"},  // violet
    {"#f9be78", "#7e4f04"},  // orange
    {"#47c5d2", "#095258"},  // turquoise
    {"#fbaee1", "#7f426c"},  // pink
    {"#afb965", "#474d01"},  // olive
};

/// The lines and letters of ranks.
constexpr Colour kRankColours[kColours] = {
    {"#b6303e", "#fda1a0"},  // red
    {"#0a693c", "#55c483"},  // green
    {"#6b50c2", "#bcb2fd"},  // violet
    {"#7d4a07", "#e7963d"},  // brown
    {"#10777c", "#0cd7e0"},  // turquoise
    {"#8d247d", "#e087ce"},  // magenta
    {"#6d6e0a", "#c3c54f"},  // olive
    {"#025c93", "#54b3fd"},  // blue
};

constexpr Colour kPaper = {"#ffffff", "#14171c"};    ///< The page.
constexpr Colour kInk = {"#15181d", "#f3f5f8"};      ///< Text, and the lines between ranks.
constexpr Colour kQuiet = {"#5a6472", "#a3adba"};    ///< Text that matters less.
constexpr Colour kPadding = {"#eef0f3", "#242930"};  ///< The ground of padding.
constexpr Colour kHatch = {"#b4bcc7", "#4e5865"};    ///< The lines of padding.

/// The colour of a parameter by its index: after kColours they start again.
constexpr Colour parameter_colour(int parameter) { return kParameterColours[parameter % kColours]; }

}  // namespace muonwalk
