"""A project of settings with tiny checkpoints, and the files of its banks."""

from pathlib import Path

INI = """
[common]
banks =
items =
train_items =
nli = models/encoder
encoder = models/encoder
tagger =
relevance = greedy sample
[dataset.toy]
data = toy.jsonl
train = train.jsonl
background = train.jsonl
[generator.writer]
model = models/bart
samples = 3
max_new_tokens = 8
passes = conditional vocabulary hidden sample_hidden processed unconditional attention
  attention_max focus beams
p_true = {source} w1 {summary}
verbal_2s = {source} w1 {summary}
verbal_scale = 1 5
[generator.box]
serve = models/llama
prompt = w1 {source} w2
samples = 2
max_new_tokens = 8
verbal_1s = w1 {source}
verbal_2s = w3 {source} w1 {summary}
[generator.chatty]
model = models/llama
prompt = w1 {source} w2
samples = 2
max_new_tokens = 8
passes = conditional
elicit = w3 {source} w1 {summary} w2
verbal_1s = w1 {source}
verbal_2s = w3 {source} w1 {summary}
[generator.wrong]
model = models/bart
sampels = 3
[generator.seen]
serve = models/llama
passes = conditional
[generator.elicited]
serve = models/llama
elicit = {source} w1 {summary} w2
[generator.passing]
model = models/bart
passes = conditional attntion
[generator.renamed]
model = models/bart
passes = own
[generator.scaled]
model = models/bart
verbal_scale = 5
[generator.comparing]
model = models/bart
compare = entailmnts
[generator.again]
like = writer
seed = 7
items = 1
passes = conditional
compare = sentences embeddings
p_true =
verbal_2s =
[generator.third]
like = again
seed = 8
[generator.lost]
like = nobody
[generator.round]
like = about
[generator.about]
like = round
[profile.small]
banks = toy--writer toy--box toy--chatty
[profile.first]
banks = bulletin--writer
perturbed_banks = bulletin--again
items = 2
[profile.cross]
banks = toy--writer
cross_evaluation = toy--writer toy--chatty
[dataset.bulletin]
data = bulletin:test:9
train = bulletin:train:5
"""


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".") and ".sqlite" not in path.name
    }
