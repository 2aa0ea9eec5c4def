#pragma once

/// The files that the page of a map alone is made from, in the folder page/ (the others: sim/pictures/page_texts.hpp).
namespace muonwalk::sim::page_texts {

/// The text of a file: map_html is that of map.html.
/// @{
extern const char* const map_html;
extern const char* const map_css;
extern const char* const map_js;
/// @}

}  // namespace muonwalk::sim::page_texts
