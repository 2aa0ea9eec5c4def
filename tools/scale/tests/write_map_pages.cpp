// write_map_pages FOLDER: pages of maps with made-up steps, for page tests in a browser, and what they have to say as
// JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <iostream>

#include "tests/io/temporary_folder.hpp"
#include "tools/scale/payoff_output.hpp"
#include "tools/scale/tests/made_up_maps.hpp"

using namespace muonwalk::sim;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  try {
    const std::vector<PayoffMap> maps = made_up_maps(round_cluster());
    write_text(folder + "maps.html", payoff_page(maps));
    for (const PayoffMap& map : maps) {
      const std::string name = folder + map_columns_name(map.columns);
      write_text(name + ".json", payoff_json(map));
      write_text(name + ".txt", fmt::format("{}", fmt::join(payoff_text(map), "\n")));
    }
    PayoffMap nasty = payoff_map({model_shape("gpt2"), round_cluster(), software_of("nanotron"), MapColumns::grid});
    nasty.cluster = "</script><b>bold</b> {{data}}";
    write_text(folder + "nasty.html", payoff_page({nasty}));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
  return 0;
}
