() => [...document.querySelectorAll("input, select, button, a, img, summary")].filter(e => e.getClientRects().length &&
  !(e.getAttribute("aria-label") || e.getAttribute("alt") || e.innerText || "").trim()).map(e => e.outerHTML.slice(0, 120))
