#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens each page of build/site in a browser, at the widths of a phone and of a desktop, in the light and the dark theme,
and checks width and contrast.

    tools/docs/build_site.sh && tools/docs/site_widths.py                 names each page that scrolls sideways, or that has
                                                                          text of too little contrast (WCAG 2.1, AA); exit code 1
    tools/docs/site_widths.py --pictures FOLDER --only results/faults     also keeps a picture of each page at both widths

It needs Chromium (apt install chromium) and no network. Elements that scroll inside the page (tables, blocks of code)
do not count.
"""
import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
WIDTHS = (390, 1280)
THEMES = {"light": 1, "dark": 0}  # Chromium's numbers of the schemes that a reader's system may prefer
BROWSERS = ("chromium", "chromium-headless-shell", "chrome-headless-shell", "google-chrome")
MILLISECONDS = 600_000  # of the browser's virtual time, for all pages
FRAMES = """<!doctype html><body><script>
const looks = [LOOKS];
const channels = colour => colour.match(/[\\d.]+/g).map(Number);
const over = (front, back) => {
  const share = front.length > 3 ? front[3] : 1;
  return [0, 1, 2].map(i => share * front[i] + (1 - share) * back[i]);
};
// Relative luminance and contrast as WCAG 2.1 defines them.
const luminance = colour => {
  const [r, g, b] = colour.map(c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};
function backgroundOf(element, view) {
  if (element === null) return [255, 255, 255];
  const own = channels(view.getComputedStyle(element).backgroundColor);
  return over(own, own.length < 4 || own[3] === 1 ? own : backgroundOf(element.parentElement, view));
}
// Kinds of visible text whose contrast is below what is asked for their size.
function faint(frame) {
  const view = frame.contentWindow, kinds = new Set();
  for (const element of frame.contentDocument.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim() !== '');
    const style = view.getComputedStyle(element);
    if (!hasText || element.closest('svg') || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const back = backgroundOf(element, view), ratio = contrast(over(channels(style.color), back), back);
    if (ratio < (large ? 3 : 4.5)) kinds.add(element.tagName.toLowerCase() + '.' + [...element.classList].join('.') + ':' + ratio.toFixed(2));
  }
  return [...kinds].join(',') || '-';
}
const frame = document.createElement('iframe');
let text = '';
function next() {
  if (looks.length === 0) { document.body.innerHTML = '<pre id="widths">' + text + '</pre>'; return; }
  const [width, name, address] = looks.shift();
  frame.style.cssText = 'border:0;height:900px;width:' + width + 'px';
  frame.onload = () => {
    const page = frame.contentDocument.documentElement;
    text += [width, name, page.scrollWidth, page.clientWidth, faint(frame)].join(' ') + '\\n';
    next();
  };
  frame.src = address;
}
document.body.append(frame);
next();
</script></body>
"""


def browser():
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def browse(folder, *arguments):
    """What the browser writes on standard output; its profile lies in the folder."""
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
               f"--user-data-dir={folder}/profile", "--allow-file-access-from-files", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def faults_of(pages, folder, theme):
    """Returns one line for each page that is wider than the browser's frame or has text of too little contrast."""
    looks = ",".join(f"[{width}, '{page.relative_to(SITE).as_posix()}', '{page.as_uri()}']" for page in pages for width in WIDTHS)
    folder = folder / theme  # a browser's profile keeps the theme that a page had first
    folder.mkdir()
    frames = folder / "frames.html"
    frames.write_text(FRAMES.replace("LOOKS", looks), encoding="utf-8")
    shown = browse(folder, f"--virtual-time-budget={MILLISECONDS}", f"--blink-settings=preferredColorScheme={THEMES[theme]}", "--dump-dom",
                   frames.as_uri())
    found = re.search(r'<pre id="widths">(.*?)</pre>', shown, re.DOTALL)
    rows = [line.split() for line in html.unescape(found[1]).splitlines() if line] if found else []
    if len(rows) != len(pages) * len(WIDTHS):
        return [f"site widths: the browser showed {len(rows)} of {len(pages) * len(WIDTHS)} pages"]
    wide = [f"build/site/{name}: {theme} theme: {taken} pixels wide where there are {there}" for _, name, taken, there, _ in rows if int(taken) > int(there)]
    return wide + sorted({f"build/site/{name}: {theme} theme: too little contrast: {kinds}" for _, name, _, _, kinds in rows if kinds != "-"})


def keep_pictures(pages, folder, pictures):
    pictures.mkdir(parents=True, exist_ok=True)
    for page in pages:
        for width in WIDTHS:
            name = page.relative_to(SITE).with_suffix("").as_posix().replace("/", "-")
            frame = folder / "frame.html"
            frame.write_text(f'<!doctype html><body style="margin:0"><iframe style="border:0;width:{width}px;height:2400px" '
                             f'src="{page.as_uri()}"></iframe></body>', encoding="utf-8")
            browse(folder, f"--window-size={max(width, 500)},2400", "--virtual-time-budget=5000",
                   f"--screenshot={pictures}/{name}-{width}.png", frame.as_uri())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, help="keep a picture of each page at both widths in this folder")
    parser.add_argument("--only", default="", help="pages whose path begins with this")
    options = parser.parse_args()
    if not browser():
        print("site widths: not looked at, there is no Chromium (apt install chromium)")
        return 0
    pages = [page for page in sorted(SITE.rglob("*.html")) if page.relative_to(SITE).as_posix().startswith(options.only)]
    with tempfile.TemporaryDirectory() as folder:
        faults = [fault for theme in THEMES for fault in faults_of(pages, pathlib.Path(folder), theme)]
        if options.pictures:
            keep_pictures(pages, pathlib.Path(folder), options.pictures.resolve())
    for fault in faults:
        print(fault)
    print(f"site widths: {len(pages)} pages at {' and '.join(map(str, WIDTHS))} pixels, {' and '.join(THEMES)}: {f'{len(faults)} violations' if faults else 'ok'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
