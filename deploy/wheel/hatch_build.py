"""What of the wheel's metadata follows from what was built."""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramsHook(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        # Any Python; auditwheel narrows the platform.
        build_data["tag"] = f"py3-none-{platform}"
        # The programs are linked with this version's LibTorch; C++ has no
        # promise beyond it.
        build_data["dependencies"] = [f"torch=={os.environ['TXL_TORCH']}"]
