"""Runs in the environment of the peers: measures tables with pyCANON, as asked for in JSON on standard input.

Each job: {"table": {column: [values]}, "quasi": [...], "sensitive": name, "measures": [...]} and, if wanted,
"index": [...] (labels of the rows) and "levels": {column: [...]} (of categories). The answer is a list of
{measure: value}, with the error as text where pyCANON fails.
"""

import json
import sys

import pandas as pd
from pycanon import anonymity


def measure(job):
    data = pd.DataFrame(job["table"], index=job.get("index"))
    for column, levels in job.get("levels", {}).items():
        data[column] = pd.Categorical(data[column], categories=levels)
    quasi, sensitive = job["quasi"], [job["sensitive"]]
    measures = {
        "k": lambda: anonymity.k_anonymity(data, quasi),
        "l": lambda: anonymity.l_diversity(data, quasi, sensitive),
        "alpha": lambda: anonymity.alpha_k_anonymity(data, quasi, sensitive)[0],
        "t": lambda: anonymity.t_closeness(data, quasi, sensitive),
        "entropy": lambda: anonymity.entropy_l_diversity(data, quasi, sensitive),
        "c": lambda: anonymity.recursive_c_l_diversity(data, quasi, sensitive)[0],
    }
    return {name: attempt(measures[name]) for name in job["measures"]}


def attempt(measured):
    try:
        return float(measured())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


json.dump([measure(job) for job in json.load(sys.stdin)], sys.stdout)
