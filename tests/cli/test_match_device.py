"""`tamis match --device`: what is wrong is said before subscriptions are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tamis.cli.main import main


@pytest.mark.parametrize(
    ("device", "message"),
    [("tpu", "device must be 'cpu', 'gpu'"), ("gpu:", "device must be"), ("gpu", "needs numba-cuda")],
)
def test_a_device_that_cannot_be_used(
    device: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba_cuda", None)
    from tamis.gpu.card import card_of

    card_of.cache_clear()
    alerts = tmp_path / "alerts.txt"
    alerts.write_text("price <\n")
    done = CliRunner().invoke(main, ["match", str(alerts), str(alerts), "--device", device])
    assert done.exit_code != 0
    assert message in done.output + str(done.exception)
