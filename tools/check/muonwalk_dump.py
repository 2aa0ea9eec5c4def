"""Writes what an optimizer's step did, for muonwalk-check. Copy this file into your project; it needs torch, 1.13 or later.

    from muonwalk_dump import dump

    with dump(optimizer, model, "dumped", steps=[1, 2, 100]):
        train()

or, where a block doesn't fit, two calls: `d = dump(optimizer, model, "dumped", steps=[1, 2]).start()`, and `d.stop()` later.
Every rank does this, and writes a file of its own for each of these steps. Then, on any machine: `muonwalk-check dumped`.

`optimizer` is one optimizer or a list of them: torch's, Megatron's (chained ones, too) or DeepSpeed's (`engine.optimizer`).
Their `step` is replaced by one that looks on, until the last of `steps` is written; then they have their own again.
Without a call, or without steps, nothing of this runs. What can't be seen is said on rank 0, a sentence each.
"""

import ctypes
import fnmatch
import functools
import json
import math
import os
import struct
import sys
import types

import torch

MOMENTS = {"momentum": ("momentum_buffer", "exp_avg", "momentum", "m"), "second": ("exp_avg_sq", "second_moment", "v")}
DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


def write_safetensors(path, tensors, metadata):
    """Writes tensors that lie on the CPU, as the format is: eight bytes of length, a header in JSON, the values."""
    header, offset = {"__metadata__": metadata}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            if tensor.numel():  # The bytes as they lie: numpy knows no bfloat16, and torch can do without numpy.
                file.write((ctypes.c_char * (tensor.numel() * tensor.element_size())).from_address(tensor.data_ptr()))
    os.replace(path + ".part", path)


def this_ranks(tensor):
    """A copy, on the CPU, of what this rank has of a tensor."""
    local = tensor.detach()
    local = local.to_local() if is_dtensor(local) else local
    return local.to("cpu", local.dtype if local.dtype in DTYPES else torch.float32, copy=True).contiguous()


def is_dtensor(tensor):
    return hasattr(tensor, "to_local") and hasattr(tensor, "placements")


def mesh_of(dtensor):
    """The sizes of its mesh, by name; names that nobody gave are "dp", and "tp" of a second axis."""
    mesh = dtensor.device_mesh
    return dict(zip(mesh.mesh_dim_names or ("dp", "tp"), mesh.mesh.shape))


def placements_of(tensor):
    """How a DTensor is cut, in the order of the cuts; [] for another tensor, None for what a dump has no word for."""
    first, last = [], []
    for axis, placement in zip(mesh_of(tensor), tensor.placements) if is_dtensor(tensor) else []:
        if placement.is_replicate():
            first.append({"axis": axis, "kind": "replicate"})
        elif hasattr(placement, "dim"):  # FSDP2 over tensor parallelism is strided: its axis stands first, and cuts last.
            cuts = last if "Strided" in type(placement).__name__ else first
            cuts.append({"axis": axis, "kind": "shard", "dim": placement.dim})
        else:
            return None
    return first + last


def is_deepspeed(thing):
    """Of an optimizer, or of a parameter that ZeRO has in its hands."""
    return type(thing).__module__.startswith("deepspeed.") or hasattr(thing, "ds_id") or hasattr(thing, "_hp_mapping")


def from_deepspeed(what, *arguments):
    """DeepSpeed's own view: whole tensors on every rank, in float32. All ranks have to ask. None where it has none."""
    import deepspeed.utils
    try:
        return getattr(deepspeed.utils, "safe_get_full_" + what)(*arguments)
    except (KeyError, ValueError):
        return None


def inner_optimizers(optimizer):
    """The torch optimizers that step in the end: Megatron's hold one or several, and clip before they call them."""
    if hasattr(optimizer, "chained_optimizers"):
        return [inner for one in optimizer.chained_optimizers for inner in inner_optimizers(one)]
    inner = getattr(optimizer, "optimizer", None)
    return inner_optimizers(inner) if hasattr(inner, "param_groups") and not is_deepspeed(optimizer) else [optimizer]


def number(value):
    """A hyperparameter as JSON can hold it (also of a tensor of one element); else None."""
    value = value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
    return value if isinstance(value, (bool, int, float)) and math.isfinite(value) else None


def meant_optimizer(optimizer, group, state):
    """"muon" or "adamw", as the group, the state or the class says; None where none of them does."""
    use = group.get("use_muon", state.get("use_muon"))
    if use is not None:
        return "muon" if use else "adamw"
    for word in (group.get("algorithm"), group.get("kind"), type(getattr(optimizer, "optimizer", optimizer)).__name__):
        word = str(word).lower()
        if "muon" in word and "adam" not in word:
            return "muon"
        if "adam" in word and "muon" not in word:
            return "adamw"
    return None


def hyper_of(meant, group):
    """A group's hyperparameters, by the names that the dump has for them."""
    known = {key: number(group.get(key)) for key in ("lr", "momentum", "weight_decay", "nesterov", "ns_steps", "eps")}
    known = {key: value for key, value in known.items() if value is not None}
    if meant == "adamw":
        adam = {key: known[key] for key in ("lr", "weight_decay", "eps") if key in known}
        adam.update({"betas": [number(beta) for beta in group["betas"]]} if "betas" in group else {})
        return {"adamw": adam, **({"weight_decay": known["weight_decay"]} if "weight_decay" in known else {})}
    known.pop("eps", None)
    return known if meant == "muon" else {}


class dump:
    """Looks on while optimizers step.

    folder: where the files go; the same for all ranks, or put together later.
    steps: the numbers of the steps to write, from 1.
    first: the number of the next step; else 1, or what the optimizers' own counters say.
    mesh: the sizes of the ranks' mesh, slowest first, such as {"dp": 4, "tp": 2}; else as DTensors or Megatron say.
    about: what this file can't know of parameters, by patterns of their names. Any field that the format has for them:
        {"*.qkv.weight": {"blocks": {"dim": 0, "sizes": [64, 32, 32]}}, "*.norm.*": {"optimizer": "adamw"}}
    framework: free text for whoever reads the verdict.
    """

    def __init__(self, optimizer, model, folder, steps, first=None, mesh=None, about=None, framework=""):
        self.optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        self.models = list(model) if isinstance(model, (list, tuple)) else [model]
        self.folder, self.steps, self.first = folder, set(steps), first
        self.mesh, self.about, self.framework = mesh, about or {}, framework
        self.rank, self.world, self.now, self.wrapped, self.not_seen = 0, 1, None, [], []

    def start(self):
        """Begins to look on; without steps to write it changes nothing."""
        if not self.steps:
            return self
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.rank, self.world = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.parameters = {}
        for name, parameter in (named for model in self.models for named in model.named_parameters()):
            name = ".".join(part for part in name.split(".") if part not in ("module", "_orig_mod"))  # DDP's, torch.compile's.
            if self.parameters.setdefault(name, parameter) is not parameter:
                raise ValueError(f'two parameters are called "{name}": dump the models one by one')
        self.mesh = self.mesh or self.seen_mesh()
        if math.prod(self.mesh.values()) != self.world:
            raise ValueError(f"a mesh of {self.mesh} isn't {self.world} ranks: give mesh={{...}}, all axes, slowest first")
        if any("FullyShardedDataParallel" in type(module).__name__ for model in self.models for module in model.modules()):
            raise ValueError("FSDP of the first kind doesn't show which part of a parameter a rank has: use fully_shard (FSDP2)")
        os.makedirs(self.folder, exist_ok=True)
        begin = (self.seen_steps() + 1 if self.first is None else self.first) - 1
        self.counts = {id(optimizer): begin for optimizer in self.optimizers}
        for optimizer in self.optimizers:
            for inner in inner_optimizers(optimizer):
                self.wrap(inner, self.inner_step)
            self.wrap(optimizer, self.outer_step)
        return self

    def stop(self):
        """Gives the optimizers their own step back."""
        if self.now is not None:
            self.write()
        for optimizer, mine, before in reversed(self.wrapped):
            if vars(optimizer).get("step") is not mine:
                continue  # A scheduler has wrapped it since: it stays, and only calls on.
            if before is None:
                del optimizer.step
            else:
                optimizer.step = before
        self.wrapped, self.steps = [], set()

    __enter__ = start

    def __exit__(self, error, *_):
        self.now = self.now if error is None else None  # A step that failed has no weights after it.
        self.stop()

    def say(self, sentence):
        """Says once what isn't seen; the dump holds it, too."""
        if sentence not in self.not_seen:
            self.not_seen.append(sentence)
            if self.rank == 0:
                print("muonwalk_dump:", sentence, file=sys.stderr, flush=True)

    # --- Looking on

    def wrap(self, optimizer, look):
        """Replaces the `step` of this one object. (torch 1.13 has no hooks for it.)"""
        before, step = vars(optimizer).get("step"), optimizer.step

        @functools.wraps(getattr(step, "__func__", step))
        def looked_at(_, *args, **kwargs):
            return look(optimizer, step, args, kwargs)

        optimizer.step = types.MethodType(looked_at, optimizer)  # A method: learning-rate schedulers ask for its function.
        self.wrapped.append((optimizer, optimizer.step, before))

    def outer_step(self, optimizer, step, args, kwargs):
        """Around the step that the program calls: from here to the end of the last optimizer's the weights move."""
        self.counts[id(optimizer)] += 1
        count = self.counts[id(optimizer)]
        if self.now is not None and self.now != count:
            self.write()
        if count in self.steps and self.now is None:
            self.now, self.to_come, self.tensors, self.groups = count, {id(one) for one in self.optimizers}, {}, {}
            self.read_weights("before")
        result = step(*args, **kwargs)
        if self.now is not None:
            self.to_come.discard(id(optimizer))
            if not self.to_come:
                self.write()
        if self.steps and all(made >= max(self.steps) for made in self.counts.values()):
            self.stop()
        return result

    def inner_step(self, optimizer, step, args, kwargs):
        """Around the step of what steps in the end: gradients as it is handed them, and moments."""
        if self.now is None:
            return step(*args, **kwargs)
        closure = args[0] if args else kwargs.pop("closure", None)
        if closure is None:
            self.read(optimizer, "before")
        else:  # It makes the gradients.
            def looked_at():
                loss = closure()
                self.read(optimizer, "before")
                return loss
            args = (looked_at, *args[1:])
        result = step(*args, **kwargs)
        self.read(optimizer, "after")
        return result

    def read_weights(self, when):
        for name, parameter in self.parameters.items():
            if is_deepspeed(parameter):
                weights, main = from_deepspeed("fp32_param", parameter), None
            else:
                weights, main = parameter, getattr(parameter, "main_param", None)
            if weights is None:
                self.say(f"DeepSpeed doesn't show the weights of {name}: they are left out")
                continue
            self.tensors[f"{when}/{name}"] = this_ranks(weights)
            if main is not None:
                part = self.part(parameter)
                self.tensors[f"master_{when}/{name}"] = this_ranks(main)
                if part:  # Of the weights, too, only what this rank steps.
                    self.tensors[f"{when}/{name}"] = self.tensors[f"{when}/{name}"].flatten()[slice(*part)].clone()

    def read(self, optimizer, when):
        """What `optimizer` has of the parameters that it steps. Copied at once: some Muons write over their gradients."""
        for name, parameter, tensor, group in self.stepped_by(optimizer):
            deep = is_deepspeed(parameter)
            state = {} if deep else optimizer.state.get(tensor, {})
            if when == "before":
                self.groups[name] = [None, dict(group)]
                gradient = from_deepspeed("grad", parameter) if deep else tensor.grad
                if deep:
                    self.say("DeepSpeed shows gradients before it clips and unscales them: dump without clipping, at a loss scale of 1")
                if gradient is None:
                    self.say(f"{name} has no gradient in step {self.now}: how it should move can't be judged")
                elif gradient.is_sparse or placements_of(gradient) is None:
                    self.say(f"the gradient of {name} is sparse or not reduced, and left out")
                else:
                    self.tensors[f"grad/{name}"] = this_ranks(gradient)
            self.groups[name][0] = meant_optimizer(optimizer, group, state)  # Some say it in their state, after a step.
            for moment, keys in MOMENTS.items():
                found = [from_deepspeed("optimizer_state", parameter, key) if deep else state.get(key) for key in keys]
                found = next((one for one in found if isinstance(one, torch.Tensor)), None)
                if found is not None and found.shape in (tensor.shape, parameter.shape, getattr(parameter, "ds_shape", None)):
                    self.tensors[f"{moment}_{when}/{name}"] = this_ranks(found)
                elif found is not None:
                    self.say(f"the {moment} of {name} has the shape {tuple(found.shape)}, not {tuple(parameter.shape)}: it is left out")

    def stepped_by(self, optimizer):
        """(name, the model's parameter, what is stepped in its place, its group) of all that `optimizer` steps."""
        groups = {}
        models_own = getattr(optimizer, "bit16_groups", None) or getattr(optimizer, "fp16_groups", None)  # DeepSpeed's.
        for i, group in enumerate(optimizer.param_groups):
            groups.update({id(tensor): group for tensor in (models_own[i] if models_own else group["params"])})
        found = []
        for name, parameter in self.parameters.items():
            for tensor in (parameter, getattr(parameter, "main_param", None)):
                if id(tensor) in groups:
                    found.append((name, parameter, tensor, groups.pop(id(tensor))))
        if groups:
            self.say(f"{type(optimizer).__name__} steps {len(groups)} tensors that the model doesn't have (buffers?): they aren't seen")
        return found

    # --- What there is, and where

    def seen_mesh(self):
        """Of the DTensors with most axes, or Megatron's; else all ranks are "dp"."""
        meshes = {tuple(mesh_of(p).items()): p.device_mesh.mesh for p in self.parameters.values() if is_dtensor(p)}
        if meshes:
            mesh = max(meshes, key=len)
            if meshes[mesh].flatten().tolist() != list(range(self.world)):
                raise ValueError("the mesh of the DTensors isn't all ranks in their order: give mesh={...}, all axes, slowest first")
            return dict(mesh)
        megatron = sys.modules.get("megatron.core.parallel_state")
        if megatron is None or not megatron.model_parallel_is_initialized():
            return {"dp": self.world}
        if megatron.get_pipeline_model_parallel_world_size() > 1:
            raise ValueError("the stages of a pipeline number their layers each from 0: dump with one stage")
        tp = megatron.get_tensor_model_parallel_world_size()
        return {"dp": self.world // tp, "tp": tp}

    def seen_steps(self):
        """How many steps the optimizers have made."""
        states = [state for optimizer in self.optimizers for inner in inner_optimizers(optimizer)
                  for state in getattr(inner, "state", {}).values() if isinstance(state, dict)]
        steps = max((int(number(state.get("step")) or 0) for state in states), default=0)
        if not steps and any(isinstance(state.get(key), torch.Tensor) for state in states for key in MOMENTS["momentum"]):
            raise ValueError("the optimizer has momenta, and doesn't say after how many steps: give first=..., the next one's number")
        return steps

    def part(self, parameter):
        """[begin, end) of the elements that this rank steps, where Megatron's distributed optimizer cuts them."""
        main = getattr(parameter, "main_param", None)
        if main is None or main.shape == parameter.shape:
            return None
        for optimizer in self.optimizers:
            for one in getattr(optimizer, "chained_optimizers", [optimizer]):
                if parameter in getattr(one, "model_param_gbuf_map", {}):
                    part = one._get_model_param_range_map(parameter)["param"]
                    return part.start, part.end
        raise ValueError("a parameter is stepped in parts, and no optimizer says in which: dump without the distributed optimizer")

    def described(self, name, parameter, holders):
        """The entry of a parameter; `holders` are the ranks that have momentum of it."""
        shape, placements = list(getattr(parameter, "ds_shape", parameter.shape)), placements_of(parameter)
        if placements is None:
            raise ValueError(f"{name} is placed as {parameter.placements}, which a dump has no word for")
        if getattr(parameter, "tensor_model_parallel", False) and self.mesh.get("tp", 1) > 1:
            shape[parameter.partition_dim] *= self.mesh["tp"]
            placements = [{"axis": "tp", "kind": "shard", "dim": parameter.partition_dim}]
            if getattr(parameter, "partition_stride", 1) > 1:
                self.say(f"{name} is cut in strides, which a dump has no word for: its parts are taken as they lie")
        if self.part(parameter):
            placements = [*placements, {"axis": "dp", "kind": "flat", **dict(zip(("begin", "end"), self.part(parameter)))}]
        moments = placements
        if holders and len(holders) < self.world and not placements and len(self.mesh) == 1:
            if len(holders) == 1:  # As in Keller Jordan's Muon.
                moments = [{"axis": next(iter(self.mesh)), "kind": "owner", "rank": holders[0]}]
            else:
                self.say(f"{len(holders)} of {self.world} ranks have momentum of {name}: how it is cut isn't seen")
        gradients = placements_of(parameter.grad) if parameter.grad is not None else None
        entry = {"shape": shape, "placements": placements}
        if moments != placements or (gradients or placements) != placements:
            entry["placements"] = {"weights": placements, "grad": gradients or placements, "moments": moments}
        meant, group = self.groups.get(name, ("none", {}))
        if meant is None:
            self.say(f'nothing says what {name} is stepped with: give about={{"{name}": {{"optimizer": "muon"}}}}, or "adamw"')
        entry.update({} if meant is None else {"optimizer": meant}, hyper=hyper_of(meant, group))
        for fields in (fields for pattern, fields in self.about.items() if fnmatch.fnmatchcase(name, pattern)):
            entry.update(fields)
        return entry

    def write(self):
        """Writes this rank's file of the step; ranks tell each other who has momentum of what."""
        self.read_weights("after")
        if self.to_come:
            self.say(f"in step {self.now} not all optimizers stepped: what the others step is meant to stay, it says here")
        mine = sorted({key.partition("/")[2] for key in self.tensors if key.startswith("momentum_")})
        names = [mine] * self.world
        if self.world > 1:
            torch.distributed.all_gather_object(names, mine)
        entries = {name: self.described(name, parameter, [rank for rank in range(self.world) if name in names[rank]])
                   for name, parameter in self.parameters.items()}
        metadata = {"format": "muonwalk-dump 1", "step": self.now, "rank": self.rank, "world": self.world, "mesh": self.mesh,
                    "parameters": entries, "not_seen": self.not_seen}
        metadata = {key: value if isinstance(value, str) else json.dumps(value, allow_nan=False) for key, value in metadata.items()}
        metadata["framework"] = f"torch {torch.__version__} {self.framework}".strip()
        write_safetensors(os.path.join(self.folder, f"step{self.now:06d}.rank{self.rank:05d}.safetensors"), self.tensors, metadata)
        self.now = None
