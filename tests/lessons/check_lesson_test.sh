#!/usr/bin/env bash
# check_lesson has to accept a lesson that does everything right, and to refuse one that does any one thing wrong.
set -euo pipefail

check_lesson=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A stand-in for a lesson, small and right; WRONG says what it does wrong.
cat >"$folder/lesson_77_stand_in" <<'LESSON'
#!/usr/bin/env bash
name=lesson_77_stand_in
refuse() {
  case $WRONG in
    silent_refusal) ;;
    two_sentences) printf '%s\n' "$name: this cannot work as you asked" "$name: and this neither" >&2 ;;
    *) echo "$name: $1 cannot work; try something else" >&2 ;;
  esac
  case $WRONG in accepts_anything) exit 0 ;; refuses_with_1) exit 1 ;; *) exit 2 ;; esac
}

all=$* bug="" verbose=1 world=processes transport="" dp=1 tp=1
while [[ $# -gt 0 ]]; do
  option=$1 value=${2-}
  case $option in
    --list-bugs)
      if [[ $WRONG != no_bugs ]]; then echo "planted  goes wrong"; fi
      exit 0 ;;
    --help)
      if [[ $WRONG != short_help ]]; then echo "--dp --tp --pp --threads --seed --precision --verbose --bug --list-bugs"; fi
      echo "--timeout --world --transport --fault --record --svg --help"
      exit 0 ;;
    --fault | --no-such-option | no_such_word) refuse "$option" ;;
    --bug) [[ $value == planted ]] || refuse "$option" && bug=$value ;;
    --precision) [[ $value == bf16 ]] || refuse "$option" ;;
    --verbose) [[ $value =~ ^[012]$ ]] || refuse "$option" && verbose=$value ;;
    --world) [[ $value == threads ]] || refuse "$option" && world=$value ;;
    --transport) [[ $value == gloo || $value == memory ]] || refuse "$option" && transport=$value ;;
    --dp | --tp | --pp | --threads) [[ $value =~ ^[1-9][0-9]?$ ]] || refuse "$option $value" ;;&
    --dp) dp=$value ;;
    --tp) tp=$value ;;
    --seed | --timeout) [[ $value =~ ^[1-9]$ ]] || refuse "$option $value" ;;
  esac
  shift 2
done
[[ $((dp * tp)) -le 64 ]] || refuse "$dp ranks"
[[ $transport != memory || $world == threads ]] || refuse "memory"

case "$WRONG $all" in
  'dies ') kill -9 $$ ;;
  'fails ') exit 3 ;;
  'breaks_with_dp_2 --dp 2' | 'breaks_with_bf16 --precision bf16') exit 3 ;;
  'fails_on_threads '*threads*) exit 3 ;;
esac
if [[ $verbose -gt 0 ]]; then
  echo "Lesson 77 · Stand-in                       $world"
  case $WRONG in
    other_text) echo "something else" ;;
    wide_line) printf '%0101d\n' 0 ;;
    trailing_blank) echo "blank " ;;
    many_lines) seq 100 ;;
    differs_on_threads) echo "I live among $world" ;;
  esac
  case "$WRONG $all" in 'threads_change_a_bit '*'--threads 2'*) echo "0x3f800001" ;; esac
fi
if [[ -n $bug && $WRONG != bug_not_caught ]]; then
  if [[ $WRONG != bug_not_shown ]]; then echo "first difference: row 1"; fi
  case $WRONG in
    bug_differs_in_a_rounding) echo "          the rank holds      1.7664385        0x3fe21aa9   44901 ULP apart" ;;
    bug_holds_another_value) echo "          the rank holds      1.80643848       0x3fe73960   44904 ULP apart" ;;
    *) echo "          the rank holds      1.76643848       0x3fe21aa8   44904 ULP apart" ;;
  esac
  case $WRONG in bug_sends_a_byte_more) echo "        sent 1,000,001 B" ;; *) echo "        sent 1,000,000 B" ;; esac
  echo "$name: FAILED"
  case $WRONG in
    bug_ends_with_3) exit 3 ;;
    bug_leaves_its_group) echo "$name: rank 1 failed in step 'x': the ranks of group dp do not make the same calls" >&2 && exit 3 ;;
    bug_fails_otherwise) echo "$name: rank 1 failed in step 'x': it was killed" >&2 && exit 3 ;;
    *) exit 1 ;;
  esac
fi
echo "$name: OK"
LESSON
chmod +x "$folder/lesson_77_stand_in"
printf '%s\n' "Lesson 77 · Stand-in                       processes" "lesson_77_stand_in: OK" >"$folder/expected"

# Its source, as short as a lesson may be; `write_source WRONG` writes one that does one thing wrong.
write_source() {
  local title="Stand-in" printed="Stand-in" sections=("The idea" "The reference" "The steps" "The cost" "Exercises") blocks=29
  case $1 in
    no_title) title="" ;;
    other_title) printed="Another" ;;
    no_steps) sections=("The idea" "The reference" "The cost" "Exercises") ;;
    cost_first) sections=("The idea" "The cost" "The reference" "The steps" "Exercises") ;;
    short) blocks=24 ;;
    long) blocks=100 ;;
  esac
  echo "// # Lesson 77 · $title"
  for section in "${sections[@]}"; do printf '\n// ## %s\n' "$section"; done
  local hint="Hint: you are one of them." answer="Answer: the rank that asks."
  if [[ $1 == no_answers ]]; then answer=""; fi
  printf '%s\n' "//" "// 1. Who? $hint" "//    $answer"
  case $1 in
    no_hint) echo "// 2. How? $answer" ;;
    no_answer) echo "// 2. How? $hint" ;;
    empty_answer) echo "// 2. How? $hint Answer: yes." ;;
    answer_first) echo "// 2. How? $answer $hint" ;;
    two_answers) echo "// 2. How? $hint $answer $answer" ;;
    *) echo "// 2. How? $hint $answer" ;;
  esac
  if [[ $1 != two_exercises ]]; then echo "// 3. Why? $hint $answer"; fi
  if [[ $1 == long_answers ]]; then printf '//    and %d\n' {1..250}; fi
  echo "return \"info.title = \"$printed\";"
  if [[ $1 == wide_source ]]; then printf '// %0118d\n' 0; fi
  for ((i = 0; i < blocks; ++i)); do
    printf '// What comes next.\ncode();\n\n'
    if [[ $1 == no_prose ]]; then printf 'more(%d);\n' 1 2; fi
    if [[ $1 == only_prose ]]; then printf '// %d\n' 1 2 3; fi
  done
  echo "// A stretch of code."
  for ((i = 0; i < $([[ $1 == silent_stretch ]] && echo 26 || echo 25); ++i)); do echo "code();$([[ $i == 9 ]] && echo "  // at the end of a line")"; done
  printf '%s\n' "// The end, and a word for what was said above." "// Well." "// So." "// There."
}

failed=0
expect() {  # pass|fail check what-is-wrong [expected file]
  local got=fail
  if WRONG=$3 "$check_lesson" "$2" "$folder/lesson_77_stand_in" "${4-$folder/expected}" >"$folder/said" 2>&1; then got=pass; fi
  if [[ $got != "$1" ]]; then
    echo "check_lesson $2, where the lesson does wrong \"$3\": it should $1, but it said:"
    cat "$folder/said"
    failed=1
  fi
}
expect_said() {  # text
  grep -qF -- "$1" "$folder/said" || { echo "it does not say \"$1\":" && cat "$folder/said" && failed=1; }
}

# Every check of the source can fail, and says what for.
expect_source() {  # what-is-wrong what-it-says
  write_source "$1" >"$folder/source.cpp"
  expect fail anatomy "$1" "$folder/source.expected"
  expect_said "$2"
  if [[ $(grep -c FAILED "$folder/said") != 1 ]]; then echo "more than \"$1\" is wrong:" && cat "$folder/said" && failed=1; fi
}
write_source nothing >"$folder/source.cpp"
expect pass anatomy nothing "$folder/source.expected"
expect_source no_title "the first line of the source"
expect_source other_title "does not print the title"
expect_source no_steps '"// ## The steps" is missing'
expect_source cost_first '"// ## The cost" is missing, or comes too early'
expect_source two_exercises "ends with 3 exercises, but it has 2"
expect_source no_hint "exercise 2 has no hint"
expect_source no_answer "exercise 2 has no answer"
expect_source empty_answer "exercise 2 has no answer"
write_source no_answers >"$folder/source.cpp"
expect fail anatomy no_answers "$folder/source.expected"
expect_said "exercise 1 has no answer"
expect_source answer_first "exercise 2 has no hint"
expect_source two_answers "exercise 2 has two hints or two answers"
# However much there is to say about an exercise, it makes no lesson too long.
write_source long_answers >"$folder/source.cpp"
expect pass anatomy nothing "$folder/source.expected"
expect_source short "120 to 300 lines besides its exercises"
expect_source long "120 to 300 lines"
expect_source wide_source "has 121 columns"
expect_source no_prose "0.7 to 2 lines with words"
expect_source only_prose "0.7 to 2 lines with words"
expect_source silent_stretch "the 26th line of code without a word"
expect fail anatomy nothing "$folder/no_such.expected"
expect_said "does not exist"

expect fail bugs nothing
expect_said "BLESS=1"
BLESS=1 expect pass bugs bug_leaves_its_group
expect pass bugs bug_leaves_its_group
expect fail bugs nothing
BLESS=1 expect pass bugs nothing
expect_said "BLESSED"
expect fail bugs bug_leaves_its_group
for check in expected bugs threads worlds options; do expect pass $check nothing; done

for wrong in other_text wide_line trailing_blank many_lines fails dies; do expect fail expected $wrong; done
expect fail expected other_text
expect_said "the first difference is in line 2"
expect_said "something else"
expect_said "lesson_77_stand_in: OK"
expect fail expected nothing "$folder/no_such_file"
expect_said "BLESS=1"
expect fail threads nothing "$folder/no_such_file"

for wrong in no_bugs bug_not_caught bug_not_shown bug_ends_with_3 bug_fails_otherwise; do expect fail bugs $wrong; done
# What a bug changes on the screen is compared with a file, but for what another processor would round in another way.
expect pass bugs bug_differs_in_a_rounding
for wrong in bug_holds_another_value bug_sends_a_byte_more; do
  expect fail bugs $wrong
  expect_said "the first difference is in line"
done
for wrong in differs_on_threads fails_on_threads; do
  expect fail worlds $wrong
  expect fail threads $wrong
done
for wrong in silent_refusal two_sentences accepts_anything refuses_with_1 short_help threads_change_a_bit breaks_with_dp_2 \
  breaks_with_bf16; do
  expect fail options $wrong
done

# BLESS=1 writes what was printed, and not what a failing lesson printed.
cp "$folder/expected" "$folder/blessed"
BLESS=1 expect pass expected other_text "$folder/blessed"
expect_said "BLESSED"
expect pass expected other_text "$folder/blessed"
BLESS=1 expect fail expected fails "$folder/blessed"
grep -qx "something else" "$folder/blessed" || { echo "BLESS=1 did not write what was printed" && failed=1; }

exit $failed
