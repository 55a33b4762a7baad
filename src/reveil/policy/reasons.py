"""Why somebody of a table who was never published is not shown, in the words of every command.

The planner says who, `show --affected` names them, and the audit works out from who was there what anybody could.
"""

from __future__ import annotations

SHOWN, FEW, CROWD, DRAWN, ALL, BY_VALUE = range(6)
REASONS = (
    "",
    "newcomers are too few for a group so far",
    "all newcomers wait: a value is too frequent among them",
    "drawn by lot to wait for good, so that other newcomers can be shown",
    "all newcomers wait for good: a value is too frequent among many",
    "left out because of their value, which showing them later would tell",
)
FOR_GOOD = DRAWN  # whoever has this reason or one after it is never shown
