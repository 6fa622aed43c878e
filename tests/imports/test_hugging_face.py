"""Models that `transformers` makes at random and saves: ours give the same logits."""

import json

import numpy as np
import pytest

from keras_transformer.imports import hugging_face

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("safetensors")

IDS = np.array([[5, 9, 4, 17, 3, 8], [11, 0, 2, 9, 7, 19]])


def random_weights(model):
    """All weights drawn anew: a gain of 1 or a bias of 0 may hide a mistake."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A small GPT-2 of `transformers`, and the folder that it was saved into."""
    config = transformers.GPT2Config(
        vocab_size=20, n_positions=12, n_embd=8, n_layer=2, n_head=2, layer_norm_epsilon=1e-3
    )
    model = random_weights(transformers.GPT2LMHeadModel(config))
    folder = tmp_path_factory.mktemp("gpt2")
    model.save_pretrained(folder)
    return model, folder


def test_gpt2_gives_the_logits_of_transformers(gpt2):
    theirs, folder = gpt2
    ours = hugging_face.load(folder)
    with torch.no_grad():
        expected = theirs(torch.tensor(IDS)).logits.numpy()
    np.testing.assert_allclose(np.array(ours(IDS)), expected, rtol=1e-5, atol=1e-5)


def test_gpt2_one_token_at_a_time_gives_them_too(gpt2):
    theirs, folder = gpt2
    stepper = hugging_face.load(folder).stepper()
    state = stepper.start(len(IDS))
    steps = []
    for position in range(IDS.shape[1]):
        logits, state, _ = stepper(IDS[:, position : position + 1], np.int32(position), state)
        steps.append(np.array(logits[:, 0]))
    with torch.no_grad():
        expected = theirs(torch.tensor(IDS)).logits.numpy()
    np.testing.assert_allclose(np.stack(steps, axis=1), expected, rtol=1e-5, atol=1e-5)


def test_what_cannot_be_read_is_told_in_one_line(gpt2, tmp_path):
    _, folder = gpt2
    with pytest.raises(FileNotFoundError, match=r"must be a folder with config\.json"):
        hugging_face.load(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    written = tmp_path / "config.json"
    written.write_text(json.dumps({**config, "model_type": "llama"}))
    refused = r"`model_type` of .* must be one of bert, gpt2.*: llama\. Import another model\.$"
    with pytest.raises(ValueError, match=refused):
        hugging_face.load(tmp_path)
    written.write_text(json.dumps([config]))
    with pytest.raises(
        ValueError,
        match=r"config\.json is damaged: it must hold a JSON object\. Received: a list\.",
    ):
        hugging_face.load(tmp_path)
    written.write_text(json.dumps({"model_type": "gpt2", "n_layer": 2, "vocab_size": 20}))
    with pytest.raises(ValueError, match=r"config\.json lacks n_embd, n_head, n_positions\. Take"):
        hugging_face.load(tmp_path)
    written.write_text(json.dumps(config))
    with pytest.raises(FileNotFoundError, match=r"has no weights: a file that ends in"):
        hugging_face.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged \("):
        hugging_face.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    written.write_text(json.dumps({**config, "n_layer": 3}))
    with pytest.raises(ValueError, match=r"lacks the weight 'h\.2\..*of the family gpt2 has"):
        hugging_face.load(tmp_path)
    written.write_text(json.dumps({**config, "n_positions": 13}))
    with pytest.raises(ValueError, match=r"transformer\.wpe\.weight is \(12, 8\), expected \(13,"):
        hugging_face.load(tmp_path)
    written.write_text(json.dumps({**config, "activation_function": "tanh"}))
    with pytest.raises(ValueError, match=r"`activation_function` .*gelu_new, .*Received: tanh\."):
        hugging_face.load(tmp_path)
