"""Descriptors: what holds for every guarantee there is."""

from __future__ import annotations

from importlib import import_module
from typing import get_type_hints

import pytest

from reveil.base.errors import InputError
from reveil.guarantees.catalog import descriptor_of, descriptors
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.lasting import CohortTerms, ManyValues
from reveil.plan.methods import METHODS
from reveil.policy.guarantee import RECORDED, Guarantee, form
from reveil.policy.policy import load_policy

EVERY = list(descriptors().values())


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_a_descriptor_names_what_there_is(one):
    assert set(one.methods) <= set(METHODS) and set(one.kept_by or ()) <= set(METHODS)
    assert set(one.asked_by) <= set(one.keys) and set(one.words_of_ours) <= set(one.keys)
    assert set(one.needs) <= set(form().model_fields)
    assert one.words.endswith(".")
    if one.condition is not None:
        assert import_module(f"reveil.plan.cutting.conditions.{one.condition}").CONDITION


def test_a_key_means_the_same_to_every_guarantee_that_owns_it():
    """Keys are read before it is known whose they are."""
    for key in form().model_fields:
        owners = [get_type_hints(one.parameters, include_extras=True)[key] for one in EVERY if key in one.keys]
        bare = [str(hint).removesuffix(" | None").replace("typing.Optional", "") for hint in owners]
        kinds = {text.strip("[]") for text in bare}
        assert len(kinds) <= 1, (key, kinds)


def test_ranks_part_all_guarantees():
    assert len({one.rank for one in EVERY}) == len(EVERY)


def test_what_was_ever_recorded_is_still_a_key():
    assert set(RECORDED) <= set(form().model_fields)


def test_conditions_are_found_by_their_kind():
    promise = Guarantee.of("m-distinct", m=4, k=6)
    assert promise.find(KAnonymity).k == 6
    assert promise.require(ManyValues) is promise.find(CohortTerms) is promise.headline
    assert [descriptor_of(one).name for one in promise.conditions] == ["k-anonymity", "m-distinct"]
    assert promise.methods == ("cohorts-evolving",)
    assert Guarantee.of("m-distinct", m=4, view="individual").methods == ("m-distinct",)


def test_a_method_that_is_for_another_guarantee_is_refused():
    """Cohorts were once planned for a promise without m, and failed there."""
    for name, words in (("cohorts", "plans for guarantee.model"), ("budget", 'guarantee.model = "global" only')):
        with pytest.raises(InputError, match=words):
            load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 2}, "method": {"name": name}})
