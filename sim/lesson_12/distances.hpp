#pragma once

#include <cstdint>
#include <string>

#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// The root mean square of a matrix's elements, √(Σx² / elements); 0 where it has none.
double rms_of(const Matrix& x);

/// ‖x − y‖, Frobenius' norm in double precision. Throws std::invalid_argument where the shapes differ.
double distance(const Matrix& x, const Matrix& y);

/// The gradient of step `step` (counted from 0) that the tables of lesson 12 are made from: random numbers without a
/// mean, of variance 1.
Matrix noise(Shape shape, std::uint64_t seed, int step);

/// Settings for tables: one thread, and chains, so that every processor comes to the same digits.
MuonSettings for_tables(MuonSettings settings);

/// A relative distance in words: "same bits", "last bits" below 0.00001, else percent, "0.31 %" or "23 %".
std::string relative_text(double relative);

/// The lines of a table as one text, with `label` at the left edge and the lines after the first indented like it.
std::string labelled(const std::string& label, const std::vector<std::string>& lines);

}  // namespace muonwalk::sim
