#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the report in a browser, on a phone and on a desktop. It must need no script, console message or request.
# DYNAMICCL_BIN is the program, and DYNAMICCL_SOURCE is the source tree. REPORT_PICTURES=folder keeps the pictures
# there.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

dynamiccl() { "$DYNAMICCL_BIN" "$@"; }

# Prints the path of Debian's Chromium, or of the same browser under another name.
chromium_program() { command -v chromium chromium-headless-shell chrome-headless-shell google-chrome | head -n 1; }

browse() {
  "$(chromium_program)" --headless --no-sandbox --disable-gpu --hide-scrollbars --disable-background-networking \
    --user-data-dir="$PWD/profile" --enable-logging=stderr "$@"
}

make_report() {
  dynamiccl trace generate --framework fsdp2 --model gpt:layers=2,hidden=64,vocabulary=512,sequence=16 \
    --data-parallel 4 -o fsdp.ctrace 2> /dev/null
  dynamiccl trace import "$DYNAMICCL_SOURCE/traces/samples/ddp_resnet_2_ranks.pt.trace.json" -o ddp.ctrace 2> /dev/null
  dynamiccl report fsdp.ctrace ddp.ctrace -o report.html --csv tables > /dev/null
}

# widths PAGE prints four numbers per frame: the frame's width, the page's width, the available width, and the number of
# tables that are wider. The frames are as wide as a phone, a small tablet and a desktop.
widths() {
  cat > frames.html <<EOF
<!doctype html><body><script>
let left = 3, text = '';
for (const width of [390, 768, 1280]) {
  const frame = document.createElement('iframe');
  frame.style.cssText = 'border:0;height:900px;width:' + width + 'px';
  frame.onload = () => {
    const page = frame.contentDocument.documentElement;
    const wide = [...page.querySelectorAll('.scroll')].filter(frame => frame.scrollWidth > frame.clientWidth).length;
    text += [width, page.scrollWidth, page.clientWidth, wide].join(' ') + '\n';
    if (--left === 0) document.body.innerHTML = '<pre id="widths">' + text + '</pre>';
  };
  frame.src = '$1';
  document.body.append(frame);
}
</script></body>
EOF
  browse --allow-file-access-from-files --virtual-time-budget=20000 --dump-dom "file://$PWD/frames.html" 2> frames.log |
    sed -n '/<pre id="widths">/,/<\/pre>/p' | sed 's/<[^>]*>//g' | grep .
}

@test "nothing is wider than a phone, a tablet or a desktop" {
  [ -n "$(chromium_program)" ] || skip "no chromium (apt install chromium)"
  make_report
  widths report.html > widths.txt
  [ "$(wc -l < widths.txt)" -eq 3 ]
  while read -r width taken there tables; do
    [ "$taken" -le "$there" ] || { cat widths.txt; false; }
    [ "$tables" -eq 0 ] || { cat widths.txt; false; }
  done < widths.txt
}

@test "pictures at both widths; no message on the console, no request but for the file" {
  [ -n "$(chromium_program)" ] || skip "no chromium (apt install chromium)"
  make_report
  for width in 390 1280; do
    browse --window-size=$width,2400 --screenshot="$PWD/report-$width.png" --log-net-log="$PWD/net-$width.json" \
      "file://$PWD/report.html" 2> browser.log
    [ "$(stat -c %s "report-$width.png")" -gt 20000 ]
    ! grep CONSOLE browser.log
    # A request of the page has the page as its initiator. A request of the browser itself has none.
    ! grep -o '"initiator":"\(file\|null\)[^}]*"url":"http[^"]*"' "net-$width.json"
  done
  [ -z "$REPORT_PICTURES" ] || cp report-*.png "$REPORT_PICTURES"
}

@test "it prints: a PDF of several pages" {
  [ -n "$(chromium_program)" ] || skip "no chromium (apt install chromium)"
  make_report
  browse --no-pdf-header-footer --print-to-pdf="$PWD/report.pdf" "file://$PWD/report.html" 2> browser.log
  [ "$(head -c 5 report.pdf)" = "%PDF-" ]
  [ "$(grep -c -a '/Type */Page\b' report.pdf)" -ge 1 ]
}

@test "JSON has what docs/formats/report.md names, and nothing else" {
  make_report
  dynamiccl report fsdp.ctrace ddp.ctrace --json > report.json
  python3 - "$DYNAMICCL_SOURCE/docs/formats/report.md" <<'EOF'
import json, re, sys
named = set(re.findall(r"`(\w+)`", open(sys.argv[1]).read()))
report = json.load(open("report.json"))
assert report["schema"] == 1 and len(report["runs"]) == 2, report.keys()
fields = set(report)
for run in report["runs"]:
    fields |= set(run)
    for part in ("keys", "stages", "versions", "regret", "waited_shares"):
        for row in run[part]:
            fields |= set(row)
assert fields <= named, fields - named
assert all(sum(key["calls"] for key in run["keys"]) > 0 for run in report["runs"])
EOF
}

@test "CSV: four tables whose columns docs/formats/report.md names, each row as long as the head" {
  make_report
  python3 - "$DYNAMICCL_SOURCE/docs/formats/report.md" <<'EOF'
import csv, re, sys
page = open(sys.argv[1]).read()
for name in ("keys", "stages", "regret", "versions"):
    rows = list(csv.reader(open(f"tables/{name}.csv", newline="")))
    assert rows and all(len(row) == len(rows[0]) for row in rows), name
    documented = re.search(rf"^\| `{name}.csv` \| (.*) \|$", page, re.M).group(1)
    assert set(rows[0]) <= set(re.findall(r"\w+", documented)), name
EOF
}

@test "runs whose files have one name in two folders are told apart by their paths" {
  mkdir before after
  for run in before after; do
    dynamiccl trace generate --framework ddp --model gpt:layers=2,hidden=64 --data-parallel 2 -o "$run/run.ctrace" 2> /dev/null
  done
  dynamiccl report before/run.ctrace after/run.ctrace -o report.html --csv tables > /dev/null
  grep -q "Run before/run.ctrace" report.html
  [ "$(tail -n +2 tables/keys.csv | cut -d, -f1 | sort -u | tr '\n' ' ')" = "after/run.ctrace before/run.ctrace " ]
  dynamiccl report before/run.ctrace --csv tables > /dev/null
  [ "$(tail -n +2 tables/keys.csv | cut -d, -f1 | sort -u)" = "run.ctrace" ]
}

@test "a topology that no sweep has, and a file of another kind: exit 2 and what to do" {
  make_report
  run dynamiccl report fsdp.ctrace --topology moon -o x.html
  [ "$status" -eq 2 ]
  [[ "$output" == *"no sweep was made on 'moon'"*".measurements"* ]]
  echo notes > notes.txt
  run dynamiccl report notes.txt -o x.html
  [ "$status" -eq 2 ]
  [[ "$output" == *"hint:"*".dcpolicy"* ]]
  run dynamiccl report missing.txt -o x.html
  [ "$status" -eq 2 ]
  [[ "$output" == *"missing.txt: No such file or directory"*"check the path"* ]]
}
