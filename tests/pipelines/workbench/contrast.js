() => {
  const parse = color => (color.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
    v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const behind = element => { for (let up = element; up; up = up.parentElement) {
    const color = parse(getComputedStyle(up).backgroundColor); if (color.length == 3 || color[3] > 0) return color; } return [255, 255, 255]; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const faults = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(n => n.nodeType == 3 && n.textContent.trim());
    if (!element.getClientRects().length || element.disabled || element.closest("[disabled], .heard, option")) continue;
    const style = getComputedStyle(element);
    if (own && ratio(parse(style.color), behind(element)) < 4.5) faults.push(["text", element.outerHTML.slice(0, 120)]);
    if (["INPUT", "SELECT"].includes(element.tagName) && ratio(parse(style.borderTopColor), behind(element.parentElement)) < 3)
      faults.push(["border", element.outerHTML.slice(0, 120)]);
  }
  return faults;
}
