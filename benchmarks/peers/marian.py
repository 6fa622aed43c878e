"""Hugging Face's `MarianMTModel.generate` (PyTorch, float32) with our weights, translating in
turns.

Runs in an environment of its own (`python_of`), without this project's packages.
"""

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers.translating import cores, in_batches, serve
from benchmarks.peers.turns import Parent

PAD, _, BOS, EOS = range(4)
EXTRA_LENGTH = 50
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
MAPS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
DENSE = {"inner": "fc1", "outer": "fc2"}
NORMS = {
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward_norm": "final_layer_norm",
}
OF_NORM = {"gamma": "weight", "beta": "bias"}


def their_name(path):
    """Our path of a weight, such as "weights/encoder/layer_0/self_attention/query_kernel", to the
    name of Marian's.
    """
    match path.split("/")[1:]:
        case [stack, layer, "feed_forward", dense, kind]:
            end = f"{DENSE[dense]}.{'weight' if kind == 'kernel' else kind}"
        case [stack, layer, norm, "norm", kind]:
            end = f"{NORMS[norm]}.{OF_NORM[kind]}"
        case [stack, layer, attention, matrix]:
            part, kind = matrix.rsplit("_", 1)
            end = f"{ATTENTIONS[attention]}.{MAPS[part]}.{kind.replace('kernel', 'weight')}"
    return f"model.{stack}.layers.{layer.removeprefix('layer_')}.{end}"


def position_table(length, width, size):
    """What is added at each position (length, width), by `size`: the paper's sines and cosines take
    turns, in the other forms all sines come first.
    """
    half = width // 2
    last = half - 1 if size["positions"] == "tensor2tensor" else half
    rates = 10_000.0 ** -(torch.arange(half, dtype=torch.float64) / last)
    angles = (size["first_position"] + torch.arange(length))[:, None] * rates
    both = torch.stack([angles.sin(), angles.cos()], dim=1)
    if size["positions"] == "sinusoidal":
        both = both.transpose(1, 2)
    return both.flatten(1).float()


def state_of(arrays, model, size):
    """Our weights, by path, as the state of a `MarianMTModel`. What ours has not, such as the
    biases of attention, is zero.
    """
    own = model.state_dict()
    state = {name: torch.zeros_like(value) for name, value in own.items()}
    for path, array in arrays.items():
        if path == "weights/embedding/table":
            embeddings = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
            names = ["lm_head", *(f"model.{name}" for name in embeddings)]
            state |= {f"{name}.weight": torch.from_numpy(array) for name in names}
        elif path == "weights/embedding/output_bias":
            state["final_logits_bias"] = torch.from_numpy(array[None])
        else:
            # torch keeps a matrix as (out, in), Keras as (in, out).
            state[their_name(path)] = torch.from_numpy(array.T.copy())
    for stack in ("encoder", "decoder"):
        name = f"model.{stack}.embed_positions.weight"
        state[name] = position_table(*own[name].shape, size)
    # Always added: so PAD and BOS, which our searches forbid, are forbidden at no cost.
    state["final_logits_bias"][0, [PAD, BOS]] = -1e9
    return state


def make_model(size, arrays):
    sides = ("encoder", "decoder")
    config = MarianConfig(
        vocab_size=size["vocabulary_size"],
        d_model=size["d_model"],
        encoder_layers=size["num_layers"],
        decoder_layers=size["num_decoder_layers"] or size["num_layers"],
        **{f"{side}_attention_heads": size["num_heads"] for side in sides},
        **{f"{side}_ffn_dim": size["d_ff"] for side in sides},
        activation_function=size["activation"],
        max_position_embeddings=2048,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config)
    model.load_state_dict(state_of(arrays, model, size))
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = size["norm_epsilon"]
    return model.eval()


def load(task):
    at_once = cores() if task["spread"] else 1
    torch.set_num_threads(cores() // at_once)
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=task[f"{side}_vocabulary"])
        for side in ("source", "target")
    )
    with np.load(task["model"]) as arrays:
        model = make_model(task["size"], dict(arrays))
    # Its penalty is another: |Y|^alpha, EOS counted. Of its rules for stopping the default comes
    # nearest to ours: a sentence is done when the best unfinished hypothesis, were it to end now,
    # would rank below all of `num_beams` finished ones.
    search = {"num_beams": task["beam_size"], "do_sample": False}
    if task["beam_size"] > 1:
        search |= {"length_penalty": 0.6, "early_stopping": False}
    forced = task["forced_length"]

    def decode(sources):
        width = max(map(len, sources))
        ids = torch.tensor([words + [PAD] * (width - len(words)) for words in sources])
        lengths = {"max_new_tokens": width + EXTRA_LENGTH}
        if forced:
            lengths = {"min_new_tokens": forced, "max_new_tokens": forced}
        mask = (ids != PAD).long()
        with torch.inference_mode():
            output = model.generate(input_ids=ids, attention_mask=mask, **search, **lengths)
        return [[token for token in row if token not in (PAD, BOS)] for row in output.tolist()]

    def translate(lines):
        sources = source.encode(lines, add_eos=True)
        best = in_batches(decode, sources, list(map(len, sources)), task["batch_size"], at_once)
        return [target.decode(words) for words in best], sum(map(len, best))

    return translate


if __name__ == "__main__":
    serve(Parent(), load)
