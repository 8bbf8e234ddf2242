"""Batches of the training: rows of text and rows of dialogues.

Dialogues come in groups with one head, the same system and developer messages. The head stands in a row
once, and each dialogue of the group goes on from it (model.Branches); so little is read twice.
"""

import random

import torch

from harmony import Rendered
from model import Branches

LENGTH = 512                 # positions of a row
GROUP = 5                    # dialogues of a group


def rendered(words, item):
    """(length of the head, inputs, targets) of a dialogue; targets are -1 where nothing is to learn."""
    _, conversation, made, learn = item
    out = Rendered(*words)
    out.prompt(conversation, learn)
    out.answer(conversation, made)
    return out.head, out.ids[:-1], out.wanted[1:]


def pack(maker, words, rows):
    """Rows full of groups of dialogues: tokens and targets [rows, LENGTH], what Branches takes."""
    end = words[1]["<|endoftext|>"]
    tokens, targets = torch.full((rows, LENGTH), end), torch.full((rows, LENGTH), -1)
    groups, branches = torch.full((rows, LENGTH), -1), torch.zeros(rows, LENGTH, dtype=torch.long)
    positions = torch.zeros(rows, LENGTH, dtype=torch.long)
    for row in range(rows):
        at, group, full = 0, 0, False
        while not full:
            start, full = at, True
            for branch, (head, ids, wanted) in enumerate(rendered(words, item) for item in maker.group(GROUP)):
                skip = head if at > start else 0
                stop = at + len(ids) - skip
                if stop > LENGTH:
                    continue
                tokens[row, at:stop], targets[row, at:stop] = torch.tensor(ids[skip:]), torch.tensor(wanted[skip:])
                groups[row, at:stop], positions[row, at:stop] = group, torch.arange(skip, len(ids))
                branches[row, stop - len(ids) + head:stop] = branch + 1
                at, full = stop, False
            group += 1
    return tokens, targets, (groups, branches, positions)


def text_windows(stream, length, rows, end, generator):
    """Random windows: tokens and targets [rows, length]; three of four begin with END."""
    start = torch.randint(0, len(stream) - length - 1, (rows,), generator=generator)
    window = stream[start[:, None] + torch.arange(length + 1)]
    begin = torch.rand(rows, generator=generator) < 0.75
    shifted = torch.cat((torch.full((rows, 1), end), window[:, :-1]), 1)
    window = torch.where(begin[:, None], shifted, window)
    return window[:, :-1].contiguous(), window[:, 1:].contiguous()


def mixed(seed, stream, maker, words, rows, text_rows):
    """`rows` rows of LENGTH, of them `text_rows` of text: tokens, targets, Branches; the same for the same seed."""
    end = words[1]["<|endoftext|>"]
    maker.random = random.Random(seed)
    tokens, targets, where = pack(maker, words, rows - text_rows)
    generator = torch.Generator().manual_seed(maker.random.randrange(2**62))
    text, following = text_windows(stream, LENGTH, text_rows, end, generator)
    alone = torch.zeros_like(text)
    where = [torch.cat((a, b)) for a, b in zip(where, (alone, alone, torch.arange(LENGTH).expand_as(text)))]
    return torch.cat((tokens, text)), torch.cat((targets, following)), Branches(*where)
