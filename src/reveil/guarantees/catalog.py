"""Every guarantee there is: the modules of this package that describe one, in the order of their ranks.

Nothing lists them by hand, so a new guarantee changes no other file.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import reveil.guarantees as package
from reveil.guarantees.descriptor import Descriptor, Parameters


@cache
def descriptors() -> dict[str, Descriptor]:
    """All guarantees by name.

    >>> list(descriptors())[:3]
    ['k-anonymity', 'l-diversity', 't-closeness']
    """
    modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
    described = (module.DESCRIPTOR for module in modules if hasattr(module, "DESCRIPTOR"))
    return {one.name: one for one in sorted(described, key=lambda one: (one.rank, one.name))}


@cache
def _by_parameters() -> dict[type[Parameters], Descriptor]:
    return {one.parameters: one for one in descriptors().values()}


def descriptor_of(parameters: Parameters) -> Descriptor:
    """The guarantee that these are parameters of."""
    return _by_parameters()[type(parameters)]
