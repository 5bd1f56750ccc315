// Where things lie in swizzled tiles: fp8/swizzle.py has the same in Python. Plain C++, to be tested without a GPU.
#pragma once

// Where a byte of a tile lies that is swizzled over SPAN bytes: 32, 64 or 128.
template <int SPAN>
constexpr int swizzled(int byte) {
  return byte ^ (byte >> 7 & (SPAN / 16 - 1)) << 4;
}

// A tile of D, bf16: panels of WIDTH bytes a row side by side, the widest swizzle that divides the tile's rows.
template <int HEIGHT, int COLUMNS>
struct PanelledTile {
  static constexpr int WIDTH = COLUMNS % 64 == 0 ? 128 : COLUMNS % 32 == 0 ? 64 : 32;
  static constexpr int PANELS = COLUMNS * 2 / WIDTH, PANEL_BYTES = HEIGHT * WIDTH;

  // The byte where an element lies.
  static constexpr int place(int row, int column) {
    return column * 2 / WIDTH * PANEL_BYTES + swizzled<WIDTH>(row * WIDTH + column * 2 % WIDTH);
  }
};
