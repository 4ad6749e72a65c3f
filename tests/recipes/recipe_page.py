"""The recipes of a Markdown page as scripts."""

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    title: str
    script: str  # for bash; of all code of the recipe, in its order


def recipes(page):
    """The recipe under each heading. What is above the first one has none."""
    chapters = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    return [Recipe(title, "".join(_part(*block)
                                  for block in _BLOCK.findall(text)))
            for title, text in zip(chapters[::2], chapters[1::2])]


def _part(language, code):
    """`server_is_up` stands after each command that starts a server."""
    if language == "python":
        return f"python - <<'END_OF_PYTHON'\n{code}END_OF_PYTHON\n"
    if language:
        raise ValueError(f"a recipe has a block of {language}")
    return re.sub(r" &\n", " &\nserver_is_up\n", code)
