// What appears beside the mouse, in the colours of the page.

// Names may hold anything: they reach the page as text, never as HTML.
function tip(facts) {
  const box = document.createElement("div");
  box.className = "tip";
  facts.forEach((fact, i) => {
    const line = box.appendChild(document.createElement(i === 0 ? "strong" : "div"));
    line.textContent = fact;
  });
  return box;
}

function tooltipStyle(shade) {
  return {
    confine: true,
    transitionDuration: 0,
    backgroundColor: shade.paper,
    borderColor: shade.edge,
    textStyle: { color: shade.ink, fontSize: 13 },
  };
}
