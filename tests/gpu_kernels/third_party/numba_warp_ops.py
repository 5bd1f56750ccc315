"""Shuffles, votes, ballots and matches in a warp."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/tests/cudapy/test_warp_ops.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: imports; jit-compiled at the end of the file instead of in the tests; what no case launches is left out
# ruff: noqa
# fmt: off

from numba import cuda


def useful_syncwarp(ary):
    i = cuda.grid(1)
    if i == 0:
        ary[0] = 42
    cuda.syncwarp(0xffffffff)
    ary[i] = ary[0]


def use_shfl_sync_idx(ary, idx):
    i = cuda.grid(1)
    val = cuda.shfl_sync(0xffffffff, i, idx)
    ary[i] = val


def use_shfl_sync_up(ary, delta):
    i = cuda.grid(1)
    val = cuda.shfl_up_sync(0xffffffff, i, delta)
    ary[i] = val


def use_shfl_sync_down(ary, delta):
    i = cuda.grid(1)
    val = cuda.shfl_down_sync(0xffffffff, i, delta)
    ary[i] = val


def use_shfl_sync_xor(ary, xor):
    i = cuda.grid(1)
    val = cuda.shfl_xor_sync(0xffffffff, i, xor)
    ary[i] = val


def use_vote_sync_all(ary_in, ary_out):
    i = cuda.grid(1)
    pred = cuda.all_sync(0xffffffff, ary_in[i])
    ary_out[i] = pred


def use_vote_sync_any(ary_in, ary_out):
    i = cuda.grid(1)
    pred = cuda.any_sync(0xffffffff, ary_in[i])
    ary_out[i] = pred


def use_vote_sync_ballot(ary):
    i = cuda.threadIdx.x
    ballot = cuda.ballot_sync(0xffffffff, True)
    ary[i] = ballot


def use_match_any_sync(ary_in, ary_out):
    i = cuda.grid(1)
    ballot = cuda.match_any_sync(0xffffffff, ary_in[i])
    ary_out[i] = ballot


def use_independent_scheduling(arr):
    i = cuda.threadIdx.x
    if i % 4 == 0:
        ballot = cuda.ballot_sync(0x11111111, True)
    elif i % 4 == 1:
        ballot = cuda.ballot_sync(0x22222222, True)
    elif i % 4 == 2:
        ballot = cuda.ballot_sync(0x44444444, True)
    elif i % 4 == 3:
        ballot = cuda.ballot_sync(0x88888888, True)
    arr[i] = ballot

useful_syncwarp = cuda.jit(useful_syncwarp)
use_shfl_sync_idx = cuda.jit(use_shfl_sync_idx)
use_shfl_sync_up = cuda.jit(use_shfl_sync_up)
use_shfl_sync_down = cuda.jit(use_shfl_sync_down)
use_shfl_sync_xor = cuda.jit(use_shfl_sync_xor)
use_vote_sync_all = cuda.jit(use_vote_sync_all)
use_vote_sync_any = cuda.jit(use_vote_sync_any)
use_vote_sync_ballot = cuda.jit(use_vote_sync_ballot)
use_match_any_sync = cuda.jit(use_match_any_sync)
use_independent_scheduling = cuda.jit(use_independent_scheduling)
