"""One file per rung of the ladder, each with one public function: matmul(A, B) -> C.

The functions here trust their operands. The ladder calls them through `front_door`, which decides once, for
every rung, what a matrix is; call them through `ladder.rung(...)` and so does your code.
"""
