// Elements of the page. Everything goes in as text, never as markup.

export function byId(id) {
  return document.getElementById(id);
}

// A new element. Attributes that are functions listen to the event of their
// name; true stands for an attribute without a value, false and null for none.
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Does `draw` once before the next frame, however often it is called.
export function oncePerFrame(draw) {
  let wanted = false;
  return () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => {
      wanted = false;
      draw();
    });
  };
}

// An error with its message and, where one is to blame, the field; null for
// none.
export function showError(place, error) {
  place.hidden = error === null;
  if (error === null) return;
  const field = error.param ? `${error.param}: ` : "";
  const code = error.code ? ` [${error.code}]` : "";
  const text = field + error.message + code;
  // A screen reader says what is set, also when it is the same again.
  if (place.textContent !== text) place.textContent = text;
}

// Asks a question; resolves to whether the answer was yes.
export function ask(question, yes) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-labelledby": "question" },
      element("p", { id: "question" }, question));
    const close = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    dialog.append(element("div", { class: "buttons" },
      element("button", { type: "button", class: "danger",
        click: () => close(true) }, yes),
      element("button", { type: "button", autofocus: true,
        click: () => close(false) }, "Cancel")));
    dialog.addEventListener("cancel", () => close(false));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Puts text on the clipboard. Browsers allow it on secure pages only; elsewhere
// `shown`, which holds the text, is selected, so that a key copies it.
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(shown);
    return false;
  }
}

// Rows of a two-column list: name and value.
export function fillFacts(list, facts) {
  list.replaceChildren(...facts.flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, value)]));
}
