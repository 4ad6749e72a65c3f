"""The Python package with its generated parts, as an installed one."""

import importlib.util
import pathlib
import shutil
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[3]


def unpack(folder):
    """Puts the package into `folder`, from which it can be imported."""
    target = folder / "txl_client"
    shutil.copytree(ROOT / "python/txl_client", target,
                    ignore=shutil.ignore_patterns("_proto", "__pycache__"))
    hook = _build_hook()
    hook.generate(ROOT / "proto", target / "_proto")
    hook.write_waiting(target)


def _build_hook():
    """The package's own; of hatchling it needs a class to derive from."""
    interface = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = list
    sys.modules.setdefault(interface.__name__, interface)
    spec = importlib.util.spec_from_file_location(
        "hatch_build", ROOT / "python/hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
