// What `driver.execute_script` runs: all visible texts, with the contrast of WCAG between their colour and what is behind them.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const channels = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const luminance = ([red, green, blue]) => {
  const linear = [red, green, blue].map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = channels(getComputedStyle(each).backgroundColor);
    if (found[3] === 255) return found;
  }
  return [255, 255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
  if (element.closest(":disabled, .unseen, script, noscript, datalist, .skip")) continue;
  const style = getComputedStyle(element);
  const [one, two] = [luminance(channels(element instanceof SVGElement ? style.fill : style.color)), luminance(behind(element))];
  const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  found.push({ text: walker.currentNode.data.trim().slice(0, 40), contrast: Math.round(contrast * 100) / 100 });
}
return found;
