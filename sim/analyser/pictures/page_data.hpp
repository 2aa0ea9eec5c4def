#pragma once

#include <string>

#include "sim/analyser/pictures/trace_picture.hpp"

namespace muonwalk::sim {

/// What the scripts of a page draw, as JSON that may stand inside a `<script>`: times in whole nanoseconds,
///   "span_ns"   what the time scale has room for
///   "lines"     [{"text", "lane", "kind"}]: the lines of the timeline; "kind" is an index into "lane_colours", null
///   for
///               a heading
///   "texts"     names, element types and groups
///   "slices"    [line, begin, duration, covered, events, name, type, group, message bytes, sent bytes]; the three
///   texts
///               are indices into "texts", −1 where they differ or are not said, as are bytes
///   "bars"      [{"text", "span_ns", "parts_ns": [5]}]: one a rank; nothing where nothing could be timed
///   "parts"     ["computation alone", …]
///   "colours"   {"paper": {"light": "#ffffff", "dark": "#14171c"}, …}; "lane_colours", "part_colours": lists of the
///   same
std::string page_data(const TracePicture& picture);

}  // namespace muonwalk::sim
