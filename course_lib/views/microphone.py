"""The record button: a piece of the page that has the browser's microphone, which a kernel has not.

ipywidgets knows no microphone. But the page does, and a button in it may carry a handler. This one records,
writes the sound as a WAV file (`microphone.js`), and puts that into a hidden text field of ipywidgets, which
hands it to the kernel as if somebody had typed it. What goes wrong is said beside the button.
"""

from __future__ import annotations

import json
from importlib import resources

from course_lib.theme import INK, PAPER, QUIET
from course_lib.views.paper import escape

LONGEST_S = 30  # a message of about 1.3 MB; Jupyter's largest are 10 MB
RECORD, STOP = "● Record", "■ Stop"
#: Classes of the widgets that the handler looks for.
ROOT, DATA, SAID = "speech-input", "speech-data", "speech-said"
HEAD = "data:audio/wav;base64,"

UPLOAD = "upload a file, or stay with the sample that is there"
NONE_HERE = (
    "This page has no microphone: browsers give it only to pages at localhost or under https, and some "
    f"editors never do; {UPLOAD}."
)
#: What getUserMedia raises (W3C, Media Capture and Streams, 10.2) -> what the learner can do.
REFUSALS = {
    "NotAllowedError": "The microphone is not allowed here: allow it beside the page's address and press "
    f"Record again; or {UPLOAD}.",
    "NotFoundError": f"No microphone was found: plug one in and press Record again; or {UPLOAD}.",
    "NotReadableError": "The microphone is there but does not answer (in use by another program?): free it "
    f"and press Record again; or {UPLOAD}.",
}
OTHERWISE = f"The microphone cannot be used here: {UPLOAD}."
NOT_RECORDED = f"The browser could not record: {UPLOAD}."


def button() -> str:
    """Return the record button and the place where it says what goes on, as HTML."""
    constants = {
        "ROOT": ROOT,
        "DATA": DATA,
        "SAID": SAID,
        "RECORD": RECORD,
        "STOP": STOP,
        "LONGEST_S": LONGEST_S,
        "NONE_HERE": NONE_HERE,
        "REFUSALS": REFUSALS,
        "OTHERWISE": OTHERWISE,
        "NOT_RECORDED": NOT_RECORDED,
    }
    handler = resources.files("course_lib.views").joinpath("microphone.js").read_text(encoding="utf-8")
    known = "".join(f"const {name} = {json.dumps(value)};" for name, value in constants.items()) + "\n"
    style = (
        f"font:inherit;padding:4px 12px;background:{PAPER};color:{INK};border:1px solid {QUIET};"
        "border-radius:3px;cursor:pointer"
    )
    return (
        f'<button type="button" style="{style}" title="Record from the microphone; press again to stop" '
        f'onclick="{escape(known + handler)}">{RECORD}</button>'
        f'<div class="{SAID}" role="status" style="color:{QUIET};font-size:12.5px;line-height:1.45;'
        'max-width:76ch;white-space:normal"></div>'
    )
