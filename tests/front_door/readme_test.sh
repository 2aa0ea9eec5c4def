#!/usr/bin/env bash
# Tests README.md and docs/more-to-run.md: what stands between two markers, <!-- begin: SOURCE --> and <!-- end -->, is what SOURCE gives today,
# and every file that is linked to exists. "BLESS=1 ctest -R readme" renews the blocks; the diff is then reviewed.
#
#   readme_test.sh ROOT PROGRAMS    ROOT holds both, PROGRAMS is the folder of the lessons' programs
#
# SOURCE is "lessons" (the table of lessons, from ./walk list), "run NAME [option...]" (what a lesson prints when it is run so, or the error it ends with), "serial_muon" (the serial optimizer,
# from its source), "journey" (the picture of it), "torch" (what its stages are in PyTorch), or "try NUMBER NAME" (what the judge
# says of an exercise's NAME.cpp).
set -euo pipefail

root=$1 programs=$2

lessons_block() {
  local number title question line
  printf '\n|    | lesson | question |\n|----|--------|----------|\n'
  # Lines of ./walk list: "05 · TP gather", then the question, indented, on one line or more.
  "$root/walk" list | {
    finish_row() { if [[ -n $number ]]; then printf '| %s | [%s](%s) | %s |\n' "$number" "$title" "$source" "$question"; fi; }
    number=""
    while IFS= read -r line; do
      if [[ $line == "     exercises: "* || $line == "     a hunt: "* ]]; then
        line=${line#     }
        question="$question (${line%%: *}: \`${line#*: }\`)"
      elif [[ $line == "     "* ]]; then
        question="${question:+$question }${line#     }"
      else
        finish_row
        number=${line%% *} title=${line#* · } question=""
        source=$(cd "$root" && echo lessons/lesson_"$number"_*/lesson_"$number"_*.cpp)
      fi
    done
    finish_row
  }
  echo
}

run_block() {  # lesson option...
  local out status=0 errors
  errors=$(mktemp)
  out=$("$programs/$1" "${@:2}" 2>"$errors") || status=$?
  # 0 to 3 are a lesson's own; anything else is a program that could not be started, and nothing to show a reader.
  if [[ $status -gt 3 ]]; then echo "README.md: could not run $*: $(<"$errors")" >&2 && exit 1; fi
  # Standard error holds the error where there is one; next to a result it holds timings, which no page can promise.
  if [[ -z $out ]]; then out=$(<"$errors"); fi
  rm "$errors"
  printf '```text\n$ build/bin/%s\n%s\n' "$*" "$out"
  if [[ $status != 0 ]]; then printf '(exit code %d)\n' "$status"; fi
  printf '```\n'
}

made_block() {  # language command...
  printf '```%s\n' "$1"
  python3 "${@:2}"
  printf '```\n'
}

try_block() {  # number name
  local folder
  folder=$(mktemp -d)
  cp "$root"/lessons/lesson_"${1%.*}"_*/try_*/"$2.cpp" "$folder/lesson_${1/./_}.cpp"
  printf '```text\n$ ./walk try %s\n' "$1"
  python3 "$root/sim/classroom/try_exercise.py" "$1" --judge --folder "$folder" --build "$(dirname "$programs")" || true
  printf '```\n'
  rm -r "$folder"
}

block() {  # kind argument...
  case $1 in
    serial_muon) made_block cpp "$root/docs/make/serial_muon.py" ;;
    journey) made_block text "$root/docs/make/journey.py" picture ;;
    torch) python3 "$root/docs/make/journey.py" torch ;;
    lessons) lessons_block ;;
    run) run_block "${@:2}" ;;
    try) try_block "${@:2}" ;;
    *) echo "README.md has a block of a kind that readme_test.sh does not know: $1" >&2 && exit 1 ;;
  esac
}

# A page as it should be: everything outside the blocks as it is.
renewed() {  # page
  local line source
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ $line =~ ^'<!-- begin: '(.*)' -->'$ ]]; then
      source=${BASH_REMATCH[1]}
      # Builds with sanitizers have no judge: what stands there stays.
      if [[ $source == "try "* && ! -x $programs/muonwalk-try ]]; then continue; fi
      # shellcheck disable=SC2086
      block $source
      while [[ $line != '<!-- end -->' ]]; do
        IFS= read -r line || { echo "$1: the block \"$source\" has no <!-- end -->" >&2 && exit 1; }
      done
      printf '%s\n' "$line"
    fi
  done <"$root/$1"
}

made=$(mktemp)
trap 'rm -f "$made"' EXIT
for page in README.md docs/more-to-run.md; do
  renewed "$page" >"$made"
  grep -q '^<!-- begin: ' "$made" || { echo "$page has no block to test" && exit 1; }
  if [[ ${BLESS-} == 1 ]]; then
    cat "$made" >"$root/$page"
  elif ! diff -u "$root/$page" "$made"; then
    echo "$page differs from what its blocks are made of (above: - as it is, + as it should be); BLESS=1 renews it."
    exit 1
  fi
  grep -oE '\]\([^)#:]+\)' "$root/$page" | sed 's/^](\(.*\))$/\1/' | while IFS= read -r path; do
    [[ -e $root/$(dirname "$page")/$path ]] || { echo "$page links to $path, which does not exist" && exit 1; }
  done
done
