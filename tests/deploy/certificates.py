"""A certificate authority of the test's own."""

import pathlib
import subprocess


def openssl(*argv):
    subprocess.run(["openssl", *map(str, argv)], check=True,
                   capture_output=True)


class Authority:
    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.key = self.folder / "ca.key"
        self.certificate = self.folder / "ca.crt"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
                "-subj", f"/CN={name}", "-keyout", self.key,
                "-out", self.certificate)

    def issue(self, folder, address, owner):
        """tls.crt and tls.key for an IP address, readable for `owner`."""
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        request = self.folder / "request"
        extensions = self.folder / "extensions"
        extensions.write_text(f"subjectAltName=IP:{address}\n")
        key = folder / "tls.key"
        openssl("req", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", "/CN=txl", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate,
                "-CAkey", self.key, "-CAcreateserial", "-days", 1,
                "-extfile", extensions, "-out", folder / "tls.crt")
        subprocess.run(["chown", f"{owner}:{owner}", key], check=True)
        return folder
