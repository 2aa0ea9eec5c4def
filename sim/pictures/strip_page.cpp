#include "sim/pictures/strip_page.hpp"

#include <cmath>

#include "sim/pictures/svg_parts.hpp"

namespace muonwalk::sim {
namespace {

SvgStyle style() {
  SvgStyle style(".mw-strip", 11, 15, 12);
  style.rule("text", "stroke-width:3px;paint-order:stroke;stroke-linejoin:round");
  style.rule(".mw-name", "font-weight:bold;font-size:12px");
  style.rule(".mw-said", "white-space:pre");
  style.rule(".mw-none", "fill:none");
  style.rule(".mw-arrow", "fill:none;stroke-width:1.6");
  style.rule(".mw-stays", "stroke-dasharray:3 3;stroke-width:1.3;fill:none");
  style.colour("text", "stroke", kPaper);
  style.rule(".mw-fill", "stroke-width:1");
  style.rule(".mw-from", "stroke-width:2");
  style.rule(".mw-addend", "stroke-width:1.2");
  style.rule(".mw-number", "font-weight:bold");
  style.rule(".mw-bus", "fill:none;stroke-width:2");
  style.colour(".mw-whole", "fill", kPadding);
  style.colour(".mw-edge", "stroke", kQuiet);
  style.colour(".mw-fill", "stroke", kInk);
  style.colour(".mw-rule", "stroke", kInk);
  style.colour(".mw-hatch", "stroke", kHatch);
  style.colour(".mw-bus", "stroke", kInk);
  style.colour(".mw-joint", "fill", kInk);
  style.colour(".mw-cells", "stroke", kPaper);
  style.colour(".mw-between", "stroke", kHatch);
  style.colour(".mw-stays", "stroke", kQuiet);
  style.colour(".mw-head-stays", "fill", kQuiet);
  style.colours(".mw-t", "fill", parameter_colour);
  style.colours(".mw-r", "stroke", rank_colour);
  style.colours(".mw-head", "fill", rank_colour);
  style.rule("text.mw-in", "stroke:none");
  return style;
}

}  // namespace

std::string strip_page(const std::string& title, const std::string& description, Piece body) {
  if (body.svg.find("mw-whole") != std::string::npos) {
    body.svg = hatching_svg() + body.svg + svg_text(kMargin, body.height + 14, "mw-prose mw-quiet", kGrammar);
    body.height += 16;
  }
  return svg_page("mw-strip", kStripWidth, std::ceil(body.height + 8), title, description, style(), body.svg);
}

}  // namespace muonwalk::sim
