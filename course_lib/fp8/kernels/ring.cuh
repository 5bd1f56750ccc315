// The place in a ring of STAGES stages: which stage is next, and in which lap. Plain C++, too.
#pragma once

// Goes on from tile to tile. The lap's parity is what to wait for: a barrier's phases alternate with the laps.
struct Turn {
  int stage = 0, lap = 0;
  void next() {
    if (++stage == STAGES) stage = 0, lap ^= 1;
  }
};
