"""`reveil count` in processes of their own, to be killed at each step (see publish_child.py, which runs them)."""

from __future__ import annotations

import publish_child as child  # beside this script

from reveil.dp import count, mechanism
from reveil.ledger import ledger, store
from reveil.ledger.folder import Folders
from reveil.ledger.ledger import Ledger
from reveil.ledger.sqlite import SqliteCatalog

child.STEPS = {
    "afford": lambda: child.die_after(count, "_afford"),
    "read": lambda: child.die_after(count, "read"),
    "laid out": lambda: child.die_after(store, "lay_out"),
    "key": lambda: child.die_after(store, "make_key"),
    "founded": lambda: child.die_after(ledger, "found_series"),
    "stage": lambda: child.die_after(Ledger, "stage"),
    "noise": lambda: child.die_after(mechanism, "noisy"),
    "emit": lambda: child.die_after(count, "emit"),
    "check": lambda: child.die_after(count, "_check"),
    "seal": lambda: child.die_after(Folders, "seal"),
    "in transaction": child.die_in_transaction,
    "record": lambda: child.die_after(SqliteCatalog, "append"),
    "rename": lambda: child.die_after(Folders, "reveal"),
    "mark": lambda: child.die_after(SqliteCatalog, "set_state"),
    "reveal": lambda: child.die_after(Ledger, "reveal"),
}

if __name__ == "__main__":
    mechanism.opendp()  # importing it takes seconds, which every process below would take again
    child.serve()
