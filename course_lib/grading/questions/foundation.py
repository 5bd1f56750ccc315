"""The questions of chapters 00 to 02."""

from __future__ import annotations

import math

from course_lib.grading.questions.question import Fill, Question, with_arrays

QUESTIONS: tuple[Question, ...] = (
    # --- chapter 00 ---
    Question(
        "00.amdahl",
        "addmm takes 45 % of the time. You make it infinitely fast. How many times as fast is the whole?",
        1 / 0.55,
        "The other 55 % stay: 1 / (1 - 0.45) = 1.82. This is Amdahl's law, and the reason to profile first.",
        {
            math.inf: "Only addmm becomes infinitely fast. The other 55 % of the time are still there.",
            1.45: "45 % less time is not 45 % faster: what is left of one second, and how often does it fit "
            "in?",
            1 / 0.45: "You divided by the part that goes away. Divide by the part that stays.",
            0.55: "That is the time that is left. Times as fast = time before / time after.",
            1 / (1 - 0.4562): "That is for 45.62 %, the share in the table; here it is 45 %.",
        },
        unit="x",
    ),
    Question(
        "00.linear",
        "Which operation does an nn.Linear with a bias call on a 2-D input?",
        "addmm",
        "y = x @ W.T + b is one addmm: the product and the addition of the bias in a single call.",
        {
            "mm": "mm is the product alone. The bias has to be added as well, and one operation does both.",
            "bmm": "bmm multiplies many pairs of matrices (attention does). Here it is one pair and a bias.",
            "conv1d": "Only a convolution of width 1 would compute the same, and it takes another route.",
        },
        options=("addmm", "mm", "bmm", "conv1d"),
    ),
    Question(
        "00.flops",
        "How many FLOPs has a product of 250 x 512 by 512 x 2048? (A multiplication and an addition are 2.)",
        2 * 250 * 512 * 2048,
        "2 * M * K * N = 2 * 250 * 512 * 2048 = 524,288,000: about half a GFLOP.",
        {
            250 * 512 * 2048: "Those are the multiplications. Each has an addition beside it.",
            2
            * 250
            * 2048: "That is 2 per element of the result. Each element is a sum over K = 512 products.",
            0.524288: "That is in GFLOP; answer in FLOP.",
            524.288: "That is in MFLOP; answer in FLOP.",
            2 * (250 * 512 + 512 * 2048): "Those are the elements of the inputs. Each is used many times.",
        },
        unit="FLOP",
    ),
    # --- chapter 01 ---
    Question(
        "01.doubling",
        "You double N in a product of two N x N matrices. How many times the work does the triple loop do?",
        8,
        "Three loops of length N: (2N)^3 = 8 N^3. A measured time grows a little less at small sizes, where "
        "what happens once per call, per row and per element weighs more.",
        {
            2: "Each of the three loops becomes twice as long, not only one.",
            4: "The result has 4 times as many elements, but each of them also takes twice as long.",
            6: "The three factors of two multiply; they do not add up.",
            3: "N^3 is a power: what is (2N)^3 / N^3?",
        },
        unit="x",
        between=(
            (6.3, 7.93, "You may have measured that; the count says more: what is (2N)^3 / N^3?"),
            (8.07, 10.0, "You may have measured that; the count says less: what is (2N)^3 / N^3?"),
        ),
    ),
    Question(
        "01.additions",
        "How many additions does a 10 x 20 by 20 x 30 product need at least, if the first product "
        "of each sum is added to nothing?",
        10 * 30 * 19,
        "M * N * (K - 1) = 10 * 30 * 19 = 5700: summing 20 products takes 19 additions.",
        {
            6000: "That counts an addition to zero for each first product, as FLOPs do: 2MNK. How many plus "
            "signs stand between 20 products?",
            300: "That is the number of elements of the result. Each is a sum of 20 products.",
            10 * 20 * 29: "The sum runs over K = 20, the length that both matrices share, not over N.",
        },
    ),
    Question(
        "01.bytes",
        "How many times the bytes of a NumPy float64 array does a list of a million different floats take?",
        4,
        "A list holds an 8-byte pointer per entry, and each float is an object of 24 bytes (reference count, "
        "type, value): 32 bytes against 8.",
        {
            1: "The numbers are the same, but a list does not hold numbers. What does it hold?",
            3: "24 bytes per float object is right. The list's own pointer to it comes on top.",
            2: "Pointer and value would be 16 bytes. A Python float also carries its type and reference "
            "count.",
            32: "32 bytes per entry is right; the question asks for the ratio to the array's 8.",
            8: "8 bytes is one entry of the array. How many bytes is one entry of the list, object included?",
        },
        unit="x",
        tolerance=0.1,
    ),
    # --- chapter 02 ---
    Question(
        "02.innermost",
        "C[i, j] += A[i, k] * B[k, j], all in C order. Which innermost index walks B and C contiguously?",
        "j",
        "In C order the last index is the contiguous one. j is last in B and in C, and A[i, k] stays put.",
        {
            "k": "k walks A contiguously, but in B it is the first index: each step jumps over a whole row.",
            "i": "i is the first index of A and of C: each step jumps over a whole row in both.",
        },
        options=("i", "j", "k"),
    ),
    Question(
        "02.lanes",
        "How many float32 numbers fit into one 512-bit register?",
        16,
        "512 / 32 = 16. For float64 it is 8: one reason why float32 can be twice as fast.",
        {
            8: "That is right for float64. A float32 has 32 bits.",
            64: "Those are the bytes: 512 bits are 64 bytes, and a float32 takes 4 of them.",
            32: "That would be 16-bit numbers.",
            128: "512 / 4 divides bits by bytes. A float32 has 4 bytes, which are 32 bits.",
        },
    ),
    Question(
        "02.intensity",
        "Inner step of ikj in float64, C[i, j] += a * B[k, j], nothing stays in cache: FLOP per byte moved?",
        2 / 24,
        "2 FLOPs; read B, read C, write C: 3 * 8 = 24 bytes. 2 / 24 = 0.083 FLOP per byte. `a` stays in a "
        "register.",
        {
            2 / 16: "You counted two of the numbers. C[i, j] is read and written, B[k, j] is read.",
            2 / 32: "A[i, k] does not change in the inner loop: it stays in a register and moves nothing.",
            2 / 8: "Only B is counted. C[i, j] is read and written as well.",
            1 / 24: "A multiplication and an addition are 2 FLOPs.",
            2 / 12: "That would be float32. A float64 takes 8 bytes.",
            12: "That is bytes per FLOP. The question asks for the inverse.",
        },
        unit="FLOP per byte",
        tolerance=0.05,  # two digits, 0.08, will do
    ),
)


FILLS: tuple[Fill, ...] = (
    Fill(
        "00.amdahl",
        """def amdahl(share, speedup):
    return «1 / (1 - share + share / speedup)»""",
        cases=((0.5, 2), (0.25, 10), (0.9, 1000)),
        hint="What is left of the time 1? The rest, 1 - share, and the share divided by its speed-up. "
        "How many times does the new time go into the old one?",
        why="The old time, 1, over the new one. With an infinite speed-up 1 / (1 - share) is left: that is "
        "all that one operation can bring.",
        wrong={
            "1 - share + share / speedup": "That is the new time. How many times faster is the inverse.",
            "1 / (1 - share + share * speedup)": "The share takes less time than before: divide it.",
            "1 / (share / speedup)": "And the rest of the time, 1 - share? It stays as it was.",
            "1 - share + share * speedup": "Speed-ups do not add up, times do: begin with the new time.",
        },
    ),
    Fill(
        "00.addmm",
        """def addmm(input, A, B, beta=1.0, alpha=1.0, matmul=ladder.rung("numpy").matmul):
    C = «alpha * matmul(A, B)»  # (n, m) @ (m, p) -> (n, p)
    return C if beta == 0 else beta * input + C  # beta = 0 also keeps a NaN of `input` out""",
        cases=((3, [[1, 2]], [[1], [2]]), ([1, 2], [[1, 2], [3, 4]], [[5, 6], [7, 8]], 0.5, 2.0)),
        run=with_arrays,
        hint="`input` and beta have their place in the line below. What is left of the formula?",
        why="Whoever is given as `matmul` does the work; the rest is a scale and a sum.",
        wrong={
            "matmul(A, B)": "alpha scales the product. (And `matmul` does it, not `@`.)",
            "alpha * A * B": "`*` multiplies number by number; the product is what `matmul` is for.",
            "beta * matmul(A, B)": "beta belongs to `input`; another letter scales the product.",
        },
    ),
    Fill(
        "01.pair",
        """def one_number(row, col):  # K numbers each
    return «sum(a * b for a, b in zip(row, col))»""",
        cases=(([1, 2], [5, 7]), ([3.0, 4.0, 5.0], [1.0, -1.0, 2.0]), ([], [])),
        hint="`zip(row, col)` hands out the pairs. What becomes of a pair, and what of them all?",
        why="A multiplication and an addition for each pair: that is all the work there is in a product.",
        wrong={
            "sum(a + b for a, b in zip(row, col))": "The two numbers of a pair are multiplied.",
            "sum(row) * sum(col)": "That multiplies each number with all of the other row: pairs only.",
            "[a * b for a, b in zip(row, col)]": "Those are the products of the pairs. C has one number.",
        },
    ),
    Fill(
        "01.rows",
        """def zeros(rows, columns):
    return «[[0.0] * columns for _ in range(rows)]»  # a list of rows, each with a life of its own""",
        cases=((3, 2), (2, 4), (2, 2)),
        run=lambda zeros, *sizes: (zeros(*sizes), f"{len({id(row) for row in zeros(*sizes)})} lists"),
        hint="`[0.0] * columns` makes a new list whenever it is computed. Compute it once for each row.",
        why="The comprehension computes its first part anew in each turn: as many lists as rows.",
        wrong={
            "[[0.0] * columns] * rows": "That is one row with many names: what is written in one is in all.",
            "[[0.0] * rows for _ in range(columns)]": "Rows and columns are swapped.",
        },
    ),
    Fill(
        "02.address",
        """def byte_of(i, j, N):  # from the beginning of the array
    return «8 * (i * N + j)»""",
        cases=((2, 3, 7), (0, 5, 9), (4, 0, 3)),
        hint="How many numbers lie before (i, j)? i whole rows, and j numbers of its own row.",
        why="i rows of N numbers, then j numbers, 8 bytes each. So one step in i is a whole row long.",
        wrong={
            "i * N + j": "So many numbers lie before it. How many bytes are they?",
            "8 * (j * N + i)": "There the columns lie one after the other; here the rows do.",
            "8 * i * N + j": "The j numbers of its own row have 8 bytes each, too.",
            "8 * (i + j)": "Before row i lie i rows of N numbers each.",
        },
    ),
    Fill(
        "02.neighbours",
        """@njit(fastmath={"contract", "reassoc"})
def dot_of_rows(A, BT, C):  # BT: (N, K), row j is column j of B
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * «BT[j, k]»
            C[i, j] += total""",
        cases=(([[1, 2]], [[3, 4], [5, 6]], [[0, 0]]), ([[1, 0], [2, 3]], [[1, 2], [3, 5]], [[0, 0]] * 2)),
        run=with_arrays,
        hint="Before it was `B[k, j]`. Row j of BT is column j of B; which index shall move with k?",
        why="k is the last index of both: each step takes the neighbour of the number before.",
        wrong={
            "BT[k, j]": "That is a column of BT: the strides are back, and the wrong numbers come.",
            "BT[i, k]": "i is the row of A. Which row of BT belongs to column j of the result?",
        },
    ),
)
