#!/usr/bin/env python3
"""Makes predicted_runs.csv: the cost model of tools/scale once more, written first and apart from it, on a sample of
the published runs and on layouts of the 80B model. Prints the table.
"""
import csv
import math
import os
import random
from functools import lru_cache

GIB = 1024.0 ** 3
SHAPES = {  # layers, hidden, heads, ffn, vocabulary, tied
    '1B': (16, 2048, 32, 8192, 131072, True),
    '3B': (28, 3072, 32, 8192, 131072, True),
    '8B': (32, 4096, 32, 14336, 131072, False),
    '80B': (80, 8192, 64, 28672, 131072, False),
}
FITTED = dict(
    product_efficiency=0.493,
    host_seconds_per_layer=4.46e-3,
    node_hop_seconds=0.49e-3,
    pipeline_rank_seconds=2.09e-3,
    node_bytes_per_second=0.636 * 361.7e9,
    group_seconds_per_doubling=0.020,
    remap_seconds_per_gib=0.1,
    usable_bytes=66 * GIB,
)
PUBLISHED = dict(
    peak_flops=989e12, memory_bytes_per_second=3350e9, nvlink_bytes_per_second=18 * 20.6e9,
    card_bytes=80e9, gpus_per_node=8, sequence=4096, attention_efficiency=0.70,  # FA2: 35 % with the causal half
    memory_efficiency=0.9,
)
COUNTED = dict(
    hidden_traffic=160.0, ffn_traffic=34.0,    # B a token and layer, elementwise kernels forward + backward
    loss_traffic=56.0,                         # B a logit
    accumulate_traffic=12.0,                   # B a parameter and micro-batch: bf16 gradient into fp32
    optimizer_gradient_traffic=16.0, optimizer_state_traffic=30.0,  # B a parameter and step
    weight_bytes=2.0, gradient_bytes=4.0, fresh_gradient_bytes=2.0, state_bytes=12.0,
    hidden_bytes=20.0, ffn_bytes=8.0, gathered_bytes=4.0, working_bytes=8.0,
    logit_bytes=14.0,                          # 2 bf16 + 4 fp32 + 4 softmax + 4 gradient
    tp_collectives=8, tp_regather=2,
)


@lru_cache(None)
def stages(layers, hidden, ffn, vocab, pp):
    """What each stage holds: embedding, layers, norm, head, cast and loss, and how many blocks that are."""
    layer_cost = 4 * hidden * hidden + 3 * ffn * hidden
    head_cost = vocab * hidden
    total = layers * layer_cost + head_cost
    out = [dict(e=0, l=0, n=0, h=0, c=0, x=0, blocks=0) for _ in range(pp)]
    index, done = 0, 0
    for kind, cost in [('e', 0)] + [('l', layer_cost)] * layers + [('n', 0), ('h', head_cost), ('c', 0), ('x', 0)]:
        done += cost
        stage = out[index]
        stage['blocks'] += 1
        stage[kind] += 1
        if done > total * ((index + 1) / pp):
            index += 1
    return out


def predict(shape, nodes, dp, tp, pp, zero, mbs, grad_acc):
    F = FITTED
    L, h, heads, f, V, tied = shape
    P, C = PUBLISHED, COUNTED
    g8 = P['gpus_per_node']
    seq = P['sequence']
    tok = seq * mbs
    split = stages(L, h, f, V, pp)
    runs = all(s['blocks'] > 0 for s in split) and grad_acc >= pp - 1
    gpus = dp * tp * pp
    B = P['memory_bytes_per_second'] * P['memory_efficiency']
    prod = P['peak_flops'] * F['product_efficiency']
    nv = P['nvlink_bytes_per_second']
    tp_nodes = max(1, tp // g8)
    slow = tp > 1 and nodes > 1 and (pp > 1 or (nodes >= 64 and tp_nodes <= 2))
    # one layer, one micro-batch, forward + backward
    lp = 4 * h * h + 3 * h * f
    t_prod = 6 * lp * tok / tp / prod
    t_att = 12 * h * seq * tok / tp / (P['peak_flops'] * P['attention_efficiency'])
    t_elem = tok * (C['hidden_traffic'] * h + C['ffn_traffic'] * f) / tp / B
    link = nv if tp_nodes == 1 else F['node_bytes_per_second']
    volume = tok * h * 2 * (tp - 1) / tp
    t_tp = (C['tp_collectives'] + (C['tp_regather'] if slow else 0)) * volume / link if tp > 1 else 0.0
    t_hop = F['node_hop_seconds'] * (tp - 1) if tp_nodes > 1 else 0.0
    floor = F['host_seconds_per_layer']
    if slow:
        floor += F['pipeline_rank_seconds'] * tp + F['node_hop_seconds'] * (tp - 1) * (tp_nodes - 1)
    layer = t_prod + t_att + t_elem + t_tp + t_hop
    # data-parallel group
    if dp * tp <= g8: dp_nodes = 1
    elif tp <= g8: dp_nodes = dp * tp / g8
    else: dp_nodes = dp
    share = min(tp, g8)
    dp_link = nv if dp_nodes <= 1 else F['node_bytes_per_second'] / share
    wait = F['group_seconds_per_doubling'] * math.log2(dp_nodes) if dp_nodes > 1 else 0.0
    slots, tails, mems, firm = [], [], [], []
    for i, stage in enumerate(split):
        emb, nl, head, cast, loss = (stage[kind] for kind in 'elhcx')
        params = (nl * lp + (V * h if emb else 0) + (V * h if head and not (tied and emb) else 0)) / tp
        gpu = nl * layer + params * C['accumulate_traffic'] / B
        if head: gpu += 6 * V * h * tok / tp / prod + (2 * volume / link if tp > 1 else 0)
        if loss: gpu += tok * V / tp * C['loss_traffic'] / B
        if i < pp - 1: gpu += 2 * 2 * tok * ((V if head and not loss else h) / tp) / nv
        slot = max(gpu, nl * floor)
        ar = 2 * (dp - 1) / dp * C['gradient_bytes'] * params / dp_link + wait if dp > 1 else 0.0
        ag = (dp - 1) / dp * C['weight_bytes'] * params / dp_link + wait if dp > 1 and zero else 0.0
        opt = params * (C['optimizer_gradient_traffic'] + C['optimizer_state_traffic'] / (dp if zero else 1)) / B
        exposed = max(0.0, ar - slot * 2 / 3)
        tie = 4 * V * h / tp / (F['node_bytes_per_second'] / g8 if nodes > 1 else nv) if tied and pp > 1 and (emb or head) else 0.0
        # memory
        flight = min(grad_acc, pp - i)
        kept = 0.0
        if tp > 1:
            if pp == 1 or nodes == 1: kept = 1.0
            elif tp_nodes > 2: kept = 0.0
            else: kept = max(0.0, 1 - 2 / flight)
        act = nl * flight * tok * ((C['hidden_bytes'] * h + C['ffn_bytes'] * f) / tp + C['gathered_bytes'] * h * kept * (1 - 1 / tp))
        logits = 0.0
        if head: logits += 2 * flight
        if loss: logits += C['logit_bytes'] - 2
        if cast and not loss: logits += 4
        if head and not loss: logits += 2
        if loss and not head: logits += 2
        mem = params * (C['weight_bytes'] + C['gradient_bytes'] + C['fresh_gradient_bytes'] + C['state_bytes'] / (dp if zero else 1))
        act0 = nl * flight * tok * (C['hidden_bytes'] * h + C['ffn_bytes'] * f) / tp
        rest = mem + logits * tok * V / tp + C['working_bytes'] * tok * h
        mem = rest + act
        firm.append(rest + act0)
        slots.append(slot); tails.append((exposed, ag, opt, tie)); mems.append(mem)
    peak = max(mems)
    over = max(0.0, (peak - P['card_bytes']) / GIB) if pp == 1 or nodes == 1 else 0.0
    remap = F['remap_seconds_per_gib'] * over * grad_acc
    tail = max(sum(t) for t in tails)
    seconds = (grad_acc - 1) * max(slots) + sum(slots) + tail + remap
    fits = runs and max(firm) <= F['usable_bytes']
    tokens = dp * grad_acc * tok
    rate = tokens / seconds / gpus
    return rate, mems[0] / GIB, fits


def sample(records, measured=90, large=40):
    """Rows of the published table, and layouts of the 80B model."""
    random.seed(21)
    columns = 'model nodes dp tp pp zero mbs grad_acc'.split()
    with open(records, encoding='utf-8') as table:
        rows = [tuple(row[c] if c == 'model' else int(row[c]) for c in columns) for row in csv.DictReader(table)]
    rows = random.sample(rows, measured)
    while len(rows) < measured + large:
        nodes, tp = random.choice([1, 2, 4, 8, 16, 32, 64]), random.choice([1, 2, 4, 8, 16, 32])
        pp, mbs = random.choice([1, 2, 4, 8, 16, 32, 64]), random.choice([1, 2, 4, 8, 16])
        dp = nodes * 8 // (tp * pp)
        if nodes * 8 % (tp * pp) == 0 and 256 % (dp * mbs) == 0:
            rows.append(('80B', nodes, dp, tp, pp, random.choice([0, 1]), mbs, 256 // (dp * mbs)))
    return rows


if __name__ == '__main__':
    print('model,nodes,dp,tp,pp,zero,mbs,grad_acc,tokens,gib,fit')
    here = os.path.dirname(os.path.abspath(__file__))
    for row in sample(os.path.join(here, '../../tools/scale/records/ultrascale_runs.csv')):
        print(*row, *('%.9g,%.9g,%d' % predict(SHAPES[row[0]], *row[1:])).split(','), sep=',')
