// --- colours: one scale for scores and for attention, in times uniform ------------------------------------------

const darkMode = matchMedia("(prefers-color-scheme: dark)");
// Light to dark through green and blue: also in grey, and whatever colours the eye tells apart.
const RAMP = [
  ...["#fbfefd", "#d9f0e8", "#addfd2", "#74c8c4", "#46aab6"],
  ...["#3389a9", "#34669a", "#3e4580", "#352750", "#0b0405"],
].map(channels);
const LESS = channels("#1f4e8c"), MORE = channels("#a34a00");
const LOOKS = {
  light: { ink: "#111111", paper: "#ffffff", quiet: "#555555", outline: "#d55e00", line: "#0072b2", uniform: "#999999" },
  dark: { ink: "#eeeeee", paper: "#16181b", quiet: "#b3b3b3", outline: "#ff9b57", line: "#56b4e9", uniform: "#888888" },
};
const look = () => LOOKS[darkMode.matches ? "dark" : "light"];

function channels(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

const blend = (from, to, share) => from.map((channel, i) => Math.round(channel + share * (to[i] - channel)));
const css = (colour) => `rgb(${colour.join(",")})`;

// In the dark the scale is turned round, so that nothing stays close to the page.
function ramp(share) {
  const bounded = Math.min(Math.max(share, 0), 1);
  const place = (darkMode.matches ? 1 - bounded : bounded) * (RAMP.length - 1);
  const below = Math.min(Math.floor(place), RAMP.length - 2);
  return blend(RAMP[below], RAMP[below + 1], place - below);
}

const scoreColour = (value) => ramp(value / CAP);

// -1 blue, 0 the page, +1 orange; the sign is printed too, since grey shows both alike.
const changeColour = (share) => blend(channels(look().paper), share < 0 ? LESS : MORE, Math.min(Math.abs(share), 1));

function luminance(colour) {
  const [red, green, blue] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Black or white, whichever stands out more: at least 4.58 to 1 on any colour.
const inkOn = (colour) => ((luminance(colour) + 0.05) ** 2 > 0.05 * 1.05 ? "#000000" : "#ffffff");

function pixels(canvas, width, height, colourAt) {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = colourAt(x, y);
      if (colour) image.data.set([...colour, 255], 4 * (y * width + x));
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
