#pragma once

#include <cstddef>
#include <random>
#include <string>

#include "src/io/safetensors.hpp"
#include "src/io/safetensors_format.hpp"

/// A file with tensors of every type, odd names, scalars and empty tensors, the same for the same seed.
inline muonwalk::SafetensorsFile random_file(unsigned seed, int most_tensors = 12) {
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const char* const types[] = {"BOOL", "U8",  "I8",  "F8_E4M3", "F8_E5M2", "I16", "U16", "F16",
                               "BF16", "I32", "U32", "F32",     "F64",     "I64", "U64"};
  const char* const names[] = {"w",           "größe × 重み", "a.b.c", "with space", "\"quoted\"",
                               "back\\slash", "tab\t",        "",      "/"};

  muonwalk::SafetensorsFile file;
  const int count = between(0, most_tensors);
  for (int i = 0; i < count; ++i) {
    muonwalk::StoredTensor tensor;
    // The number keeps names apart; the first may be any of them as it is.
    tensor.name = names[between(0, 8)] + (i == 0 ? std::string() : std::to_string(i));
    tensor.dtype = types[between(0, 14)];
    tensor.type = muonwalk::find_dtype(tensor.dtype)->type;
    const int dimensions = between(0, 4);
    for (int d = 0; d < dimensions; ++d) tensor.shape.push_back(between(0, 5));
    tensor.bytes.resize(
        static_cast<std::size_t>(muonwalk::stored_bytes(*muonwalk::find_dtype(tensor.dtype), tensor.shape)));
    for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(between(0, 255));
    file.tensors.push_back(tensor);
  }
  if (between(0, 1) == 1) file.metadata = {{"format", "pt"}, {"é\n\"", "two\nlines"}, {"", ""}};
  return file;
}
