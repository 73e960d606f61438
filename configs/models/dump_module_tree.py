#!/usr/bin/env python3
"""Writes the module tree of a PyTorch model as the JSON that `model: {tree: FILE}` of a run file reads:
classes, parameters, ties, and the module calls of one forward in training mode, with whether an input
tensor requires a gradient. Nothing is allocated: the model is made of fake tensors, so any size works.

  dump_module_tree.py --hf CONFIG_DIR_OR_JSON [--sequence N] [--micro-batch N] [--class NAME] > tree.json
  dump_module_tree.py --factory package.module:function > tree.json

--hf needs torch and transformers; --factory needs torch and a function without arguments that returns
(model, example inputs); the inputs are one tensor, a tuple of positional or a dict of keyword arguments."""

import argparse
import importlib
import json
import os
import sys

DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "f8_e4m3",
          "float8_e5m2": "f8_e5m2", "uint8": "u8", "int64": "i64"}


def stop(message):
    sys.exit(f"dump_module_tree.py: {message}")


def load(name, remedy):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        stop(f"cannot import {name} ({error}); {remedy}")


def qualified(path, name):
    return f"{path}.{name}" if path else name


def attribute(module, names):
    """The first positive integer among attributes of a module or of its config, or None."""
    for name in names:
        for owner in (module, getattr(module, "config", None)):
            value = getattr(owner, name, None)
            if type(value) is int and value > 0:
                return value
    return None


def attention_of(module):
    """Heads and their width, where the module is an attention that states both."""
    if "Attention" not in type(module).__name__:
        return None
    heads = attribute(module, ("num_heads", "n_heads", "num_attention_heads"))
    head_dim = attribute(module, ("head_dim", "key_value_proj_dim", "attention_head_size"))
    return {"heads": heads, "head_dim": head_dim} if heads and head_dim else None


def experts_of(module, inherited):
    """Experts and how many a token visits, where the module owns stacked expert weights."""
    count = attribute(module, ("num_experts",))
    per_token = attribute(module, ("num_experts_per_tok", "top_k")) or inherited
    stacked = any(p.dim() == 3 and p.shape[0] == count for _, p in module.named_parameters(recurse=False))
    return {"count": count, "per_token": min(count, per_token)} if stacked and per_token else None


def module_tree(model):
    first = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first.setdefault(id(parameter), name)

    def parameter_entry(path, name, parameter):
        dtype = DTYPES.get(str(parameter.dtype).removeprefix("torch."))
        if dtype is None:
            stop(f"{qualified(path, name)} is {parameter.dtype}; known: {', '.join(DTYPES)}")
        entry = {"name": name, "shape": list(parameter.shape), "dtype": dtype,
                 "trainable": parameter.requires_grad}
        if first[id(parameter)] != qualified(path, name):
            entry["tied_to"] = first[id(parameter)]
        return entry

    def node(module, path, per_token):
        per_token = attribute(module, ("num_experts_per_tok", "top_k")) or per_token
        entry = {"name": path, "class": type(module).__name__}
        for key, value in (("attention", attention_of(module)), ("experts", experts_of(module, per_token))):
            if value:
                entry[key] = value
        own = module.named_parameters(recurse=False, remove_duplicate=False)
        parameters = [parameter_entry(path, name, parameter) for name, parameter in own]
        children = [node(child, qualified(path, name), per_token) for name, child in module.named_children()]
        entry.update({key: value for key, value in (("parameters", parameters), ("children", children)) if value})
        return entry

    return node(model, "", attribute(model, ("num_experts_per_tok", "top_k")))


def module_calls(torch, model, inputs):
    """Every module call of one forward, in order."""
    leaves = torch.utils._pytree.tree_leaves
    names = {id(module): name for name, module in model.named_modules()}
    calls = []

    def before(module, arguments, keywords):
        needs = any(torch.is_tensor(x) and x.requires_grad for x in leaves((arguments, keywords)))
        calls.append({"module": names[id(module)], "input_requires_grad": needs})

    handles = [m.register_forward_pre_hook(before, with_kwargs=True) for m in model.modules()]
    try:
        if isinstance(inputs, dict):
            model(**inputs)
        else:
            model(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
    finally:
        for handle in handles:
            handle.remove()
    return calls


def transformers_model(torch, options):
    transformers = load("transformers", "install transformers or use --factory")
    if not os.path.exists(options.hf):
        stop(f"no such file or folder '{options.hf}'; --hf takes a config.json or the folder that holds it")
    try:
        config = transformers.AutoConfig.from_pretrained(options.hf)
    except (OSError, ValueError, KeyError) as error:
        stop(f"{options.hf}: {str(error).splitlines()[0]}")
    name = options.model_class or (getattr(config, "architectures", None) or [None])[0]
    if name is None:
        stop(f"{options.hf} names no architecture; add --class, as in --class LlamaForCausalLM")
    if not hasattr(transformers, name):
        stop(f"transformers {transformers.__version__} has no class {name}; add --class")
    # Of the ways to compute attention and experts, these run under fake tensors and call the same modules.
    config._attn_implementation = "eager"
    config._experts_implementation = "batched_mm"
    # Initial values look at what they drew; ties, which the same function sets, are needed.
    transformers.PreTrainedModel.initialize_weights = lambda model: None
    model = getattr(transformers, name)(config)
    tokens = torch.zeros(options.micro_batch, options.sequence, dtype=torch.int64)
    if model.main_input_name == "pixel_values":
        size = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
        return model, {"pixel_values": torch.zeros(options.micro_batch, config.num_channels, *size)}
    inputs = {"input_ids": tokens, "use_cache": False}
    if getattr(config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = tokens
    return model, inputs


def factory_model(factory):
    module_name, colon, function = factory.partition(":")
    if not colon:
        stop(f"--factory '{factory}' is not of the form package.module:function")
    sys.path.insert(0, os.getcwd())
    module = load(module_name, "run it where the package can be imported")
    if not hasattr(module, function):
        stop(f"{module_name} has no function '{function}'")
    made = getattr(module, function)()
    if not isinstance(made, tuple) or len(made) != 2:
        stop(f"{factory} returned {type(made).__name__}; it must return (model, example inputs)")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--hf", metavar="CONFIG", help="a config.json of transformers or its folder")
    source.add_argument("--factory", metavar="MODULE:FUNCTION", help="returns (model, example inputs)")
    parser.add_argument("--class", dest="model_class", metavar="NAME", help="instead of the config's architecture")
    parser.add_argument("--sequence", type=int, default=16, help="tokens of the example input (16)")
    parser.add_argument("--micro-batch", type=int, default=1, help="sequences of the example input (1)")
    parser.add_argument("--output", metavar="FILE", help="instead of stdout")
    options = parser.parse_args()
    if options.sequence < 1 or options.micro_batch < 1:
        stop("--sequence and --micro-batch must be at least 1")
    torch = load("torch", "install PyTorch")
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode(allow_non_fake_inputs=True):
        model, inputs = transformers_model(torch, options) if options.hf else factory_model(options.factory)
        model.train()
        tree = module_tree(model)
        try:
            calls = module_calls(torch, model, inputs)
        except Exception as error:  # whatever the model's own forward raises
            stop(f"the forward of {type(model).__name__} fails under fake tensors: "
                 f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}; "
                 "a forward that looks at values cannot be dumped; try other inputs with --factory")
    text = json.dumps({"name": type(model).__name__, "root": tree, "calls": calls}, indent=1) + "\n"
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
