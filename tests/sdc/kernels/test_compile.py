"""Tests of the kernel cache: choice of folder, one file per signature, private folders only."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest
from microguard.sdc.errors import UnsupportedArguments
from microguard.sdc.kernels import compile as kernels
from numba.core.caching import IndexDataCacheFile
from numba.core.event import install_recorder


def test_kernel_is_compiled_in_memory_if_no_folder_is_writable(monkeypatch):
    def refusing(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(kernels, "_Cache", refusing)
    assert kernels.kernel(lambda x: x + 1)(2) == 3


@pytest.mark.parametrize(
    ("kind", "found"), [(IndexDataCacheFile, "code of integers"), (kernels.FilePerSignature, None)]
)
def test_concurrent_compilation_never_mixes_the_code_of_signatures(tmp_path, kind, found):
    """The control, Numba's own cache, runs integer code on floats. This justifies our cache files."""
    place = (str(tmp_path), "function", "stamp")
    integers, floats = ("integers",), ("floats",)

    class Late(kind):
        """Process that ends before it writes its code, after another process wrote first."""

        def _load_index(self):
            index = super()._load_index()
            kind(*place).save(integers, "code of integers")
            return index

        def _save_data(self, name, data):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Late(*place).save(floats, "code of floats")
    kind(*place).save(integers, "code of integers")
    assert kind(*place).load(integers) == "code of integers"
    assert kind(*place).load(floats) == found


@pytest.mark.parametrize("left", [b"", b"\0" * 8, b"half"])
def test_kernel_with_a_damaged_cache_file_is_compiled_again(tmp_path, left):
    files = kernels.FilePerSignature(str(tmp_path), "function", "stamp")
    files.save(("floats",), "code of floats" * 9)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(left if left != b"half" else kept.read_bytes()[: kept.stat().st_size // 2])
    assert files.load(("floats",)) is None
    files.save(("floats",), "code of floats")
    assert files.load(("floats",)) == "code of floats"


@pytest.mark.parametrize("compiled", [kernels.borrowing, kernels.embedded])
def test_borrowing_kernel_that_allocates_is_rejected(compiled):
    @compiled
    def last(array):
        return array[len(array) - 1][0]

    @compiled
    def made(n):
        return np.empty(n)[0]

    assert last(np.arange(6.0).reshape(3, 2)) == 4.0
    with pytest.raises(UnsupportedArguments):
        made(3)


def test_borrowing_kernel_may_call_a_kernel_that_allocates():
    @kernels.kernel
    def summed(n):
        return np.arange(n).sum()

    @kernels.borrowing
    def twice(n):
        return 2 * summed(n)

    assert twice(4) == 12


def test_choose_folder_uses_a_private_folder_for_a_read_only_installation(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernels, "_writable", lambda folder: False)
    monkeypatch.setattr(kernels.tempfile, "gettempdir", lambda: str(tmp_path))
    kernels.choose_folder()
    (folder,) = tmp_path.iterdir()
    assert Path(numba.config.CACHE_DIR).parent == folder
    assert folder.stat().st_mode & 0o777 == 0o700


def test_choose_folder_uses_the_folder_of_the_user(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "given")
    monkeypatch.setattr(kernels, "_writable", lambda folder: False)
    kernels.choose_folder()
    assert Path(numba.config.CACHE_DIR).parent == Path("given")


def test_choose_folder_changes_with_any_source(monkeypatch, tmp_path):
    (tmp_path / "kernels.py").write_text("x = 1")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "called.py").write_text("y = 1")
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "kernels" / "compile.py"))
    before = kernels._digest()
    (tmp_path / "room" / "called.py").write_text("y = 2")
    assert kernels._digest() != before


@pytest.mark.parametrize(("place", "left"), [("beside", ["kernels-now"]), ("elsewhere", None)])
def test_forget_earlier_deletes_code_of_earlier_sources_unless_shared(monkeypatch, tmp_path, place, left):
    there = ["kernels-before", "kernels-now", "other.pyc"]
    for name in there:
        (tmp_path / place / name).mkdir(parents=True)
    monkeypatch.setattr(kernels, "_BESIDE", tmp_path / "beside")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / place / "kernels-now"))
    kernels.forget_earlier()
    remaining = sorted(path.name for path in (tmp_path / place).iterdir())
    assert remaining == (there if left is None else [*left, "other.pyc"])


@pytest.mark.parametrize("make", ["open", "link"])
def test_private_folder_refuses_links_and_folders_that_others_can_write(tmp_path, make):
    planted = tmp_path / f"microguard-kernels-{os.getuid()}"
    if make == "open":
        planted.mkdir()
        planted.chmod(0o777)
    else:
        (tmp_path / "elsewhere").mkdir()
        planted.symlink_to(tmp_path / "elsewhere")
    assert kernels.private_folder(tmp_path) is None


#: Compile all parts in a new process, and print the compiled functions.
COMPILATIONS = """
from numba.core.event import install_recorder
from microguard.sdc.precompile import precompile
with install_recorder("numba:compile") as compilations:
    precompile()
print(sorted({str(event.data["dispatcher"].py_func) for _, event in compilations.buffer}))
"""


def test_precompile_leaves_nothing_to_compile_to_the_next_process():
    """If the first of two processes compiles a kernel, the second one loads it from the cache."""
    run = partial(subprocess.run, [sys.executable, "-c", COMPILATIONS], capture_output=True, text=True)
    if run(check=True).stdout != "[]\n":
        assert run(check=True).stdout == "[]\n"


def test_load_compiled_compiles_nothing_and_a_killed_compilation_is_completed(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def part(killed_after: int = 2) -> None:
        """Call two new kernels whose code must be only in the cache folder."""
        for function in (_half, _third)[:killed_after]:
            kernels.kernel(function)(6.0)

    assert not kernels.load_compiled(part)
    assert list(tmp_path.rglob("*.nbc")) == []
    part(killed_after=1)
    with install_recorder("numba:compile") as compilations:
        assert kernels.load_compiled(lambda: part(killed_after=1))
        assert not kernels.load_compiled(part)
    assert compilations.buffer == []
    part()
    assert kernels.load_compiled(part)


def _half(x):
    return x / 2


def _third(x):
    return x / 3
