// What single tokens are as text.

// Questions to the server at a time; browsers open about six connections.
const PARALLEL = 6;

export class Spellings {
  #api;
  #known = new Map();
  // Whether the model has text at all.
  #hasText = true;

  constructor(api) {
    this.#api = api;
  }

  // `model` is the `txl` object of GET /v1/models.
  setModel(model) {
    this.#hasText = Boolean(model.vocabulary_kind);
  }

  // The text of each id; each is asked for once.
  async of(ids) {
    if (!this.#hasText) return ids.map((id) => `#${id}`);
    const missing = [...new Set(ids)].filter((id) => !this.#known.has(id));
    const next = async () => {
      for (let id = missing.pop(); id !== undefined; id = missing.pop()) {
        const { prompt } = await this.#api.detokenize([id]);
        this.#known.set(id, prompt ?? "");
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, next));
    return ids.map((id) => this.#known.get(id));
  }
}
