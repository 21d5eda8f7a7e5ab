# SPDX-License-Identifier: Apache-2.0
"""Contrast of text and signs, as a browser has painted them, by WCAG 2.

https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio
"""

# Text needs 4.5 to 1, large text and signs 3 to 1 (level AA).
_SCRIPT = """(() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, below) => {
    const mix = (key) => top[key] * top.a + below[key] * (1 - top.a);
    return { r: mix("r"), g: mix("g"), b: mix("b"), a: 1 };
  };
  const part = (value) => {
    const x = value / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ({ r, g, b }) =>
    0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.backgroundColor = "Canvas";
  const canvas = parse(getComputedStyle(probe).backgroundColor);
  probe.remove();
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      layers.push(parse(getComputedStyle(one).backgroundColor));
    }
    return layers.reverse().reduce((below, top) => over(top, below), canvas);
  };
  const found = [];
  const judge = (element, colour, least, said) => {
    const ground = behind(element);
    const seen = ratio(over(parse(colour), ground), ground);
    found.push({ said, seen: Math.round(seen * 100) / 100, least });
  };
  for (const element of document.body.querySelectorAll("*")) {
    // What only adorns says nothing that is not said beside it.
    if (!element.checkVisibility() || element.ariaHidden) { continue; }
    const style = getComputedStyle(element);
    if (element instanceof SVGGeometryElement) {
      const colour = style.stroke === "none" ? style.fill : style.stroke;
      judge(element, colour, 3, `sign ${element.getAttribute("class")}`);
      continue;
    }
    const text = [...element.childNodes].filter((node) => node.nodeType === 3)
      .map((node) => node.data.trim()).join("") || element.placeholder;
    if (!text) { continue; }
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const colour = element.placeholder
      ? getComputedStyle(element, "::placeholder").color : style.color;
    judge(element, colour, large ? 3 : 4.5, `${element.tagName} ${text.slice(0, 40)}`);
  }
  return found;
})()"""


def looked_at(browser):
    """Return what has a colour in the page: its contrast and the least it needs."""
    return browser.run(_SCRIPT)


def faults(browser):
    """Return what is too weak in a page."""
    return [one for one in looked_at(browser) if one["seen"] < one["least"]]
