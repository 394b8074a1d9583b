"""What we hand out: the source distribution and the wheel hold what they should, and a fresh install runs the README's script.

They are built here, or lie in the folder that ``TAMIS_DIST`` names, as after ``make release``.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

import tamis
from tests.markdown import ROOT, Page

README = Page(ROOT / "README.md")
_NOT_OURS = (
    ".*",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    "*.nb[ci]",
    "spark-warehouse",
    "artifacts",
    "metastore_db",
)


def call(command: list[str | Path], cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TAMIS_URL")}
    done = subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with one source distribution, and one wheel that was made from it."""
    if "TAMIS_DIST" in os.environ:
        return Path(os.environ["TAMIS_DIST"]).resolve()
    folder = tmp_path_factory.mktemp("release")
    tree, dist = folder / "tree", folder / "dist"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*_NOT_OURS))
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(dist)!r})"
    call([sys.executable, "-c", build], tree)
    (source,) = dist.glob("*.tar.gz")
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        dist,
    ]
    call([*pip, source], folder)
    return dist


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def described(wheel: Path) -> Metadata:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"tamis-{tamis.__version__}.dist-info/METADATA")
    return Metadata.from_email(text, validate=True)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = ROOT / "src" / "tamis"
    console = (package / "service" / "console").iterdir()
    backend = ROOT / "src" / "sigma" / "backends" / "tamis" / "__init__.py"
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (*package.rglob("*.py"), *console, backend)}
    about = {name for name in names if name.startswith(f"tamis-{tamis.__version__}.dist-info/")}
    assert names - about == sources | {"tamis/py.typed"}
    assert any(name.endswith("LICENSE") for name in about)


def test_the_metadata(wheel: Path) -> None:
    metadata = described(wheel)
    assert str(metadata.version) == tamis.__version__
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.description_content_type == "text/markdown"
    assert not metadata.home_page
    assert not metadata.author


def test_no_link_of_the_description_needs_a_clone(wheel: Path, tmp_path: Path) -> None:
    page = tmp_path / "description.md"
    page.write_text(described(wheel).description or "")
    text = page.read_text()
    assert text.startswith("# Tamis\n")
    assert "](docs/" not in text
    assert "](CHANGELOG.md)" not in text


def test_links_get_an_address_where_there_is_one() -> None:
    outside = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["outside"]
    text = "![Rates](docs/x.svg) [the language](docs/language.md#kinds), [PyPI](https://pypi.org)"
    assert outside(text, None) == " the language, [PyPI](https://pypi.org)"
    assert outside(text, "https://example.org/v1/") == (
        "![Rates](https://example.org/v1/docs/x.svg) [the language](https://example.org/v1/docs/language.md#kinds), "
        "[PyPI](https://pypi.org)"
    )


def test_the_source_distribution_holds_all_that_the_readme_links_to(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {link.partition("#")[0] for link in README.links() if ":" not in link}
    assert wanted <= names
    assert {"Makefile", "constraints.txt", "docs/conf.py", "tests/conftest.py", "examples/spark_matching.py"} <= names
    assert not [name for name in names if name.startswith((".", "build", "dist"))]


def test_a_fresh_install_runs_the_first_script(wheel: Path, tmp_path: Path) -> None:
    """The packages that Tamis needs come from this environment: tests have no network."""
    fresh = tmp_path / "fresh"
    call([sys.executable, "-m", "venv", "--without-pip", fresh], tmp_path)
    python = fresh / "bin" / "python"
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
    ]
    call([*pip, wheel], tmp_path)
    libraries = Path(call([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], tmp_path).strip())
    places = dict.fromkeys([sysconfig.get_path("purelib"), *(place for place in sys.path if "site-packages" in place)])
    (libraries / "needed.pth").write_text("\n".join(places) + "\n")

    script = README.of_language("python")[0]
    (tmp_path / "first.py").write_text(f"{script.text}\nassert tamis.__file__.startswith({str(fresh)!r})\n")
    assert call([python, "first.py"], tmp_path, PYTHONUTF8="1").rstrip("\n") == README.output_of(script)
    assert tamis.__version__ in call([fresh / "bin" / "tamis", "--version"], tmp_path)
