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
