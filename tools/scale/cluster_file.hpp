#pragma once

#include <string>

#include "tools/scale/cluster.hpp"
#include "tools/scale/json_fields.hpp"

namespace muonwalk::sim {

/// The cluster that a file describes. Throws UsageError, as cluster_of does, which calls it.
Cluster cluster_from(const JsonFile& file);

/// The share of its peak that an accelerator reaches in a product, by the FLOPs of it, as a curve of Accelerator.
MeasuredCurve efficiency_curve(std::vector<MeasuredCurve::Point> points, std::string source);

/// The bus bandwidth of a collective over a level, as a curve of NetworkLevel.
MeasuredCurve bandwidth_curve(const std::string& collective, const std::string& level,
                              std::vector<MeasuredCurve::Point> points, std::string source);

}  // namespace muonwalk::sim
