"""The awaited twins have the same calls with the same parameters."""

import inspect

import pytest

from txl_client import (AsyncClient, AsyncSession, AsyncTurnStream, Client,
                        Session, TurnStream)

TWINS = [(Client, AsyncClient), (Session, AsyncSession),
         (TurnStream, AsyncTurnStream)]


def public(cls):
    return {name: member for name, member in inspect.getmembers(cls)
            if not name.startswith("_")}


@pytest.mark.parametrize("waiting, awaited", TWINS)
def test_twins_have_the_same_members(waiting, awaited):
    assert public(waiting).keys() == public(awaited).keys()


@pytest.mark.parametrize("waiting, awaited", TWINS)
def test_twins_take_the_same_parameters(waiting, awaited):
    for name, member in public(waiting).items():
        if inspect.isfunction(member):
            one = inspect.signature(member).parameters.values()
            other = inspect.signature(
                getattr(awaited, name)).parameters.values()
            assert ([(p.name, p.kind, p.default) for p in one]
                    == [(p.name, p.kind, p.default) for p in other]), name


@pytest.mark.parametrize("waiting, awaited", TWINS)
def test_every_call_says_what_it_does(waiting, awaited):
    for cls in (waiting, awaited):
        for name, member in public(cls).items():
            assert inspect.getdoc(member), f"{cls.__name__}.{name}"
