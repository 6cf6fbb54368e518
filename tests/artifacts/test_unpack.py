"""A compressed output is unpacked, must be whole, and grows to a bounded size."""

import bz2
import gzip
import io
import lzma
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from jobs.artifacts.packing import Packing, packing_of
from jobs.artifacts.snapshot import Snapshot
from jobs.artifacts.unpack import _content, _DamagedError, read_output
from jobs.verification.checks import Output
from jobs.verification.spec import Format, WorkflowSpec

GOOD: Final = b'{"status": "ok", "result": [1, 2, 3]}\n' * 10


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("report.json", data)
    return file.getvalue()


PACK: Final[Mapping[Packing, Callable[[bytes], bytes]]] = {
    Packing.GZIP: gzip.compress,
    Packing.BZIP2: bz2.compress,
    Packing.XZ: lzma.compress,
    Packing.ZSTD: zstandard.compress,
    Packing.ZIP: zipped,
}
STREAMS: Final = [packing for packing in PACK if packing is not Packing.ZIP]
ENDINGS: Final = {".gz": Packing.GZIP, ".bz2": Packing.BZIP2, ".xz": Packing.XZ, ".zst": Packing.ZSTD}


def unpack(data: bytes, name: str = "report", most: int = 1_000_000) -> bytes:
    return _content(Snapshot(path=name, data=data), WorkflowSpec(format=Format.ANY, max_size=most))


def damage(data: bytes, name: str = "report", most: int = 1_000_000) -> str:
    with pytest.raises(_DamagedError) as raised:
        unpack(data, name, most)
    return str(raised.value)


# ── what is compressed ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("packing", PACK)
def test_it_is_known_by_its_first_bytes(packing: Packing) -> None:
    assert packing_of("report.json", PACK[packing](GOOD)) is packing
    assert packing_of("report.json", PACK[packing](b"")) is packing


@pytest.mark.parametrize(("ending", "packing"), ENDINGS.items())
def test_or_by_its_name(ending: str, packing: Packing) -> None:
    assert packing_of(f"report.json{ending}", b"{}") is packing
    assert packing_of(f"REPORT.JSON{ending.upper()}", b"{}") is packing


@pytest.mark.parametrize("data", [b"{}", b"BZh9 is how it begins", b"PK", b"\x1f\x8b", b""])
def test_all_else_is_not(data: bytes) -> None:
    assert packing_of("report.gz.json", data) is None
    assert unpack(data) == data


def test_the_bytes_go_before_the_name() -> None:
    assert unpack(gzip.compress(GOOD), "report.json.zst") == GOOD


# ── whole ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("packing", PACK)
def test_what_is_whole_is_unpacked(packing: Packing) -> None:
    large = os.urandom(300_000) + bytes(600_000)
    for data in (GOOD, large):
        assert unpack(PACK[packing](data)) == data


@pytest.mark.parametrize("packing", STREAMS)
def test_it_may_consist_of_several_parts(packing: Packing) -> None:
    pack = PACK[packing]
    assert unpack(pack(GOOD) + pack(b"") + pack(b"more")) == GOOD + b"more"


@pytest.mark.parametrize("packing", STREAMS)
def test_zero_bytes_may_fill_it_up(packing: Packing) -> None:
    assert unpack(PACK[packing](GOOD) + bytes(2000)) == GOOD


@pytest.mark.parametrize("packing", PACK)
def test_nothing_packed_is_no_content(packing: Packing) -> None:
    """An archive without members neither."""
    assert damage(PACK[packing](b"")) == "is empty once unpacked, expected some content"
    assert damage(b"PK\5\6" + bytes(18)) == "is empty once unpacked, expected some content"


def test_all_members_of_an_archive_are_unpacked() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(3):
            archive.writestr(f"{number}/", b"")
            archive.writestr(f"{number}/part", f"part {number}, ")
    assert unpack(file.getvalue()) == b"part 0, part 1, part 2, "


# ── damaged ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("ending", "packing"), [*ENDINGS.items(), (".zip", Packing.ZIP)])
def test_cut_at_any_byte_it_is_not_whole(ending: str, packing: Packing) -> None:
    packed = PACK[packing](GOOD)
    for length in range(1, len(packed)):
        assert f"its {packing} compression is " in damage(packed[:length], f"report{ending}")


def test_where_it_is_cut_is_told() -> None:
    packed = gzip.compress(GOOD)[:-1]
    assert (
        damage(packed) == f"its gzip compression is cut off after {len(packed)} bytes, expected a whole file"
    )


@pytest.mark.parametrize("packing", STREAMS)
def test_nothing_may_follow_it(packing: Packing) -> None:
    assert "compression is damaged" in damage(PACK[packing](GOOD) + b"{}" * 10)
    assert "compression is damaged" in damage(PACK[packing](GOOD) + b"\0{}" * 10)


@pytest.mark.parametrize("packing", [Packing.GZIP, Packing.BZIP2, Packing.XZ, Packing.ZIP])
@given(data=st.data())
def test_a_byte_changed_is_never_another_content(packing: Packing, data: st.DataObject) -> None:
    packed = bytearray(PACK[packing](GOOD))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    try:
        content = unpack(bytes(packed))
    except _DamagedError:
        return
    assert content in {GOOD, bytes(packed), b""}


@given(packing=st.sampled_from(Packing), start=st.integers(0, 40), noise=st.binary(max_size=300))
def test_whatever_the_bytes_are_it_is_damaged_or_it_is_not(
    packing: Packing, start: int, noise: bytes
) -> None:
    with suppress(_DamagedError):
        unpack(PACK[packing](GOOD)[:start] + noise, f"report.{packing}")


def test_an_archive_with_a_password_is_damaged() -> None:
    packed = bytearray(zipped(GOOD))
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in damage(bytes(packed))


def test_only_any_takes_archives(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(zipped(GOOD))
    output = read_output(str(path), WorkflowSpec(format=Format.JSON))
    assert output.damage == "is a zip archive, expected json, compressed by itself or not at all"
    assert read_output(str(path), WorkflowSpec(format=Format.ANY)).data == GOOD


# ── bombs ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("packing", PACK)
def test_as_large_as_it_may_be(packing: Packing) -> None:
    packed = PACK[packing](bytes(100_000))
    assert unpack(packed, most=100_000) == bytes(100_000)
    assert damage(packed, most=99_999) == "is larger once unpacked, expected at most 99,999 bytes (max_size)"


@pytest.mark.parametrize("packing", PACK)
def test_a_bomb_is_given_up(packing: Packing) -> None:
    bomb = PACK[packing](bytes(100_000_000))
    assert len(bomb) < 120_000
    assert damage(bomb) == "is larger once unpacked, expected at most 1,000,000 bytes (max_size)"


def test_many_members_are_one_bomb() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(50):
            archive.writestr(str(number), bytes(100_000))
    assert "max_size" in damage(file.getvalue())


# ── read ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_read_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "report.json.gz"
    path.write_bytes(gzip.compress(GOOD))
    output = read_output(str(path), WorkflowSpec())
    assert (output.problem, output.damage, output.data) == (None, None, GOOD)
    assert output.artifact is not None
    assert output.artifact.size == path.stat().st_size


def test_what_is_damaged_has_an_artifact_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "report.json.gz"
    path.write_bytes(gzip.compress(GOOD)[:-5])
    output = read_output(str(path), WorkflowSpec())
    assert output.artifact is not None
    assert output.damage is not None
    assert (output.problem, output.data) == (None, b"")


def test_what_cannot_be_read_is_not_unpacked(tmp_path: Path) -> None:
    path = f"{tmp_path}/report.json.gz"
    assert read_output(path, WorkflowSpec()) == Output(
        problem=f"{path} does not exist, expected a regular file"
    )
