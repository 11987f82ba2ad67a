"""Lets the tests of this folder import `lines` of the notation's, and keeps the user's own machines out of them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "notation"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SIXND_CONFIG_DIR", str(tmp_path_factory.getbasetemp() / "no-machines"))
