#include "sim/recording/collective.hpp"

#include <array>
#include <cctype>
#include <utility>

namespace muonwalk::sim {
namespace {

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

const char* collective_text(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::broadcast:
      return "broadcast";
    case Collective::reduce:
      return "reduce";
    case Collective::gather:
      return "gather";
    case Collective::scatter:
      return "scatter";
    case Collective::send:
      return "send";
    case Collective::recv:
      return "recv";
    case Collective::send_recv:
      return "send_recv";
    case Collective::barrier:
      return "barrier";
    case Collective::other:
      break;
  }
  return "other";
}

Collective collective_of(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [spelling, collective] : kSpellings)
    if (plain.find(spelling) != std::string::npos) return collective;
  return Collective::other;
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send:
    case Collective::recv:
    case Collective::send_recv:
      return 1;
    case Collective::barrier:
    case Collective::other:
      break;
  }
  return 0;
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
