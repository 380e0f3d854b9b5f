// createStyle stands in for <style>: the text goes to a constructed style sheet, which the Content-Security-Policy
// allows where it forbids inline styles.
export function createStyle() {
  const element = document.createElement("template");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", {
    get: () => Array.from(sheet.cssRules, (r) => r.cssText).join("\n"),
    set: (text) => sheet.replaceSync(text),
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
