"""From log-probabilities to text, and the command that does all of it."""

import subprocess
import sys
import warnings
import wave

import numpy as np
import pytest

from course_lib import __main__ as command_line


def imports():
    global torch, nemo_files, decoding, load_nemo
    import nemo_files
    import torch

    from course_lib.speech import decoding
    from course_lib.speech.nemo import load_nemo


def slow_greedy(path, blank):
    text = []
    for before, token in zip([None, *path], path, strict=False):
        if token not in (blank, before):
            text.append(token)
    return text


def test_repeats_count_once_and_blanks_are_dropped():
    def heard(path, length):
        certain = torch.nn.functional.one_hot(torch.tensor([path]), 4).float().log_softmax(-1)
        return decoding.greedy(certain, torch.tensor([length]))

    assert heard([0, 3, 0, 0], 4) == [[0, 0]]  # a blank between makes it two
    assert [heard([0, 1, 2, 1], length) for length in (4, 2, 0)] == [[[0, 1, 2, 1]], [[0, 1]], [[]]]
    generator = torch.Generator().manual_seed(1)
    for _ in range(50):
        path = torch.randint(4, (12,), generator=generator).tolist()
        assert heard(path, 12) == [slow_greedy(path, 3)], path


def test_pieces_become_text():
    from course_lib.speech.tokenizer import Tokenizer

    pieces = Tokenizer(["<unk>", "▁", "да", "▁не", "т", "<0xD0>", "<0xB4>", "</s>"])
    for tokens, text in (
        ([1, 2, 3, 4], "да нет"),
        ([3, 4, 1, 2], "нет да"),
        ([], ""),
        ([2, 0, 2], "да ⁇ да"),
        ([1, 5, 6, 7], "д"),  # two bytes are one letter, the end of the sentence is none
        ([2, 5], "да\ufffd"),
    ):
        assert pieces.text(tokens) == text
    unseen = ("▁a", "\x1b[2J", "b\x07\n", "\x9bc", "\u202ed\u2028", "<0x1B>", "é\u200d")
    assert Tokenizer(unseen).text(range(7)) == "a[2Jbcdé\u200d"  # nothing acts on a terminal


# -- the command -------------------------------------------------------------------------------------------


def recorded(path, seconds=1.5, rate=22_050):
    """Write noise as a WAV file of 16-bit samples."""
    noise = np.random.default_rng(0).normal(0, 3000, round(seconds * rate)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(noise.tobytes())
    return path


@pytest.fixture
def model_path(tmp_path):
    path = tmp_path / "model.nemo"
    path.write_bytes(nemo_files.nemo(nemo_files.model(seed=1).state_dict()))
    return path


@pytest.fixture
def transcribed(capsys):
    """The command in this process; a warning, which a terminal would show as well, is an error."""

    def run(*arguments):
        with warnings.catch_warnings():
            for shown in (UserWarning, RuntimeWarning):
                warnings.simplefilter("error", shown)
            code = command_line.main(["transcribe", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def test_the_command_prints_what_the_librarys_calls_give(tmp_path, model_path):
    from course_lib.speech import audio

    path = recorded(tmp_path / "noise.wav")
    model = load_nemo(model_path)
    samples = torch.from_numpy(audio.resampled(*audio.read(path), 16_000))
    assert samples.shape == (24_000,)
    with torch.no_grad():
        log_probs, lengths = model(*model.preprocessor(samples[None]))
    tokens = slow_greedy(log_probs[0, : lengths[0]].argmax(-1).tolist(), log_probs.shape[-1] - 1)
    wanted = model.tokenizer.text(tokens)
    assert len(tokens) > 1 and wanted.strip()
    command = [sys.executable, "-m", "course_lib", "transcribe", path, "--model", model_path]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted + "\n", "")


def test_the_command_hands_the_padding_on(tmp_path, monkeypatch, transcribed):
    from course_lib.speech import nemo

    monkeypatch.setattr(nemo, "load_nemo", lambda path, padding: f"{path.name} {padding}")
    monkeypatch.setattr(decoding, "transcribe", lambda model, samples, rate: model)
    path = recorded(tmp_path / "noise.wav")
    assert transcribed(path, "--model", "a.nemo") == (0, "a.nemo old\n", "")
    assert transcribed(path, "--model", "a.nemo", "--padding", "new") == (0, "a.nemo new\n", "")


def test_the_commands_errors_are_sentences(tmp_path, model_path, transcribed):
    path = recorded(tmp_path / "noise.wav")
    short = recorded(tmp_path / "short.wav", seconds=0.01)
    for recording, model, says in (
        (tmp_path / "none.wav", model_path, "none.wav cannot be read"),
        (path, tmp_path / "none.nemo", "none.nemo cannot be read"),
        (path, path, "is no tar archive"),
        (short, model_path, "A row has 160 samples, but the front end wants 257 or more"),
    ):
        code, out, err = transcribed(recording, "--model", model)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("transcribe: ") and says in err
    huge = {
        name: torch.full_like(tensor, 1e38) if tensor.is_floating_point() else tensor
        for name, tensor in nemo_files.model().state_dict().items()
    }
    model_path.write_bytes(nemo_files.nemo(huge))  # weights that overflow are no text
    says = "The model gives NaN or infinity for this recording, so its weights are damaged: fetch it again."
    assert transcribed(path, "--model", model_path) == (2, "", f"transcribe: {says}\n")
