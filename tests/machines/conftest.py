import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A folder for the user's own machines that is empty, so that no test sees the real one."""
    folder = tmp_path / "config"
    monkeypatch.setenv("SIXND_CONFIG_DIR", str(folder))
    return folder
