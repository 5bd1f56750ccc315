"""The microphone and the upload in a real browser: recorded, refused, cut off, and never a sample lost."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest
from lab_pages import QUIET, cell, fits, open_notebook, run_cell, write_notebook

from course_lib import views
from course_lib.measure import programs
from course_lib.speech import audio, synthetic
from course_lib.speech.sample import Sample
from course_lib.views import microphone

RATE, TONE_HZ = 48_000, 1000
#: A page at localhost, where browsers hand out microphones, with what the handler of the button needs.
PLACE = "http://localhost/speech"
PAGE = f"""<!doctype html><div class="{microphone.ROOT}">{microphone.button()}
<div class="{microphone.DATA}"><textarea style="display:none"></textarea></div></div>"""


def tone(seconds=3.0, rate=RATE):
    return (0.3 * np.sin(2 * np.pi * TONE_HZ * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def strongest_hz(samples, rate=16_000):
    return float(np.argmax(np.abs(np.fft.rfft(samples))) * rate / len(samples))


@pytest.fixture(scope="module")
def speaking(browser, tmp_path_factory):
    """A browser whose microphone hears a tone of 1 kHz, over and over."""
    heard = tmp_path_factory.mktemp("microphone") / "tone.wav"
    integers = np.round(32767 * tone()).astype("<i2").tobytes()
    heard.write_bytes(wav_of_integers(integers))
    fake = ["use-fake-device-for-media-stream", "use-fake-ui-for-media-stream"]
    arguments = [*QUIET, *(f"--{one}" for one in fake), f"--use-file-for-fake-audio-capture={heard}"]
    started = browser.browser_type.launch(executable_path=programs.browser(), args=arguments)
    yield started
    started.close()


def wav_of_integers(data):
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    chunks = form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI4s", b"RIFF", 4 + len(chunks), b"WAVE") + chunks


@pytest.fixture
def stage(speaking):
    """A page of the speaking browser, with the record button on it and nothing else."""
    page = speaking.new_page(viewport={"width": 1280, "height": 1600})
    page.set_default_timeout(20_000)
    page.route(PLACE, lambda route: route.fulfill(body=PAGE, content_type="text/html; charset=utf-8"))
    page.goto(PLACE)
    yield page
    page.close()


def recorded(page):
    """Return the sample in the text field, as the kernel would read it."""
    page.wait_for_function("document.querySelector('textarea').value")
    text = page.locator("textarea").input_value()
    assert text.startswith(microphone.HEAD)
    content = base64.b64decode(text.removeprefix(microphone.HEAD))
    assert audio.from_bytes(content, "a recording")[1] == 16_000
    return Sample.of(content, "a recording")


def test_the_microphone_is_recorded_by_keyboard_as_16_khz_mono(stage):
    stage.keyboard.press("Tab")
    stage.keyboard.press("Enter")
    button = stage.get_by_role("button", name=microphone.STOP)
    button.wait_for()
    assert "Recording: speak" in stage.get_by_role("status").inner_text()
    stage.wait_for_timeout(1500)
    stage.keyboard.press("Space")
    sample = recorded(stage)
    assert 1.0 < sample.seconds < 4.0 and sample.samples.dtype == np.float32
    assert 0.1 < np.abs(sample.samples).max() <= 1 and abs(strongest_hz(sample.samples) - TONE_HZ) < 5
    assert stage.get_by_role("button").inner_text() == microphone.RECORD
    assert stage.get_by_role("status").inner_text() == ""


def test_a_recording_ends_by_itself_and_the_microphone_is_let_go(stage):
    stage.evaluate(
        """() => { const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        navigator.mediaDevices.getUserMedia = async what => (window.given = await ask(what)); }"""
    )
    handler = stage.get_by_role("button").get_attribute("onclick")
    short = handler.replace(f"const LONGEST_S = {microphone.LONGEST_S};", "const LONGEST_S = 1;")
    assert short != handler
    stage.get_by_role("button").evaluate("(one, text) => one.setAttribute('onclick', text)", short)
    stage.get_by_role("button").click()
    assert 0.5 < recorded(stage).seconds < 3
    assert stage.evaluate("window.given.getTracks().map(track => track.readyState)") == ["ended"]


def test_without_a_microphone_or_a_permission_a_sentence_says_so(stage):
    stage.evaluate(
        """() => { navigator.mediaDevices.getUserMedia =
        async () => { throw new DOMException('no', window.refusal); }; }"""
    )
    said = stage.get_by_role("status")
    for name in (*microphone.REFUSALS, "SecurityError"):
        stage.evaluate("name => { window.refusal = name; }", name)
        stage.get_by_role("button").click()
        said.filter(has_text=microphone.REFUSALS.get(name, microphone.OTHERWISE)).wait_for()
        assert microphone.UPLOAD in said.inner_text()
        assert stage.get_by_role("button").inner_text() == microphone.RECORD
        assert stage.locator("textarea").input_value() == ""
    stage.evaluate("Object.defineProperty(navigator, 'mediaDevices', {value: undefined})")
    stage.get_by_role("button").click()
    said.filter(has_text=microphone.NONE_HERE).wait_for()


def test_the_still_twin_fits_the_page(page, pictures):
    page.set_content(f"<!doctype html><body>{views.speech_input().static().body}")
    for width in (800, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=pictures / f"speech_still_{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_role("img").get_attribute("alt")
    assert synthetic.NAME in page.get_by_role("figure").inner_text()


ASK = "print(speech.name, speech.rate, speech.samples.dtype, speech.seconds)"


def test_in_jupyterlab(lab, speaking, tmp_path, pictures):
    show = "speech = views.speech_input()\nspeech"
    write_notebook(lab.folder / "speech.ipynb", "from course_lib import views", show, ASK)
    page = speaking.new_page(viewport={"width": 1280, "height": 1600})
    page.set_default_timeout(30_000)
    try:
        open_notebook(page, lab, "speech.ipynb")
        run_cell(page, "from course_lib")
        shown = run_cell(page, "speech = views")
        now = shown.get_by_role("status").filter(has_text="In use:")
        now.filter(has_text=synthetic.NAME).wait_for()
        assert f"{synthetic.NAME} 16000 float32 2.1" in answer(page)

        record = shown.get_by_role("button", name="Record")
        record.focus()
        page.keyboard.press("Enter")
        shown.get_by_role("button", name="Stop").wait_for()
        page.wait_for_timeout(1500)
        page.keyboard.press("Enter")
        now.filter(has_text="In use: your recording").wait_for()
        assert chosen(shown) == "your recording"
        shown.screenshot(path=pictures / "speech_recorded.png")
        assert "your recording 16000 float32" in answer(page)

        upload(page, shown, tmp_path / "letter.txt", b"no sound")
        shown.get_by_role("alert").filter(has_text="letter.txt is no sound that can be read").wait_for()
        assert "your recording 16000 float32" in answer(page)
        upload(page, shown, tmp_path / "tone.wav", audio.as_wav(tone(1.0), RATE))
        now.filter(has_text="In use: tone.wav, 1.0 s").wait_for()
        assert shown.get_by_role("alert").count() == 0
        assert "tone.wav 16000 float32 1.0" in answer(page)

        assert chosen(shown) == "tone.wav"
        shown.get_by_role("combobox").focus()
        for key in ("Space", "ArrowUp", "Enter"):
            page.keyboard.press(key)
        now.filter(has_text="In use: your recording").wait_for()
        again = run_cell(page, "speech = views")
        again.get_by_text("In use: your last sample, 1.0 s").wait_for()
        again.screenshot(path=pictures / "speech_again.png")
        for width in (800, 1200):
            page.set_viewport_size({"width": width, "height": 1600})
            page.wait_for_timeout(300)
            assert fits(again)
            again.screenshot(path=pictures / f"speech_widget_{width}.png")
    finally:
        page.close()


def chosen(shown):
    """Return what the list of sounds shows."""
    return shown.get_by_role("combobox").evaluate("one => one.selectedOptions[0]?.label").replace("\xa0", " ")


def answer(page):
    """Ask the kernel which sound it has, and return what it prints."""
    return run_cell(page, "print(speech").locator(".jp-OutputArea").inner_text()


def upload(page, shown, path, content):
    path.write_bytes(content)
    with page.expect_file_chooser() as chooser:
        shown.get_by_role("button", name="Upload").click()
    chooser.value.set_files(path)
    assert cell(page, "speech = views").locator("[data-mime-type*=error]").count() == 0
