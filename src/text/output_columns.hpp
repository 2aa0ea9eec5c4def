#pragma once

namespace muonwalk {

/// How wide a printed line may be: kColumns (text.hpp), unless somebody has less room. What breaks or aligns lines asks
/// here; tables that are made of cells keep the width of their cells.
int output_columns();

/// From here on lines are at most `columns` wide, of at least 60 and at most kColumns: a cell of a notebook shows 88.
/// To be called before any rank is started.
void set_output_columns(int columns);

}  // namespace muonwalk
