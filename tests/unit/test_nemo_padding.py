"""The ends of rows, as NeMo treated them before 2.5 and since: who leaks, and who does not."""

import nemo_files
import pytest
import torch

from course_lib.speech.nemo import load_nemo


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.nemo"
    path.write_bytes(nemo_files.nemo(nemo_files.model().state_dict()))
    return path


@torch.no_grad()
def differences_in_a_batch(model, *lengths):
    """Return for each row how far its log-probabilities in a batch are from those it has alone."""
    torch.manual_seed(2)
    samples = torch.randn(len(lengths), max(lengths))  # beyond a row's length: numbers nobody may look at
    together, frames = model(*model.preprocessor(samples, torch.tensor(lengths)))
    found = []
    for row, length in enumerate(lengths):
        alone, (own,) = model(*model.preprocessor(samples[row : row + 1, :length]))
        assert own == frames[row] == alone.shape[1]
        found.append(float((together[row, :own] - alone[0]).abs().max()))
    return found


def test_with_the_new_padding_a_row_is_the_same_alone_and_in_a_batch(path):
    model = load_nemo(path, padding="new")
    assert model.preprocessor.zero_padded and model.encoder.pre_encode.masks
    assert max(differences_in_a_batch(model, 8000, 5170, 1700, 320)) <= 1e-5


def test_with_the_old_padding_the_batch_leaks_into_shorter_rows(path):
    for model in (load_nemo(path), load_nemo(path, padding="old")):
        assert not model.preprocessor.zero_padded and not model.encoder.pre_encode.masks
        longest, *shorter = differences_in_a_batch(model, 8000, 5170, 1700)
        assert longest <= 1e-5 and min(shorter) > 1e-3


@torch.no_grad()
def test_both_paddings_have_the_same_tensors_and_hear_equal_features_alike(path):
    old, new = load_nemo(path, padding="old"), load_nemo(path, padding="new")
    assert all(torch.equal(tensor, new.state_dict()[name]) for name, tensor in old.state_dict().items())
    features, frames = old.preprocessor(torch.randn(1, 8000))
    assert torch.equal(old(features, frames)[0], new(features, frames)[0])


def test_another_padding_is_refused_before_the_file_is_read(tmp_path):
    with pytest.raises(ValueError, match=r'padding is \'newer\', but must be "old" \(NeMo before 2.5\)'):
        load_nemo(tmp_path / "none.nemo", padding="newer")
