// --- pictures of what is shown, as SVG and as PNG -----------------------------------------------------------------

const SHARP = 2; // pixels of a PNG for each unit of the drawing
const fileName = (...parts) => parts.filter(Boolean).join("-").replace(/[^\w.-]+/g, "-");

function offer(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

async function savePicture({ svg, name }, suffix) {
  const text = new XMLSerializer().serializeToString(svg);
  const drawing = new Blob([text], { type: "image/svg+xml" });
  if (suffix === "svg") return offer(`${name}.svg`, drawing);
  const image = Object.assign(new Image(), { src: URL.createObjectURL(drawing) });
  await image.decode();
  const [width, height] = ["width", "height"].map((side) => Math.ceil(SHARP * svg.getAttribute(side)));
  const canvas = make("canvas", { width, height });
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((blob) => offer(`${name}.png`, blob), "image/png");
}

const paper = () => draw("rect", { width: "100%", height: "100%", fill: look().paper });

function headsPicture() {
  const { ink } = look();
  const [width, height, left] = [46, 30, 30];
  const size = { width: left + width * data.heads + 4, height: height * (data.layers + 2) };
  const title = [byId("heads-title").textContent, view.task, view.state].filter(Boolean).join(", ");
  const svg = draw("svg", { ...size, ...FONT }, paper(), draw("text", { x: 4, y: 18, fill: ink, "font-size": 13 }, title));
  const text = (x, y, words, fill = ink, fontSize = 11) =>
    svg.append(draw("text", { x, y, fill, "text-anchor": "middle", "font-size": fontSize }, words));
  const top = (layer) => height * (data.layers - layer);
  gridContent().forEach(({ text: words, colour, mark }, at) => {
    const [layer, head] = nameOf(at).split("-").map(Number);
    const [x, y] = [left + head * width, top(layer)];
    const box = { x: x + 1, y: y + 1, width: width - 2, height: height - 2, rx: 3 };
    svg.append(draw("rect", { ...box, fill: colour ? css(colour) : "none", stroke: ink, "stroke-opacity": 0.2 }));
    const inked = colour ? inkOn(colour) : ink;
    text(x + width / 2, y + 20, words, inked);
    if (mark && mark !== words) text(x + width - 7, y + 10, mark, inked, 9);
  });
  for (let layer = 0; layer < data.layers; layer++) text(left / 2, top(layer) + 20, String(layer));
  for (let head = 0; head < data.heads; head++) {
    text(left + (head + 0.5) * width, height * (data.layers + 1) + 16, String(head));
  }
  return { svg, name: fileName("heads", view.task, view.state, view.role, view.by) };
}

// The canvas becomes a picture inside of the drawing, as large as on the page so that no program smooths it.
function attentionPicture() {
  const { sentence, state, svg, canvas, cell, margin } = currentAttention;
  const copy = svg.cloneNode(true);
  if (canvas) {
    const side = canvas.width * cell;
    const large = make("canvas", { width: SHARP * side, height: SHARP * side });
    const context = large.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(canvas, 0, 0, large.width, large.height);
    const href = large.toDataURL("image/png");
    copy.prepend(draw("image", { x: margin, y: margin, width: side, height: side, href }));
  }
  copy.prepend(paper());
  return { svg: copy, name: fileName("attention", sentence.id, state, "head", nameOf(view.head), view.view) };
}
