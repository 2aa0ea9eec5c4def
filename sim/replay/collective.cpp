#include "sim/replay/collective.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace muonwalk::sim {
namespace {

// In the order of Collective. The bus factor for n ranks is `whole` + `shares` · (n−1)/n.
struct CollectiveTraits {
  const char* text;
  double whole;
  double shares;
};
constexpr std::array<CollectiveTraits, 13> kCollectives = {{{"all_gather", 0, 1},
                                                            {"reduce_scatter", 0, 1},
                                                            {"all_reduce", 0, 2},
                                                            {"all_to_all", 0, 1},
                                                            {"broadcast", 1, 0},
                                                            {"reduce", 1, 0},
                                                            {"gather", 0, 1},
                                                            {"scatter", 0, 1},
                                                            {"send", 1, 0},
                                                            {"recv", 1, 0},
                                                            {"send_recv", 1, 0},
                                                            {"barrier", 0, 0},
                                                            {"other", 0, 0}}};

using Spelling = std::pair<const char*, Collective>;

// As they stand in names without underscores, in lower case; what is part of another name comes after it.
constexpr std::array<Spelling, 13> kSpellings = {{{"allgather", Collective::all_gather},
                                                  {"reducescatter", Collective::reduce_scatter},
                                                  {"allreduce", Collective::all_reduce},
                                                  {"alltoall", Collective::all_to_all},
                                                  {"broadcast", Collective::broadcast},
                                                  {"barrier", Collective::barrier},
                                                  {"sendrecv", Collective::send_recv},
                                                  {"gather", Collective::gather},
                                                  {"scatter", Collective::scatter},
                                                  {"reduce", Collective::reduce},
                                                  {"send", Collective::send},
                                                  {"recv", Collective::recv},
                                                  {"receive", Collective::recv}}};

struct TypeSpelling {
  const char* pytorch;
  const char* text;
  int size;
};

// c10::ScalarType's names.
constexpr std::array<TypeSpelling, 14> kTypes = {{{"Float", "float32", 4},
                                                  {"BFloat16", "bfloat16", 2},
                                                  {"Half", "float16", 2},
                                                  {"Double", "float64", 8},
                                                  {"Float8_e4m3fn", "float8_e4m3fn", 1},
                                                  {"Float8_e5m2", "float8_e5m2", 1},
                                                  {"Byte", "uint8", 1},
                                                  {"Char", "int8", 1},
                                                  {"Short", "int16", 2},
                                                  {"Int", "int32", 4},
                                                  {"Long", "int64", 8},
                                                  {"Bool", "bool", 1},
                                                  {"ComplexFloat", "complex64", 8},
                                                  {"bytes", "bytes", 1}}};

}  // namespace

const char* collective_text(Collective collective) { return kCollectives[static_cast<std::size_t>(collective)].text; }

Collective collective_of(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [spelling, collective] : kSpellings)
    if (plain.find(spelling) != std::string::npos) return collective;
  return Collective::other;
}

double bus_factor(Collective collective, int ranks) {
  const auto& [text, whole, shares] = kCollectives[static_cast<std::size_t>(collective)];
  const double n = std::max(1, ranks);
  return whole + shares * (n - 1) / n;
}

std::string element_type_text(const std::string& name) {
  for (const TypeSpelling& type : kTypes)
    if (name == type.pytorch) return type.text;
  return name;
}

int element_type_size(const std::string& text) {
  for (const TypeSpelling& type : kTypes)
    if (text == type.text) return type.size;
  return 0;
}

}  // namespace muonwalk::sim
