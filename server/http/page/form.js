// The fields of a turn's parameters.

import { byId, element } from "./dom.js";
import { PARAMETERS, defaultFields } from "./request.js";

// Fields that stand elsewhere in the form, or hold no number.
const OTHER = ["seed", "stop", "logprobs", "ignore_eos", "follow_kinds"];

// What fields are called here and in GenerateRequest.
const GRPC_NAMES = { text: "prompt", stop_texts: "stop",
  ignore_end_token: "ignore_eos" };

export class ParameterForm {
  #defaults = {};

  constructor() {
    byId("parameter-grid").replaceChildren(
      ...PARAMETERS.map(numberField),
      numberField({ name: "logprobs", label: "Alternatives shown", step: 1 }),
      element("div", {},
        element("label", { for: "stop-texts" }, "Stop texts ",
          element("span", { class: "hint" }, "one a line, \\n for a break")),
        element("textarea", { id: "stop-texts", name: "stop", rows: "2",
          spellcheck: "false" })),
      checkField({ name: "ignore_eos", label: "Ignore end tokens" }),
      checkField({ name: "follow_kinds",
        label: "Only tokens of kinds that may follow" }));
    byId("reset-parameters").addEventListener("click", () => this.reset());
  }

  // `model` is the `txl` object of GET /v1/models.
  setModel(model) {
    this.#defaults = defaultFields(model);
    fieldOf("follow_kinds").parentElement.hidden =
      (model.token_kinds ?? []).length === 0;
    this.reset();
  }

  reset() {
    this.mark(null);
    for (const [name, value] of Object.entries(this.#defaults)) {
      const field = fieldOf(name);
      if (typeof value === "boolean") field.checked = value;
      else field.value = value;
    }
  }

  // What the fields hold, and what they held at first.
  read() {
    const names = [...PARAMETERS.map(({ name }) => name), ...OTHER];
    const fields = Object.fromEntries(names.map((name) => {
      const field = fieldOf(name);
      return [name, field.type === "checkbox" ? field.checked : field.value];
    }));
    return { fields, defaults: this.#defaults };
  }

  // Marks the field that an error is about; a name that is no field's, or null,
  // marks none.
  mark(param) {
    for (const field of byId("turn-form").elements) {
      field.removeAttribute("aria-invalid");
    }
    const field = param === null ? undefined : fieldOf(param);
    if (!field) return;
    field.setAttribute("aria-invalid", "true");
    if (byId("parameters").contains(field)) byId("parameters").open = true;
    field.focus();
  }
}

// Errors may name a part of a field ("stop[1]"), and fields as gRPC does.
function fieldOf(param) {
  const name = param.replace(/\[.*/, "").split(".").at(-1);
  return byId("turn-form").elements.namedItem(GRPC_NAMES[name] ?? name);
}

function checkField({ name, label }) {
  return element("div", { class: "check" },
    element("input", { id: name, name, type: "checkbox" }),
    element("label", { for: name }, label));
}

function numberField({ name, label, step }) {
  return element("div", {},
    element("label", { for: name }, label),
    element("input", { id: name, name, type: "number", step,
      inputmode: "decimal" }));
}
