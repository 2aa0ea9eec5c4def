// Part of muonwalk.js, at the end of what Emscripten writes: run(lesson, arguments), which returns {exitCode, stdout, stderr,
// recording}. The recording is the text of what `--record FILE` has written, and null without it.
let exitCode = 0;
const written = {stdout: [], stderr: []};
Module['stdout'] = byte => written.stdout.push(byte);
Module['stderr'] = byte => written.stderr.push(byte);

// Every run begins in the memory of the first one, whatever the one before has left in it and however it has ended.
let memoryAtStart = null;
function startAnew() {
  if (memoryAtStart === null) {
    memoryAtStart = HEAPU8.slice();
    return;
  }
  HEAPU8.set(memoryAtStart);
  Fibers.nextFiber = 0;
  Fibers.trampolineRunning = false;
  Fibers.exceptions = null;
  [exceptionCaught, uncaughtExceptionCount, exceptionLast] = [[], 0, 0];
}

quit_ = (status, end) => { throw end; };  // exit() in C++; in node, Emscripten's would set the exit code of node as well

Module['run'] = (lesson, args) => {
  startAnew();
  written.stdout = [];
  written.stderr = [];
  exitCode = 0;
  const words = [lesson, '--world', 'fibers', ...args];
  const argv = _malloc(4 * (words.length + 1));
  words.forEach((word, i) => { HEAPU32[argv / 4 + i] = allocateUTF8(word); });
  HEAPU32[argv / 4 + words.length] = 0;
  const stack = stackSave();
  try {
    _run_program(words.length, argv);
  } catch (end) {
    if (!(end instanceof ExitStatus)) throw end;
    exitCode = end.status;
    stackRestore(stack);
  }
  _fflush(0);
  const text = bytes => new TextDecoder().decode(new Uint8Array(bytes));
  const named = words.lastIndexOf('--record') + 1;
  let recording = null;
  if (named > 0 && FS.analyzePath(words[named]).exists) {
    recording = FS.readFile(words[named], {encoding: 'utf8'});
    FS.unlink(words[named]);
  }
  return {exitCode, stdout: text(written.stdout), stderr: text(written.stderr), recording};
};

// A browser compiles a function when it is first called, and once more, better, when it has been called often. These runs, half a
// second, have them compiled while the page loads, and the reader's first run is as fast as any other.
addOnPostRun(() => { for (let i = 0; i < 3; ++i) Module['run']('lesson_09_full_step', ['--toy']); });
