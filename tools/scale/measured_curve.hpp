#pragma once

#include <string>
#include <vector>

namespace muonwalk::sim {

/// What a curve says at one point, and whether it was ever measured near there.
struct CurveReading {
  double value = 0;       ///< In the curve's own unit. Outside of its range: that of the nearest point.
  bool outside = false;   ///< The point lies outside the range that was measured.
  double nearest_at = 0;  ///< Where outside: the measured point that is nearest.
};

/// A quantity that was measured at some points: the bandwidth of a collective by nodes, the efficiency of a product by
/// its size. Between two points it is interpolated, both axes as logarithms. Outside of them it stays at the nearest
/// point, and says so: nothing here extrapolates in silence.
class MeasuredCurve {
 public:
  /// One measurement.
  struct Point {
    double at = 0, value = 0;  // both above 0
  };

  /// A curve without points, which can't be read.
  MeasuredCurve() = default;
  /// A curve of points with rising `at`, and where they come from. Throws UsageError, a sentence that names `what`,
  /// where there is no point, they do not rise, or a number is not finite and above 0.
  MeasuredCurve(std::string what, std::vector<Point> points, std::string source);

  /// The value at `at`, above 0. Throws std::logic_error where there is no point.
  CurveReading at(double at) const;
  bool measured() const { return !points_.empty(); }
  /// What it is a curve of: "bus bandwidth of an all-reduce by nodes, in bytes per second".
  const std::string& what() const { return what_; }
  const std::vector<Point>& points() const { return points_; }
  const std::string& source() const { return source_; }

 private:
  std::string what_;
  std::vector<Point> points_;
  std::string source_;
};

}  // namespace muonwalk::sim
