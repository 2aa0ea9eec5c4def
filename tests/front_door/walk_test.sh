#!/usr/bin/env bash
# Tests of ./walk and .ci/run, on a stand-in project and a stand-in machine. Every function test_... is one test; its
# first line says what holds. "walk_test.sh ROOT test_list" runs one of them.
set -euo pipefail

source_root=$1
here=$(CDPATH="" cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
project="$scratch/a walk in the park"
machine=$scratch/machine calls=$scratch/calls absent=$scratch/absent
# shellcheck source=tests/front_door/stand_in_project.sh
source "$here/stand_in_project.sh"

# --- what a test is made of -------------------------------------------------------------------------------------------

# Runs a command on the stand-in machine, without a terminal; leaves $status, $out and $err behind.
on_machine() {
  status=0
  PATH="$machine:$PATH" "$@" </dev/null >"$scratch/out" 2>"$scratch/err" || status=$?
  out=$(<"$scratch/out") err=$(<"$scratch/err")
}
walk() { on_machine "$project/walk" "$@"; }
walk_on_bare_machine() { on_machine env PATH="$machine" "$machine/bash" "$project/walk" "$@"; }

fail() {
  printf '  %s\n  exit %s\n  --- stdout\n%s\n  --- stderr\n%s\n  --- calls\n%s\n' "$1" "$status" "$out" "$err" "$(<"$calls")"
  exit 1
}
skip() {
  echo "$1"
  exit 77
}
expect_status() { [[ $status == "$1" ]] || fail "expected exit $1"; }
expect_out() { [[ $out == "$1" ]] || fail "expected this standard output: $1"; }
expect_words() { [[ $err == "walk: $1" ]] || fail "expected exactly this on standard error: walk: $1"; }
expect_err() { [[ $err == *"$1"* ]] || fail "expected on standard error: $1"; }
expect_one_sentence() { [[ $err == "walk: "* && $err != *$'\n'* ]] || fail "expected one sentence on standard error"; }
expect_call() { grep -qxF -- "$1" "$calls" || fail "expected this call: $1"; }
expect_no_call() { ! grep -q -- "$1" "$calls" || fail "expected no call of: $1"; }
expect_last_line() { [[ $(tail -n 1 <<<"$out") == "$1" ]] || fail "expected as the last line: $1"; }

apt_install="apt-get -y -q -o DPkg::Lock::Timeout=120 install --no-install-recommends"

# --- words ------------------------------------------------------------------------------------------------------------

test_unknown_words() {
  : "anything walk does not know is refused in one sentence, exit 2, before anything is installed or built"
  stub cmake 'exit 99'
  local words sentence known="is not a word I know; try ./walk, ./walk list, ./walk 05, ./walk try, ./walk test, ./walk bench, ./walk notebooks, ./walk jupyter or ./walk help"
  while IFS='|' read -r words sentence; do
    # shellcheck disable=SC2086
    walk $words
    expect_status 2
    expect_words "$sentence"
    expect_out ""
    [[ ! -s $calls ]] || fail "nothing should have been called for: $words"
  done <<WORDS
frobnicate|"frobnicate" $known
005|"005" $known
lesson|"lesson" $known
05.2|05.2 is an exercise; try ./walk try 05.2
lesson_42|there is no lesson 42; there are: 05 09
5x|"5x" $known
--precision bf16|"--precision" needs a lesson before it, as in ./walk 09 --precision bf16
list all|"list" takes nothing after it, but was given "all"
help me|"help" takes nothing after it, but was given "me"
docs all|"docs" takes nothing after it, but was given "all"
wasm all|"wasm" takes nothing after it, but was given "all"
test relaese|"relaese" is nothing to test; try ./walk test, or all, release, debug, asan or soak after it
bench silence|there is no benchmark silence; there are: bench_talk
notebooks all|"all" is nothing that notebooks take; try ./walk notebooks, or --library or --jupyter after it
notebooks --library extra|"--library" takes nothing after it, but was given "extra"
jupyter all|"all" is nothing that jupyter takes; try ./walk jupyter, or --fresh or an option of Jupyter's after it
WORDS
}

test_unknown_lesson() {
  : "an unknown lesson is refused with the numbers of those that exist"
  local number
  for number in 42 8 08 0 00; do
    walk "$number"
    expect_status 2
    expect_words "there is no lesson $(printf '%02d' "$((10#$number))"); there are: 05 09"
  done
}

test_try() {
  : "try asks the tool, and builds what judges only when the tool wants it; all exit codes come through"
  walk try 05 --hint
  expect_status 7
  expect_out "asked 05 --hint"
  [[ ! -s $calls ]] || fail "nothing should have been called"
  walk try 05
  expect_status 1
  expect_out "asked 05
judged --judge 05"
}

test_list() {
  : "list prints titles and questions from any folder, and calls nothing"
  cd /
  walk list
  expect_status 0
  expect_out "05 · Echo of a word
     what comes back, when one calls into a room
     that is empty?
09 · Full step
     is it the same?"
  [[ ! -s $calls ]] || fail "list should call nothing"
}

test_names_as_typed() {
  : "a lesson may be called by its name, and tests is test"
  local name
  for name in lesson5 lesson05 lesson_05 lesson_05_echo; do
    walk "$name" --dp 2
    expect_status 7
    expect_out "<--dp>
<2>"
  done
}

test_version() {
  : "--version says which one it is"
  on_machine "$source_root/walk" --version
  expect_status 0
  [[ $out =~ ^Muonwalk\ [0-9]+\.[0-9]+\.[0-9]+ && $out != *$'\n'* ]] || fail "expected a version in a line"
}

test_full_output() {
  : "what can't be printed is said, with exit 3 and not the 1 of a difference"
  local word
  for word in list help; do
    PATH="$machine:$PATH" "$project/walk" "$word" >/dev/full 2>"$scratch/err" </dev/null && status=0 || status=$?
    out="" err=$(<"$scratch/err")
    expect_status 3
    expect_words "standard output takes no more, so this could not be printed; is it full or closed?"
  done
}

test_cdpath() {
  : "CDPATH in the environment leads nowhere else"
  on_machine env CDPATH=/:/tmp "$project/walk" list
  expect_status 0
  [[ $out == "05 · Echo"* ]] || fail "expected the list"
}

test_odd_lock() {
  : "what stands in the place of the lock, and is none, is named; nobody waits for it"
  local lock=$project/build/.walk_lock kind
  mkdir -p "$project/build"
  for kind in folder fifo link; do
    rm -rf "$lock"
    case $kind in folder) mkdir "$lock" ;; fifo) mkfifo "$lock" ;; link) ln -s "$scratch/nowhere" "$lock" ;; esac
    walk 05
    expect_status 3
    expect_words "$lock, by which two builds wait for each other, is not a file that you can write to; remove it"
  done
  rm -rf "$lock"
}

test_lock_of_another_user() {
  : "a lock that another user made, and keeps, is named"
  [[ $(id -u) != 0 ]] || skip "root may write to every lock"
  mkdir -p "$project/build"
  : >"$project/build/.walk_lock"
  chmod a-w "$project/build/.walk_lock"
  walk 05
  chmod u+w "$project/build/.walk_lock"
  expect_status 3
  expect_words "$project/build/.walk_lock, by which two builds wait for each other, is not a file that you can write to; remove it"
}

copy_to() {  # folder
  mkdir -p "$(dirname -- "$1")"
  cp -r "$project" "$1"
  rm -rf "$1/build"
}

test_odd_path() {
  : "a folder that CMake could not build in is refused before CMake is called"
  local odd name
  for name in 'a#b' 'a;b' 'a|b' 'a<b' 'a"b' 'a\b' $'a\nb'; do
    odd=$scratch/$name/project
    copy_to "$odd"
    on_machine "$odd/walk" 05
    expect_status 2
    expect_one_sentence
    expect_err "CMake takes no # ; | <"
    expect_no_call "cmake --preset"
  done
}

test_path_like_an_option() {
  : "a folder whose name begins as an option does builds, and again without a word"
  copy_to "$scratch/-odd/project"
  cd "$scratch"
  on_machine bash -- -odd/project/walk 05 word
  expect_status 7
  expect_out "<word>"
  on_machine bash -- -odd/project/walk 05
  [[ -z $err ]] || fail "nothing should be built again"
}

test_no_grep() {
  : "without grep nothing is built, rather than all of it again"
  walk 05
  prepare_bare_machine
  rm "$machine/grep"
  walk_on_bare_machine 05
  expect_status 3
  expect_words "there is no grep on PATH, and what was built is looked at with it; install it"
}

test_damaged_build() {
  : "rules that were damaged are made anew, and a folder in place of a file is named"
  local rules=$project/build/build.ninja file
  for file in garbage cut nothing; do
    walk 05
    case $file in
      garbage) head -c 3000 /dev/urandom >"$rules" ;;
      cut) head -c 3001 "$rules" >"$scratch/cut" && cp "$scratch/cut" "$rules" ;;
      nothing) : >"$rules" ;;
    esac
    walk 05
    expect_status 7
    [[ $err == "The build's rules can't be read: configuring afresh.
Configuring (cmake --preset release)"* && $err != *"ninja: "* ]] || fail "expected that it configures afresh"
  done
  echo garbage >"$project/build/.ninja_log"
  walk 05
  expect_status 7
  for file in "$rules" "$project/build/.ninja_log" "$project/build/CMakeCache.txt"; do
    rm -rf "$file"
    mkdir "$file"
    walk 05
    expect_status 3
    expect_words "$file, which CMake or ninja writes, is not a file; remove it"
    rmdir "$file"
  done
}

test_help() {
  : "help names every word and every option, and may be asked for as an option"
  local word page
  walk help
  expect_status 0
  page=$out
  for word in list 05 try "try 05" test "test all" "test [preset]" "test soak" docs wasm bench notebooks jupyter help; do
    [[ $page == *"./walk $word "* ]] || fail "help should name $word"
  done
  for word in --hint --solution --reset release debug asan "--minutes N" "--seed N" build/docs/html/index.html --library \
    --jupyter --fresh --prepare cmake/packages.txt; do [[ $page == *"$word"* ]] || fail "help should name $word"; done
  for word in -h --help; do
    walk "$word"
    expect_status 0
    expect_out "$page"
  done
}

# --- packages ---------------------------------------------------------------------------------------------------------

test_install_offline() {
  : "when apt-get fails, the last line names the packages and the command for doing it by hand, exit 3"
  printf '%s\n' cmake libgloo-dev >"$absent"
  stub id 'echo 0'
  stub apt-cache
  stub apt-get 'exit 100'
  stub cmake 'exit 99'
  walk 05
  expect_status 3
  [[ $(tail -n 1 <<<"$err") == "walk: apt-get could not install cmake libgloo-dev (its own words are above; is there a network?); \
by hand, as root: apt-get update && apt-get install --no-install-recommends cmake libgloo-dev" ]] || fail "expected another last line"
  expect_no_call "^cmake "
}

test_install_through_sudo() {
  : "without root, apt-get runs through sudo, and walk says so"
  echo cmake >"$absent"
  stub id 'echo 1000'
  # shellcheck disable=SC2016
  stub sudo 'if [[ $1 == -n ]]; then exit 0; fi; exec "$@"'
  stub apt-cache
  stub apt-get "$(working_apt_get)"
  walk 05
  expect_status 7
  expect_err "Installing packages needs root: asking sudo."
  expect_call "sudo env DEBIAN_FRONTEND=noninteractive $apt_install cmake"
  expect_no_call update
}

test_install_without_rights() {
  : "where sudo does not let the reader install, walk says what to run as root, exit 2, and waits for no password"
  echo cmake >"$absent"
  stub id 'echo 1000'
  stub sudo 'exit 1'
  walk 05
  expect_status 2
  expect_err "walk: these packages are missing: cmake, and sudo does not let me install them; please run as root: \
apt-get update && apt-get install --no-install-recommends cmake"
  expect_call "sudo -n true"
  expect_no_call "^apt-get"
}

test_neither_apt_nor_brew() {
  : "a machine with neither apt nor Homebrew is told what it lacks, exit 2"
  prepare_bare_machine
  walk_on_bare_machine 05
  expect_status 2
  expect_one_sentence
  expect_words "this machine has neither apt nor Homebrew and lacks c++ cmake ninja git: install them with what it has (libraries \
that are missing too, CMake fetches; cmake/packages.txt lists them all)"
}

# --- building and running ---------------------------------------------------------------------------------------------

test_packages_for_a_purpose() {
  : "a lesson installs no Python, no browser and no Doxygen; every other word installs what it needs and no more"
  ! grep -vE '^(#.*|)$|^[a-z0-9+.-]+ +[a-z0-9+.-]+ +(build|python|docs|notebooks|wasm|bench|test)(,[a-z]+)? +[A-Za-z]' \
    "$source_root/cmake/packages.txt" || fail "each line needs: Debian's name, Homebrew's name, what needs it, purpose"
  printf '%s\n' cmake doctest-dev libbenchmark-dev python3 clang-tools-19 doxygen emscripten chromium >"$absent"
  stub id 'echo 0'
  stub apt-cache
  stub apt-get 'exit 100'
  local words packages
  while IFS='|' read -r words packages; do
    : >"$calls"
    # shellcheck disable=SC2086
    walk $words
    expect_status 3
    expect_call "$apt_install $packages"
    expect_no_call sudo
  done <<WORDS
|cmake
05|cmake
try 05|cmake python3
docs|cmake python3 doxygen
wasm|cmake emscripten
notebooks|cmake python3 clang-tools-19
notebooks --library|cmake python3
bench|cmake doctest-dev libbenchmark-dev
test|cmake doctest-dev python3 clang-tools-19 doxygen chromium
test all|cmake doctest-dev libbenchmark-dev python3 clang-tools-19 doxygen chromium
test soak|cmake doctest-dev python3 chromium
WORDS
}

test_main_job() {
  : "without a word, walk builds lesson 09 and nothing else, runs it, and says what is next where that has worked"
  rm -rf "$project/build"
  walk
  expect_status 0
  expect_out "the main job"
  expect_err "Next: ./walk list names the lessons, ./walk 00 runs the first one, ./walk try has exercises."
  [[ ! -e $project/build/bin/lesson_05_echo ]] || fail "lesson 05 should not have been built"
  sed -i 's/puts("the main job");/puts("the main job"); return 4;/' "$project/lessons/lesson_09_full_step/lesson_09_full_step.cpp"
  walk
  expect_status 4
  [[ $err != *Next* ]] || fail "there is nothing next"
}

test_parts() {
  : "a lesson is configured without tests; they come when they are asked for, and stay"
  local cache=$project/build/CMakeCache.txt
  has() { grep -qE "^MUONWALK_$1:[A-Z]*=$2\$" "$cache" || fail "MUONWALK_$1 should be $2"; }
  rm -rf "$project/build"
  walk 05
  has TESTS OFF
  walk test
  has TESTS ON
  has BENCH OFF
  walk bench
  has BENCH ON
  walk test
  walk 05
  [[ -z $err ]] || fail "nothing should be configured again"
  has TESTS ON
  has BENCH ON
}

test_arguments_and_exit_code() {
  : "a lesson gets its arguments, the reader's folder and a clean standard output; its exit code is walk's"
  cd "$scratch"
  touch here.txt
  on_machine "./a walk in the park/walk" 5 --dp 2 "two words" "" here.txt
  expect_status 7
  expect_out "<--dp>
<2>
<two words>
<>
<here.txt> is here"
}

test_second_run() {
  : "a second run installs, configures and builds nothing"
  walk 05
  stub cmake 'exit 99'
  stub c++ 'exit 99'
  : >"$calls"
  local before
  before=$(stat -c %y "$project/build/bin/lesson_05_echo" "$project/build/build.ninja")
  walk 05
  expect_status 7
  [[ $(stat -c %y "$project/build/bin/lesson_05_echo" "$project/build/build.ninja") == "$before" ]] || fail "rebuilt"
  [[ -z $err ]] || fail "there is nothing to say"
  [[ $(cut -d' ' -f1 "$calls") == dpkg-query ]] || fail "one question to dpkg, and nothing else"
}

test_through_symlinks() {
  : "walk finds its project through links to it, relative and absolute, from any folder"
  mkdir -p "$scratch/links"
  ln -s "../a walk in the park/walk" "$scratch/links/first"
  ln -s "$scratch/links/first" "$scratch/links/second"
  cd /
  on_machine "$scratch/links/second" list
  expect_status 0
  [[ $out == "05 · Echo"* ]] || fail "expected the list of lessons"
}

test_two_at_once() {
  : "of two ./walk in one checkout, the second one waits and says so, and nothing is built twice"
  # The checkout was never built; the first ./walk is held up by its ninja until the second one waits.
  local first second tries=0 real_ninja
  real_ninja=$(command -v ninja)
  stub ninja ": >'$scratch/building'; until [[ -e '$scratch/go' ]]; do sleep 0.05; done; exec '$real_ninja' \"\$@\""
  rm -rf "$project/build" "$scratch"/{building,go,err1,err2}
  PATH="$machine:$PATH" "$project/walk" 05 first </dev/null >"$scratch/out1" 2>"$scratch/err1" &
  first=$!
  until [[ -e $scratch/building || $((tries += 1)) -gt 1200 ]]; do sleep 0.05; done
  PATH="$machine:$PATH" "$project/walk" 05 second </dev/null >"$scratch/out2" 2>"$scratch/err2" &
  second=$!
  tries=0
  until grep -q "Another ./walk" "$scratch/err2" || [[ $((tries += 1)) -gt 200 ]]; do sleep 0.05; done
  : >"$scratch/go"
  status=0
  wait "$first" || status=$?
  err=$(<"$scratch/err1") out=$(<"$scratch/out1")
  expect_status 7
  expect_out "<first>"
  status=0
  wait "$second" || status=$?
  err=$(<"$scratch/err2") out=$(<"$scratch/out2")
  expect_status 7
  expect_out "<second>"
  [[ $err == "Another ./walk is building in this checkout: waiting until it has done so." ]] ||
    fail "the second one should say that it waits, and then find nothing to build"
  stub cmake 'exit 99'
  stub c++ 'exit 99'
  rm "$machine/ninja"
  walk 05
  expect_status 7
  [[ -z $err ]] || fail "nothing should be built again afterwards"
}

test_words_with_line_ends() {
  : "a word with a line end, or another character that a terminal obeys, is refused in one line that shows it"
  local words
  for words in $'05\nlist' $'frob\r\033[2J' $'test\nall'; do
    walk "$words"
    expect_status 2
    expect_one_sentence
    [[ $err != *[$'\r\033']* ]] || fail "no control character should reach the terminal"
  done
  walk test $'re\n\r\033[2J'
  expect_words '"re\n\r?[2J" is nothing to test; try ./walk test, or all, release, debug, asan or soak after it'
  walk bench $'talk\nsilence'
  expect_status 2
  expect_err 'there is no benchmark talk\nsilence'
}

test_moved_project() {
  : "a project that was moved after it was configured builds in its new place"
  walk 05
  mv "$project" "$scratch/elsewhere"
  on_machine "$scratch/elsewhere/walk" 05
  mv "$scratch/elsewhere" "$project"
  expect_status 7
  expect_err "The project has moved since it was configured: configuring afresh.
Configuring (cmake --preset release)"
}

test_docs() {
  : "docs builds the target of that name and prints where the site is, also in a folder that was configured before Doxygen came"
  # shellcheck disable=SC2016
  echo 'if(DEFINED ENV{DOXYGEN_IS_THERE})
  add_custom_target(docs COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/site)
endif()' >"$project/tests/tests.cmake"
  stub doxygen
  walk 05
  DOXYGEN_IS_THERE=yes walk docs
  expect_status 0
  expect_out "$project/build/docs/html/index.html"
  expect_err "The site is there; open it in a browser:"
  [[ -f $project/build/site ]] || fail "the target docs should have been built"
}

test_bench() {
  : "bench runs every benchmark, or the one that is named with its own options"
  walk bench
  expect_status 0
  expect_out "talked with 0 options"
  walk bench talk --loud
  expect_out "talked with 1 options"
  walk bench bench_talk --loud --long
  expect_out "talked with 2 options"
  sed -i 's/argc - 1);/argc - 1); return 5;/' "$project/tests/bench/bench_talk.cpp"
  walk bench
  expect_status 5
}

test_notebooks() {
  : "notebooks makes all of them and executes them, with clang-repl or with Jupyter; without a kernel they are skipped"
  mkdir -p "$project/notebooks"
  touch "$project/notebooks/lesson_05_echo.ipynb"
  local tools=$project/notebooks/make notebook=$project/notebooks/lesson_05_echo.ipynb
  stub python3 'echo counted'
  walk notebooks
  expect_status 0
  expect_call "python3 $tools/make_notebooks.py"
  expect_call "python3 $tools/run_notebook.py --keep $notebook"
  expect_last_line counted
  : >"$calls"
  # shellcheck disable=SC2016
  stub python3 'case $1 in *jupyter*) echo "0 passed, 0 failed, 1 skipped" && exit 77 ;; esac'
  walk notebooks --jupyter
  expect_status 0
  expect_call "python3 $tools/run_in_jupyter.py $notebook"
  expect_last_line "0 passed, 0 failed, 1 skipped"
  # shellcheck disable=SC2016
  stub python3 'case $1 in *run_*) exit 1 ;; esac'
  walk notebooks
  expect_status 1
  walk notebooks --jupyter
  expect_status 1
  stub python3 'exit 2'
  walk notebooks
  expect_status 2
}

# --- tests and CI -----------------------------------------------------------------------------------------------------

test_counts() {
  : "test ends with a line that counts, and fails exactly if a test fails"
  echo 'add_test(NAME good COMMAND true)
add_test(NAME left_out COMMAND sh -c "exit 77")
set_tests_properties(left_out PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME switched_off COMMAND false)
set_tests_properties(switched_off PROPERTIES DISABLED TRUE)' >"$project/tests/tests.cmake"
  walk test
  expect_status 0
  expect_last_line "1 passed, 0 failed, 2 skipped"
  echo 'add_test(NAME bad COMMAND sh -c "echo why; exit 1")
add_test(NAME never_built COMMAND no_such_program)' >>"$project/tests/tests.cmake"
  walk test
  expect_status 1
  expect_last_line "1 passed, 2 failed, 2 skipped"
  [[ $out == *why* ]] || fail "the output of a failing test should be shown"
  walk test -R good
  expect_status 0
  expect_last_line "1 passed, 0 failed"
  walk test --repeat nonsense  # the counts of the last run are not this one's
  expect_status 3
  expect_err "ctest ended without results; its own words are above"
}

test_presets() {
  : "test is short, all adds up both presets; a preset has a folder of its own, and ctest gets the rest"
  # shellcheck disable=SC2016
  stub ctest 'for word in "$@"; do case $word in *.xml) echo "<testsuite" >"$word" && echo "	tests=\"0\"" >>"$word" ;; esac; done; exit 5'
  local jobs words call folder
  jobs=$(($(getconf _NPROCESSORS_ONLN) + 2))
  while IFS='|' read -r words folder call; do
    # shellcheck disable=SC2086
    walk test $words
    expect_status 1
    expect_call "ctest --preset $call"
    expect_last_line "0 passed, 1 failed"
    [[ -x $folder/bin/bench_talk ]] || fail "what is tested should have been built in $folder"
  done <<WORDS
|$project/build|release -j $jobs --output-junit $project/build/test_results.xml -LE ^long\$
-R some --verbose|$project/build|release -j $jobs --output-junit $project/build/test_results.xml -R some --verbose
release|$project/build|release -j $jobs --output-junit $project/build/test_results.xml
debug|$project/build/debug|debug -j $jobs --output-junit $project/build/debug/test_results.xml
asan -R some|$project/build/asan|asan -j $jobs --output-junit $project/build/asan/test_results.xml -R some
WORDS
  : >"$calls"
  walk test all
  expect_last_line "0 passed, 2 failed"
  [[ $(grep '^ctest' "$calls" | cut -d' ' -f3 | tr '\n' ' ') == "release asan " ]] || fail "expected two presets"
}

test_no_tests() {
  : "a filter that matches no test is a failure"
  walk test
  expect_status 1
  expect_last_line "0 passed, 1 failed"
  printf '%s\n' 'add_test(NAME good COMMAND true)' 'add_test(NAME slow COMMAND true)' \
    'set_tests_properties(slow PROPERTIES LABELS long)' >"$project/tests/tests.cmake"
  walk test
  expect_last_line "1 passed, 0 failed"
  walk test release
  expect_last_line "2 passed, 0 failed"
  walk test -R typo
  expect_status 1
}

test_ci() {
  : "CI runs test all, and what ends without a count is a failure"
  stub_walk() { printf '#!/bin/bash\n[[ $* == "test all" ]] && %s\n' "$1" >"$project/walk"; }
  stub_walk 'echo 3 passed, 0 failed, 1 skipped'
  on_machine "$project/.ci/run"
  expect_status 0
  expect_last_line "3 passed, 0 failed, 1 skipped"
  stub_walk '{ echo 3 passed, 1 failed; exit 1; }'
  on_machine "$project/.ci/run"
  expect_status 1
  stub_walk '{ echo boom; exit 3; }'
  on_machine "$project/.ci/run"
  expect_status 1
  expect_last_line "0 passed, 1 failed"
}

# Starts walk as a terminal would, in a process group of its own, waits for FILE, presses Ctrl-C and looks for survivors.
interrupt_after() {  # FILE word...
  local file=$1 group
  shift
  set -m
  PATH="$machine:$PATH" "$project/walk" "$@" </dev/null >"$scratch/out" 2>"$scratch/err" &
  group=$!
  set +m
  while [[ ! -e $file ]] && kill -0 "$group" 2>/dev/null; do sleep 0.05; done
  kill -INT -- "-$group"
  status=0
  wait "$group" || status=$?
  out=$(<"$scratch/out") err=$(<"$scratch/err")
  [[ -e $file ]] || fail "walk ended before it could be interrupted"
  # What was killed takes a moment to disappear.
  local tries=0
  while kill -0 -- "-$group" 2>/dev/null; do
    tries=$((tries + 1))
    [[ $tries -lt 600 ]] || fail "some process outlived Ctrl-C: $(ps -o pid,stat,args --no-headers -g "$group" 2>&1)"
    sleep 0.05
  done
}

test_interrupt() {
  : "Ctrl-C ends a lesson and the tests, and leaves no process behind"
  interrupt_after "$scratch/lesson_waits" 05 --wait "$scratch/lesson_waits"
  expect_status 130
  echo "add_test(NAME waits COMMAND lesson_05_echo --wait $scratch/test_waits)" >"$project/tests/tests.cmake"
  interrupt_after "$scratch/test_waits" test
  [[ $status != 0 ]] || fail "an interrupted test run should not end with 0"
}

# --- the run ----------------------------------------------------------------------------------------------------------


what_holds() { declare -f "$1" | sed -n 's/^ *: "\(.*\)";$/\1/p'; }

# Each test gets a project and a machine that no earlier test has changed.
failures=0
for test in $(if [[ $# -gt 1 ]]; then echo "${@:2}"; else compgen -A function test_; fi); do
  write_project
  prepare_machine
  status=- out="" err=""
  # In a shell of its own, and not inside the condition, where a command that fails would not end it.
  set +e
  (set -e; "$test") >"$scratch/report" 2>&1
  result=$?
  set -e
  if [[ $result == 0 ]]; then
    printf 'ok      %s\n' "$(what_holds "$test")"
  elif [[ $result == 77 ]]; then
    printf 'skipped %s: %s\n' "$(what_holds "$test")" "$(<"$scratch/report")"
  else
    failures=$((failures + 1))
    printf 'FAILED  %s (%s)\n' "$(what_holds "$test")" "$test"
    cat "$scratch/report"
  fi
done
[[ $failures == 0 ]]
