"""Graphs of samples as the code of Nikitin et al. 2024 and TruthTorchLM score them, written once:

git clone https://github.com/AlexanderVNikitin/kernel-language-entropy runs/kle
git clone https://github.com/Ybakman/TruthTorchLM runs/ttlm
python scripts/geometry_cases.py runs/kle runs/ttlm > tests/fixtures/geometry.json

Read at be650e4 and 01060f8. Of the second only the two functions of the matrix run; the first needs networkx.
"""

import ast
import json
import sys

import networkx as nx
import numpy as np
from scipy.linalg import eigvals

kle_folder, directed_file = sys.argv[1:]
directed_file += "/src/TruthTorchLM/truth_methods/directional_entailment_graph.py"
sys.path.insert(0, kle_folder)
from kle.core import normalize_kernel, vn_entropy  # noqa: E402
from kle.kernels import heat_kernel, matern_kernel  # noqa: E402

NAMES = ("_compute_random_walk_laplacian", "_compute_uncertainty")
tree = ast.parse(open(directed_file, encoding="utf-8").read())
functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in NAMES]
directed = dict(np=np, eigvals=eigvals)
exec(compile(ast.Module(functions, []), directed_file, "exec"), directed)


def graph(weights):
    "Undirected graph with these weights."
    return nx.from_numpy_array(weights)


def case(rng, k):
    "Probabilities of a class and words in common of k samples, and what the two packages make of them."
    p = np.round(0.01 + 0.97 * rng.dirichlet(np.ones(3), (k, k)), 6)
    entail, contra = p[..., 2], p[..., 0]
    shared = np.round(rng.uniform(0, 1, (k, k)), 6)
    jaccard = np.where(np.eye(k, dtype=bool), 1.0, (shared + shared.T) / 2)
    both = entail + entail.T
    weights = both + (2 - both - contra - contra.T) / 2
    clusters = np.sort(rng.integers(0, 2, k))
    clusters -= clusters.min()
    member = (clusters == np.arange(clusters.max() + 1)[:, None]).astype(float)
    logp = np.round(-rng.exponential(size=k), 6)
    mass = member @ np.exp(logp)
    kernel = heat_kernel(graph(member @ weights @ member.T), t=0.3)
    mixed = 0.5 * normalize_kernel(kernel) / len(kernel) + 0.5 * np.diag(mass / mass.sum())
    matrix = np.where(np.eye(k, dtype=bool), 1.0, entail) + jaccard
    laplacian = directed[NAMES[0]](None, matrix)
    return dict(
        entail=entail.tolist(),
        contra=contra.tolist(),
        jaccard=jaccard.tolist(),
        clusters=clusters.tolist(),
        logp=logp.tolist(),
        kle_matern=float(vn_entropy(matern_kernel(graph(weights)))),
        kle_matern_2_3=float(vn_entropy(matern_kernel(graph(weights), kappa=2, nu=3))),
        kle_clusters=float(vn_entropy(mixed, normalize=False, scale=False)),
        d_ue=float(directed[NAMES[1]](None, laplacian)),
    )


rng = np.random.default_rng(0)
print(
    json.dumps(
        dict(
            command="python scripts/geometry_cases.py runs/kle runs/ttlm",
            cases=[case(rng, k) for k in (2, 3, 5, 8)],
        )
    )
)
