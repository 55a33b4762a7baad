"""`reveil count` in processes of their own, to be killed at each step (see publish_child.py, which runs them)."""

from __future__ import annotations

import publish_child as child  # beside this script

from reveil.dp import count, mechanism
from reveil.ledger import catalog, store
from reveil.ledger.ledger import Ledger

child.STEPS = {
    "afford": lambda: child.die_after(count, "_afford"),
    "read": lambda: child.die_after(count, "read"),
    "stage": lambda: child.die_after(Ledger, "stage"),
    "noise": lambda: child.die_after(mechanism, "noisy"),
    "emit": lambda: child.die_after(count, "emit"),
    "check": lambda: child.die_after(count, "_check"),
    "seal": lambda: child.die_after(store, "seal"),
    "in transaction": child.die_in_transaction,
    "record": lambda: child.die_after(catalog.Catalog, "append"),
    "rename": lambda: child.die_after(store, "move_to_releases"),
    "mark": lambda: child.die_after(catalog.Catalog, "mark_revealed"),
    "reveal": lambda: child.die_after(Ledger, "reveal"),
}

if __name__ == "__main__":
    child.serve()
