#pragma once

#include <string>

namespace muonwalk::sim {

/// The texts that lesson 20 comes with (lessons/lesson_20_pretrain/*.txt), part of the program: prose of the lessons,
/// to train on, and code of them, to see what a model makes of a text of another kind.
/// @{
const std::string& shipped_text();
const std::string& shipped_code();
/// @}

}  // namespace muonwalk::sim
