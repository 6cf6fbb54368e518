"""The picture is drawn by a process of its own: a real PNG, in bounded time and memory, whatever names are in it."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image

from bot import drawing
from bot.chart.picture import Bar, Picture, Rate
from bot.drawing import Drawing, DrawingError
from bot.views.digest_picture import MOST_BARS, picture
from tests.bot.hostile import INVISIBLE
from tests.bot.safety import UTC_ZONE
from tests.digests import a_digest
from tests.environment import unmeasured

Colour = tuple[int, int, int]

PAPER: Colour = (0xFB, 0xFA, 0xF7)
PASSED: Colour = (0x2F, 0x6F, 0xB2)
FAILED: Colour = (0xD9, 0x48, 0x0F)
NOT_REACHED: Colour = (0xDC, 0xDA, 0xD3)
WIDTH = 1080
TALLEST = 1600
"""Pixels: a higher one is shown smaller than its width would let it be."""
BARS = 780
"""Pixels above the bars."""

PICTURE = picture(a_digest(), UTC_ZONE)


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> Drawing:
    return Drawing(data_dir=tmp_path_factory.mktemp("data"))


def drawn(draw: Drawing, shown: Picture) -> Image.Image:
    image = Image.open(BytesIO(draw.png(shown)))
    assert image.format == "PNG"
    return image.convert("RGBA")


def bar(
    name: str = "nightly", place: int = 1, *, passed: int = 30, failed: int = 0, not_reached: int = 0
) -> Bar:
    return Bar(
        workflow=name, place=place, check="fields", passed=passed, failed=failed, not_reached=not_reached
    )


def rates(*runs: tuple[int, int]) -> tuple[Rate, ...]:
    return tuple(Rate(week=f"{n}", passed=p, failed=f) for n, (p, f) in enumerate(runs, start=37))


def test_a_picture_is_as_wide_as_a_phone_shows_well_and_not_too_high(draw: Drawing) -> None:
    most = replace(PICTURE, bars=tuple(bar(failed=1, not_reached=1) for _ in range(MOST_BARS)))
    image = drawn(draw, most)
    assert image.width == WIDTH
    assert WIDTH < image.height <= TALLEST


def test_it_brings_its_own_background(draw: Drawing) -> None:
    """Nothing of the chat shines through, be it light or dark, and what is drawn is not at the edge."""
    image = drawn(draw, PICTURE)
    assert image.getchannel("A").getextrema() == (255, 255)
    edges = [
        image.crop(box)
        for box in ((0, 0, WIDTH, 20), (0, 0, 40, image.height), (WIDTH - 40, 0, WIDTH, image.height))
    ]
    assert all(edge.getcolors() == [(edge.width * edge.height, (*PAPER, 255))] for edge in edges)


def test_each_outcome_has_its_colour_however_rare_it_is(draw: Drawing) -> None:
    """In the bar itself; the headings of the numbers have two of them."""
    expected: list[tuple[Bar, set[Colour]]] = [
        (bar(), {PASSED}),
        (bar(passed=0, failed=3), {FAILED}),
        (bar(passed=100_000, failed=1), {PASSED, FAILED}),
        (bar(not_reached=1), {PASSED, NOT_REACHED}),
    ]
    image = drawn(draw, replace(PICTURE, bars=tuple(each for each, _ in expected))).convert("RGB")
    rows = [image.crop((60, top, WIDTH - 60, top + 1)) for top in range(BARS, image.height)]
    seen = [{colour for _, colour in row.getcolors() or []} for row in rows]
    assert all(sum(row == colours for row in seen) >= 18 for _, colours in expected)


@pytest.mark.parametrize(
    "shown",
    [
        replace(PICTURE, bars=(), rates=(), headline="No runs", summary="No runs"),
        replace(PICTURE, bars=(), rates=rates(*[(0, 0)] * 12)),
        replace(PICTURE, rates=rates((7, 0))),
        replace(PICTURE, rates=rates((0, 9), (0, 0), (9, 0), (8, 1), (0, 0), (7, 2))),
        replace(PICTURE, rates=rates(*[(10**9, 0)] * 12), bars=(bar(passed=10**12, failed=10**12),)),
        replace(PICTURE, summary="x" * 300),
        replace(PICTURE, bars=(bar(passed=0),)),
    ],
    ids=["nothing at all", "no runs", "one week", "gaps", "large numbers", "a long summary", "an empty bar"],
)
def test_every_kind_of_week_can_be_drawn(draw: Drawing, shown: Picture) -> None:
    """And stays within its edges."""
    image = drawn(draw, shown)
    assert image.height <= TALLEST
    right = image.crop((WIDTH - 30, 0, WIDTH, image.height))
    assert right.getcolors() == [(right.width * right.height, (*PAPER, 255))]


@pytest.mark.parametrize(
    "names",
    [
        ("$\\frac{1}{0}$", "$x^$", "\\", "{}", "%s", "_a_", "W" * 64, "customer-report-eu-west-1-final"),
        (
            "ночной-отчёт",
            "تقرير",
            "דוח",
            "日次レポート",
            "👩🚀",
            "e\u0301" * 30,
            "ﷺ" * 20,
            "a\u0300\u0301" * 9,
        ),
        tuple(INVISIBLE[number : number + 5] for number in range(8)),
    ],
    ids=["markup", "scripts", "invisible"],
)
def test_no_name_keeps_a_picture_from_being_drawn(draw: Drawing, names: tuple[str, ...]) -> None:
    bars = tuple(
        bar(name.encode(errors="ignore").decode(), place) for place, name in enumerate(names, start=1)
    )
    image = drawn(draw, replace(PICTURE, bars=bars))
    right = image.crop((WIDTH - 30, 0, WIDTH, image.height))
    assert right.getcolors() == [(right.width * right.height, (*PAPER, 255))]


def test_a_name_that_no_font_can_write_is_shown_by_its_place_in_the_text(draw: Drawing) -> None:
    """Not as boxes; and a line below says so."""
    letter = "\U0001f6dd\ue000"
    unwritten = drawn(draw, replace(PICTURE, bars=(bar(letter, 2),)))
    numbered = drawn(draw, replace(PICTURE, bars=(bar("workflow 2", 2),)))
    assert unwritten.height > numbered.height
    same = (0, 0, WIDTH, numbered.height - 40)
    assert unwritten.crop(same).tobytes() == numbered.crop(same).tobytes()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "/home/op/agents/eu-west-1/nightly/a/out/report.json",
            "/home/op/agents/eu-west-1/nightly/b/out/report.json",
        ),
        (f"{'x' * 80}1{'x' * 80}", f"{'x' * 80}2{'x' * 80}"),
        ("nightly", "nightly"),
    ],
    ids=["paths", "the middle", "letters that look alike"],
)
def test_two_workflows_never_look_alike(draw: Drawing, first: str, second: str) -> None:
    """However little of their names there is room for."""
    image = drawn(draw, replace(PICTURE, bars=(bar(first, 1), bar(second, 2), bar(first, 1))))
    # From the name down to below its bar.
    tops = [BARS - 1 + 82 * row for row in range(3)]
    one, other, again = (image.crop((60, top, 700, top + 60)).tobytes() for top in tops)
    assert one == again
    assert one != other


def test_the_bot_itself_never_loads_what_draws(tmp_path: Path) -> None:
    """Nor numpy: the memory, which is not much, ends with the process that used it."""
    script = """
import resource, sys
from pathlib import Path
import bot.app, bot.digesting
from bot.chart.picture import Picture
from bot.drawing import Drawing
shown = Picture(title="", dates="", headline="", summary="", rates=(), bars=())
assert Drawing(data_dir=Path(sys.argv[1])).png(shown)
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 250 * 1024
print({"matplotlib", "numpy"} & {*sys.modules})
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=unmeasured())  # noqa: S603 - our own
    assert said.stdout == "set()\n"


def test_what_it_keeps_lies_in_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the file system may be read-only; settings for a person's own pictures change nothing."""
    first = Drawing(data_dir=tmp_path).png(PICTURE)
    assert any((tmp_path / "drawing").iterdir())
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nsavefig.transparent: True\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "of their own")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Drawing(data_dir=tmp_path).png(PICTURE) == first


def test_a_picture_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the process itself, or by whoever waits for it."""
    with pytest.raises(DrawingError, match=r"^took more than 0\.01 s$"):
        Drawing(data_dir=tmp_path, seconds=0.01).png(PICTURE)
    monkeypatch.setattr(drawing, "_OWN_END", 0.0)
    with pytest.raises(DrawingError, match=r"^took more than 0\.01 s$"):
        Drawing(data_dir=tmp_path, seconds=0.01).png(PICTURE)


def test_a_picture_that_takes_too_much_memory_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(DrawingError, match=r"^failed: "):
        Drawing(data_dir=tmp_path, memory=1 << 20).png(PICTURE)


def test_a_process_that_cannot_be_started_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DrawingError, match="could not be started: Not a directory"):
        Drawing(data_dir=tmp_path / "file").png(PICTURE)


def test_a_picture_is_no_burden_to_send(draw: Drawing) -> None:
    assert len(draw.png(PICTURE)) < 400_000
