"""What torch2.sh runs: torch's own Muon, FSDP2 and tensor parallelism in real ranks (Gloo), dumped.

    torch2_ranks.py FOLDER          starts all of them, each in processes of its own
"""

import subprocess
import sys

import torch

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from muonwalk_dump import dump


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.up, self.down = torch.nn.Embedding(40, 64), torch.nn.Linear(64, 160, bias=False), torch.nn.Linear(160, 64, bias=False)
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, tokens):
        x = self.embedding(tokens)
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def optimizers_of(model, whole=lambda p: p):
    matrices = [p for name, p in model.named_parameters() if name in ("up.weight", "down.weight")]
    rest = [p for name, p in model.named_parameters() if name not in ("up.weight", "down.weight")]
    return [whole(matrices), torch.optim.AdamW(rest, lr=0.003, weight_decay=0.1)]


class GatheringMuon(torch.optim.Optimizer):
    """torch.optim.Muon's step on whole matrices: it knows no DTensor, so each is gathered, stepped and cut again."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1, "nesterov": True, "ns_steps": 5})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                whole = torch.nn.Parameter(p.full_tensor().clone())
                whole.grad = p.grad.full_tensor().clone()
                muon = torch.optim.Muon([whole], lr=0.02, weight_decay=0.1)
                if state:
                    muon.state[whole]["momentum_buffer"] = state["momentum_buffer"].full_tensor().clone()
                muon.step()
                cut = lambda x: torch.distributed.tensor.distribute_tensor(x, p.device_mesh, p.placements)
                state["momentum_buffer"] = cut(muon.state[whole]["momentum_buffer"])
                p.copy_(cut(whole.detach()))


def train(model, optimizers, folder, steps=2):
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    mesh = getattr(model, "mesh", None)
    torch.manual_seed(10 + (rank if mesh is None else mesh.get_local_rank("dp")))
    with dump(optimizers, model, folder, steps=range(1, steps + 1)):
        for _ in range(steps):
            model(torch.randint(0, 40, (32,))).square().sum().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


def alone(folder):
    """torch.optim.Muon in one process."""
    torch.manual_seed(0)
    model = Model()
    train(model, optimizers_of(model, lambda ps: torch.optim.Muon(ps, lr=0.02, weight_decay=0.1)), folder)


def fsdp(folder, sizes={"dp": 3}):
    """fully_shard, uneven: 160, 64 and 40 rows over three ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    torch.manual_seed(0)
    model = Model()
    model.mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    if "tp" in sizes:
        parallelize_module(model, model.mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(model, mesh=model.mesh["dp"])
    train(model, optimizers_of(model, GatheringMuon), folder)


def fsdp_tp(folder):
    """fully_shard over tensor parallelism: strided shards."""
    fsdp(folder, {"dp": 2, "tp": 2})


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "--rank":
        what, rank, world, folder = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
        if world > 1:
            torch.distributed.init_process_group("gloo", f"file://{folder}.meeting", rank=rank, world_size=world)
        globals()[what](folder)
        sys.exit()
    for what, world in (("alone", 1), ("fsdp", 3), ("fsdp_tp", 4)):
        ranks = [subprocess.Popen([sys.executable, __file__, "--rank", what, str(rank), str(world), f"{sys.argv[1]}/{what}"]) for rank in range(world)]
        if any([rank.wait(timeout=200) for rank in ranks]):
            sys.exit(f"{what}: a rank failed")
