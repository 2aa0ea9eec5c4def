#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muonwalk::sim {

/// A place at which a curve was read, although nothing was measured there.
struct Outside {
  double at = 0;       ///< Where it was read.
  double nearest = 0;  ///< The measured point that is nearest.
};

/// What a curve says at one point.
struct CurveReading {
  double value = 0;                     ///< In the curve's own unit. Outside of its range: that of the nearest point.
  std::optional<Outside> outside = {};  ///< The point lies outside of the range that was measured.
};

/// A quantity that was measured at some points: the bandwidth of a collective by nodes, the efficiency of a product by
/// its size. Between two points it is interpolated, both axes as logarithms. Outside of them it stays at the nearest
/// point, and says so: nothing here extrapolates in silence.
struct MeasuredCurve {
  /// One measurement. Both numbers are above 0.
  struct Point {
    double at = 0, value = 0;
  };

  std::vector<Point> points;  ///< From left to right; none where nothing was measured.
  std::string source;         ///< Where the points come from.

  bool measured() const { return !points.empty(); }
  /// The value at `at`. Throws std::invalid_argument unless that is above 0 and finite and there is a point.
  CurveReading at(double at) const;
};

}  // namespace muonwalk::sim
