"""The record button: a piece of the page that has the browser's microphone, which a kernel has not.

ipywidgets knows no microphone. But the page does, and a button in it may carry a handler. This one records,
writes the sound as a WAV file, and puts that into a hidden text field of ipywidgets, which hands it to the
kernel as if somebody had typed it. What goes wrong is said beside the button.
"""

from __future__ import annotations

import json

from course_lib.views.paper import INK, PAPER, QUIET, escape

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

_HANDLER = """
(async button => {
  const root = button.closest('.' + ROOT);
  const say = text => { root.querySelector('.' + SAID).textContent = text; };
  if (button.recorder) { button.recorder.stop(); return; }
  if (button.waits) return;
  if (!navigator.mediaDevices || !window.MediaRecorder) { say(NONE_HERE); return; }
  button.waits = true;
  say('Waiting for the microphone: your browser may ask you.');
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({audio: true});
  } catch (problem) {
    say(REFUSALS[problem.name] || OTHERWISE + ' (' + problem.name + ')');
    return;
  } finally { button.waits = false; }
  let clock;
  const rest = () => {
    clearInterval(clock);
    stream.getTracks().forEach(track => track.stop());
    button.recorder = null;
    button.textContent = RECORD;
  };
  try {
    const recorder = new MediaRecorder(stream), pieces = [];
    recorder.ondataavailable = event => pieces.push(event.data);
    recorder.onerror = () => { rest(); say(NOT_RECORDED); };
    recorder.onstop = async () => {
      rest();
      say('Reading the recording.');
      try {
        const whole = await new Blob(pieces).arrayBuffer();
        const sound = await new OfflineAudioContext(1, 1, 16000).decodeAudioData(whole);
        const field = root.querySelector('.' + DATA + ' textarea');
        field.value = await asText(sound);
        field.dispatchEvent(new Event('change', {bubbles: true}));
        say('');
      } catch (problem) { say(NOT_RECORDED + ' (' + problem.name + ')'); }
    };
    recorder.start();
    button.recorder = recorder;
    const started = performance.now();
    const tick = () => {
      const seconds = (performance.now() - started) / 1000;
      button.textContent = STOP + ' (' + Math.floor(seconds) + ' of at most ' + LONGEST_S + ' s)';
      if (seconds >= LONGEST_S && recorder.state === 'recording') recorder.stop();
    };
    clock = setInterval(tick, 200);
    tick();
    say('Recording: speak, then press the button once more.');
  } catch (problem) { rest(); say(NOT_RECORDED + ' (' + problem.name + ')'); }

  async function asText(sound) {
    const count = sound.length, channels = sound.numberOfChannels;
    const view = new DataView(new ArrayBuffer(44 + 2 * count));
    const word = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
    word(0, 'RIFF'); view.setUint32(4, 36 + 2 * count, true); word(8, 'WAVEfmt ');
    view.setUint32(16, 16, true); view.setUint16(20, 1, true); view.setUint16(22, 1, true);
    view.setUint32(24, sound.sampleRate, true); view.setUint32(28, 2 * sound.sampleRate, true);
    view.setUint16(32, 2, true); view.setUint16(34, 16, true);
    word(36, 'data'); view.setUint32(40, 2 * count, true);
    const each = [...Array(channels).keys()].map(channel => sound.getChannelData(channel));
    for (let i = 0; i < count; i++) {
      const mean = each.reduce((sum, channel) => sum + channel[i], 0) / channels;
      view.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(32768 * mean))), true);
    }
    return await new Promise((done, failed) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result);
      reader.onerror = () => failed(reader.error);
      reader.readAsDataURL(new Blob([view], {type: 'audio/wav'}));
    });
  }
})(this)
"""


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
    known = "".join(f"const {name} = {json.dumps(value)};" for name, value in constants.items())
    style = (
        f"font:inherit;padding:4px 12px;background:{PAPER};color:{INK};border:1px solid {QUIET};"
        "border-radius:3px;cursor:pointer"
    )
    return (
        f'<button type="button" style="{style}" title="Record from the microphone; press again to stop" '
        f'onclick="{escape(known + _HANDLER)}">{RECORD}</button>'
        f'<div class="{SAID}" role="status" style="color:{QUIET};font-size:12.5px;line-height:1.45;'
        'max-width:76ch;white-space:normal"></div>'
    )
