// Which tile comes when. Plain C++, so that it can be tested where there is no GPU.
#pragma once

// Tiles are dealt out to clusters of blocks - a block alone is a cluster of one - in turns: cluster t takes the units
// t, t + clusters, t + 2 clusters ... A unit is `cluster` tiles side by side, one for each block, so the blocks of a
// cluster always agree on what they do and on when they are done. The last unit of a row may stick out: its tile lies
// outside of D, is computed from zeros and stored nowhere.
//
// Units go down through BAND rows of tiles, then on to the next column: what runs at the same time shares rows of A
// and columns of B, and finds them in the L2 cache.
struct Schedule {
  int rows, columns;  // tiles of D
  int clusters, cluster;  // how many clusters, and how many blocks each has
  int band;  // rows of tiles that are walked together

  int units_across() const { return (columns + cluster - 1) / cluster; }

  // The tile that block `rank` of cluster `number` computes in this turn; false when there is none left for it.
  bool tile(int turn, int number, int rank, int& row, int& column) const {
    int unit = turn * clusters + number;
    if (unit >= rows * units_across()) return false;
    int whole = band * units_across(), first = unit / whole * band, inside = unit % whole;
    int height = rows - first < band ? rows - first : band;
    row = first + inside % height;
    column = inside / height * cluster + rank;
    return true;
  }
};

// The same for several products with matrices of different heights, one behind the other. `heights` gives the
// rows of tiles of each group. A cluster asks turn by turn, so the walk remembers where it is.
template <class Heights>
struct GroupedSchedule {
  int groups, columns, clusters, cluster, band;
  Heights heights;             // heights(group): rows of tiles of a group
  int group = 0, before = 0;   // where the walk is, and how many units lie before that group

  bool tile(int turn, int number, int rank, int& row, int& column) {
    int across = (columns + cluster - 1) / cluster, unit = turn * clusters + number;
    while (group < groups && unit >= before + heights(group) * across) before += heights(group++) * across;
    if (group == groups) return false;
    Schedule inside{heights(group), columns, 1, cluster, band};
    return inside.tile(unit - before, 0, rank, row, column);
  }
};
