// The parts of pages, letter for letter.
#include "sim/replay/page_parts.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "src/errors.hpp"

using namespace muonwalk;
using nlohmann::json;

TEST_CASE("page parts: rows, tables and lists, in which any text stays text") {
  CHECK(html_row({}) == "<tr></tr>\n");
  CHECK(html_row({"<a>"}) == "<tr><th scope=\"row\">&lt;a&gt;</th></tr>\n");
  CHECK(html_row({"of", "1 & 2", "<b>"}) == "<tr><th scope=\"row\">of</th><td>1 &amp; 2</td><td>&lt;b&gt;</td></tr>\n");
  CHECK(html_table("id", "all \"of\" it", {"<one>", "two"}, "rows\n") ==
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"all &quot;of&quot; it\"><table id=\"id\">\n"
        "<caption>all &quot;of&quot; it</caption>\n<thead><tr><th scope=\"col\">&lt;one&gt;</th><th "
        "scope=\"col\">two</th></tr></thead>\n<tbody>\nrows\n</tbody></table></div>\n");
  CHECK(html_list("words", {"one & all", "two", "<three>"}) ==
        "<ul id=\"words\">\n<li>one &amp; all</li>\n<li>two</li>\n<li>&lt;three&gt;</li>\n</ul>\n");
  CHECK(html_list("none", {}) == "<ul id=\"none\">\n</ul>\n");
}

TEST_CASE("page parts: colours for light pages, and after them for dark ones, those of all pages first") {
  CHECK(coloured_style({{"one", {"#010203", "#040506"}}, {"two", {"#070809", "#0a0b0c"}}}, "body {}\n") ==
        ":root { --paper: #ffffff; --ink: #15181d; --quiet: #5a6472; --ground: #eef0f3; --edge: #b4bcc7; "
        "--accent: #025c93; --one: #010203; --two: #070809; }\n@media (prefers-color-scheme: dark) {\n"
        "  :root { --paper: #14171c; --ink: #f3f5f8; --quiet: #a3adba; --ground: #242930; --edge: #4e5865; "
        "--accent: #54b3fd; --one: #040506; --two: #0a0b0c; }\n}\nbody {}\n");
  CHECK(colour_json({"#010203", "#040506"}) == json{{"light", "#010203"}, {"dark", "#040506"}});
  std::string names;
  for (const auto& [name, colour] : page_shades()) names += std::string(name) + " ";
  CHECK(names == "paper ink quiet ground edge ");
}

TEST_CASE("page parts: no text in JSON ends the script that it stands in, and bytes that are not UTF-8 are replaced") {
  CHECK(script_json({{"a", "</script><!--<"}, {"b", {1, 2.5, true, nullptr}}}) ==
        "{\"a\":\"\\u003c/script>\\u003c!--\\u003c\",\"b\":[1,2.5,true,null]}");
  CHECK(script_json("<<") == "\"\\u003c\\u003c\"");
  CHECK(script_json("x\xff") == "\"x\xEF\xBF\xBD\"");
  CHECK(json::parse(script_json("a<b")) == "a<b");
}

TEST_CASE("page parts: places are filled once, with what is put in left as it is; one without a text is an error") {
  const std::map<std::string, std::string> texts = {{"a", "{{b}}"}, {"b", "B"}, {"", "nothing"}, {"unused", "?"}};
  CHECK(filled_page("", texts).empty());
  CHECK(filled_page("plain }} { {", texts) == "plain }} { {");
  CHECK(filled_page("{{a}}", texts) == "{{b}}");
  CHECK(filled_page("x{{b}}{{a}}y{{b}}z", texts) == "xB{{b}}yBz");
  CHECK(filled_page("-{{}}-", texts) == "-nothing-");
  CHECK_THROWS_WITH_AS(filled_page("x{{b}}y{{none}}z", texts), "a page has a place that nothing fills: {{none}}",
                       RunError);
}
