"""Tests of the workbench in a browser: open a file, correct roles, choose k, accept a limit, run, approve."""

import http.client
import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from microguard.schemas.specification.read import read_specification

from tests.pipelines.workbench.test_preview import survey
from tests.pipelines.workbench.window import CONTRAST, NAMELESS, SECONDS, require_browser, started, window

EXAMPLES = Path(__file__).resolve().parents[3] / "docs/examples"
SECRET = "VALUE-OF-A-RECORD"
HOSTILE = '<img src=x onerror="document.title=`taken`">'


def people(records=600):
    frame = survey(records).astype({"region": "category", "sex": "category"})
    frame["illness"] = frame["illness"].replace("h", f"{SECRET}<script>document.title='taken'</script>")
    frame[HOSTILE] = frame["hours"].astype(str) + "'\"><script>document.title='taken'</script>"
    frame["key"] = [f"p{number}" for number in range(records)]
    return frame.drop(columns="hours")


def figures(page):
    """Wait for figures of the specification as it is; return them by name."""
    page.get_by_text("The figures describe the current specification.").wait_for()
    rows = page.locator("section[aria-labelledby=figures] tbody tr")
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Return a workbench on a file with hostile names and categories."""
    require_browser()
    folder = tmp_path_factory.mktemp("browser")
    people().to_parquet(folder / "people.parquet", index=False)
    with started(folder, "people.parquet") as (address, printed):
        yield folder, address, printed


@pytest.mark.spark
def test_workbench_drafts_protects_and_approves_a_file(opened):
    folder, address, printed = opened
    with window(address) as page:
        before = figures(page)
        assert page.title() == "microguard workbench"  # the browser has run no script from a name or category
        assert HOSTILE in page.locator("table.columns th[scope=row]").all_inner_texts()
        page.get_by_label("role of illness").select_option("sensitive")
        page.get_by_label("role of key").select_option("unit")
        page.get_by_label(f"role of {HOSTILE}").select_option("other")
        figures(page)
        page.get_by_label("k: records that share a combination").fill("5")
        page.keyboard.press("Enter")
        page.get_by_text("k = 5, before").wait_for()
        after = figures(page)
        assert after.keys() != before.keys()
        page.get_by_label("effort of the search").select_option("fast")
        page.get_by_label("a verified release").select_option("required")
        figures(page)
        for limit in ("max_unique_published", "max_unique_jointly"):
            page.get_by_label(f"reason to accept {limit}, and by whom").first.fill(
                "an open question, A. Steward"
            )
            page.get_by_role("button", name=f"Accept {limit}").first.click()
            page.locator("li", has_text=f"Accept {limit}").first.wait_for(state="detached")
        assert page.get_by_text("A run would be refused").count() == 0
        seen = figures(page)
        page.get_by_role("button", name="Protect", exact=True).click()
        page.get_by_role("heading", name="protect: done").wait_for()
        with page.expect_popup() as popup:
            page.get_by_role("link", name="The page to sign").click()
        assert "Waiting for approval" in popup.value.inner_text("body")
        popup.value.close()
        page.get_by_role("button", name="Approve and publish").click()
        page.get_by_text("Write the name of the person").wait_for()
        page.get_by_label("who decides on").fill("A. Steward")
        page.get_by_role("button", name="Approve and publish").click()
        page.get_by_role("heading", name="approve: done").wait_for()
        page.get_by_role("button", name="Look up releases").click()
        page.get_by_text("Releases, oldest first").wait_for()
        page.get_by_role("button", name="Show what withdrawal means").click()
        page.get_by_text("readers of current.json will find no release").wait_for()
        page.get_by_role("button", name="Withdraw it").wait_for()
    specification = read_specification(folder / "people.toml")
    assert specification.release.k == 5
    assert specification.quality.accept["max_unique_jointly"] == "an open question, A. Steward"
    current = json.loads((folder / specification.public_area / "current.json").read_text())["release_id"]
    quality = json.loads((folder / specification.evidence_area / current / "quality.json").read_text())
    measured = quality["loss"]["all"]["information_loss"]
    value, error = (
        float(each.split()[0]) if each[0].isdigit() else 0.0
        for each in seen["information loss, effort fast"][:2]
    )
    assert 0 < error < value
    assert abs(100 * measured - value) <= error
    assert SECRET not in printed.read_text()


@pytest.mark.spark
@pytest.mark.parametrize("protects", [False, pytest.param(True, marks=pytest.mark.long)])
def test_workbench_opens_compares_and_protects_a_table(tmp_path, protects):
    require_browser()
    for name in ("business/businesses.csv", "table/suppression.toml"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(EXAMPLES / name, tmp_path / name)
    with started(tmp_path / "table", "suppression.toml") as (address, _), window(address) as page:
        page.get_by_text("44 cells, 3 of them sensitive").wait_for()
        marked = page.locator("td.sensitive").all_inner_texts()
        assert len(marked) == 3
        assert all(each.startswith("▲") for each in marked)
        page.get_by_label("p %: a contributor can be estimated to within p percent").fill("60")
        page.keyboard.press("Enter")
        page.get_by_text("44 cells, 6 of them sensitive").wait_for()
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("44 cells, 3 of them sensitive").wait_for()
        if not protects:
            return
        page.get_by_role("button", name="Compare all methods").click()
        page.get_by_text("Methods on this table").wait_for()
        page.get_by_role("button", name="Protect the table").click()
        page.get_by_role("heading", name="adjust: done").wait_for()
        sensitive = [
            each.split()[0] for each in page.locator("table.grid tr:has(.sensitive) th").all_inner_texts()
        ]
    (cells,) = (tmp_path / "table/evidence/suppression").glob("*/cells.parquet")
    frame = pd.read_parquet(cells)
    assert sorted(sensitive) == sorted(frame[frame["sensitive"]]["code_division"])


@contextmanager
def window_beside(page, address):
    """Open a second window of the same browser."""
    other = page.context.new_page()
    other.set_default_timeout(1000 * SECONDS)
    other.goto(address)
    figures(other)
    yield other
    other.close()


def test_workbench_page_fits_three_widths_with_contrast_and_names(opened, tmp_path):
    with window(opened[1]) as page:
        figures(page)
        page.locator("img.picture").first.wait_for()
        for width in (1280, 768, 380):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            )
            page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
            assert page.evaluate(CONTRAST) == []
            assert page.evaluate(NAMELESS) == []
        assert page.locator("h1").count() == 1


def test_workbench_keyboard_changes_a_role_and_undoes_the_change(opened):
    with window(opened[1]) as page:
        figures(page)
        role = page.get_by_label("role of sex")
        first = role.input_value()
        for _ in range(60):
            page.keyboard.press("Tab")
            if role.evaluate("element => element === document.activeElement"):
                break
        assert role.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
        page.keyboard.press("i")  # the role "identifier"
        page.get_by_text("role of sex: identifier").first.wait_for(state="attached")
        assert role.input_value() == "identifier"
        figures(page)
        for _ in range(60):
            page.keyboard.press("Shift+Tab")
            if page.evaluate("document.activeElement.innerText") == "Undo":
                break
        page.keyboard.press("Enter")
        page.wait_for_function(
            "value => document.querySelector(`[aria-label='role of sex']`).value === value", arg=first
        )


def test_typed_text_survives_an_update_of_the_page(opened):
    with window(opened[1]) as page, window_beside(page, opened[1]) as other:
        figures(page)
        field = page.get_by_label("k: records that share a combination")
        field.focus()
        page.keyboard.press("Control+A")
        page.keyboard.type("7")
        said = page.locator(".said").inner_text()
        approval = other.get_by_label("a verified release")
        approval.select_option("none" if approval.input_value() == "required" else "required")
        page.wait_for_function("said => document.querySelector('.said').innerText !== said", arg=said)
        figures(page)
        assert field.input_value() == "7"
        page.keyboard.press("Enter")
        page.get_by_text("k = 7, before").wait_for()
        assert other.get_by_label("k: records that share a combination").input_value() == "7"


WITH_RESULTS = """
import sys
from microguard.pipelines import start
from microguard.pipelines.workbench import open_file
from microguard.pipelines.workbench.commands import Finished
import microguard

def prepared(named):
    workbench = original(named)
    release = "0123456789abcdef" * 2
    row = {"release": release, "name": "people", "period": None, "state": "stands", "units": 3}
    failure = {"what": "information loss", "found": "0.5", "limit": "at most 0.1", "remedy": "accept more",
               "line": "[quality] max_information_loss = 0.6"}
    workbench.finished = {
        "check": Finished(0, "checked", {"forecast": {"failures": [failure]}}),
        "protect": Finished(0, "protected", {"release_id": release, "waiting": "evidence/" + release}),
        "pending": Finished(0, "", {"pending": [{"release_id": release, "since": "now", "evidence": "e"}]}),
        "history": Finished(0, "", {"releases": [row, row | {"release": release[::-1], "units": 5}]}),
    }
    return workbench

original, open_file.open_file = open_file.open_file, prepared
microguard.main(["start", sys.argv[1], "--no-browser"])
"""


def test_page_shows_results_of_verbs_with_possible_actions(tmp_path):
    require_browser()
    people().to_parquet(tmp_path / "people.parquet", index=False)
    with started(tmp_path, "people.parquet", WITH_RESULTS) as (address, _), window(address) as page:
        figures(page)
        assert page.get_by_role("button", name="Approve and publish").count() == 2
        assert page.get_by_text("units 3 to 5").is_visible()
        page.get_by_role("button", name="Show what withdrawal means").click()
        page.get_by_text("current.json will direct readers to 01234567 again").wait_for()
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate(NAMELESS) == []
        page.get_by_role("button", name="Approve and publish").first.click()
        page.get_by_text("Write the name of the person").wait_for()
        page.get_by_role("button", name="Set [quality] max_information_loss = 0.6").click()
        page.get_by_role("heading", name="check: done").wait_for(state="detached")
        page.get_by_text("The specification (TOML)").click()
        page.get_by_text("max_information_loss = 0.6").first.wait_for()


def test_workbench_reports_a_replaced_file_and_runs_no_verb(tmp_path):
    require_browser()
    people().to_parquet(tmp_path / "people.parquet", index=False)
    with started(tmp_path, "people.parquet") as (address, printed), window(address) as page:
        figures(page)
        people(500).to_parquet(tmp_path / "people.parquet", index=False)
        page.get_by_role("button", name="Protect", exact=True).click()
        page.get_by_text("was replaced or changed after it was read").wait_for()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["people.parquet", "printed.txt"]
    assert SECRET not in printed.read_text()


def answered(address, path="/", **headers):
    """Return the status of a request from another program on this machine."""
    host = address.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=SECONDS)
    connection.request("GET", path, headers={"Host": host} | headers)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Set-Cookie", "").partition(";")[0], answer.read()


def test_running_server_refuses_other_hosts_users_and_origins(opened):
    address = opened[1]
    own, _, query = address.partition("/?")
    status, cookie, _ = answered(address, f"/?{query}")
    assert (status, answered(own, Cookie=cookie)[0]) == (200, 200)
    assert b"people.parquet" in answered(own, Cookie=cookie)[2]
    socket = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    socket |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    channel = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert answered(own, channel, Cookie=cookie, Origin=own, **socket)[0] == 101
    polling = channel.replace("websocket", "polling")
    for attack in (
        {"Cookie": cookie, "Host": "attacker.example"},
        {"Cookie": cookie, "Origin": "http://attacker.example"},
        {"Cookie": cookie.replace("=", "=x")},
        {},
    ):
        for path, more in (("/", {}), (polling, {}), (channel, {"Origin": own} | socket)):
            status, given, body = answered(own, path, **(more | attack))
            assert (status, given) == (403, "")
            assert b"people" not in body


def test_only_the_verb_workbench_imports_the_workbench():
    code = (
        "import sys; import microguard.jobs.verbs as v\n"
        "[verb.function() for name, verb in v.VERBS.items() if name != 'start']\n"
        "rooms = 'microguard.pipelines.workbench', 'nicegui', 'tomlkit'\n"
        "print([name for name in sys.modules if name.startswith(rooms)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
