"""A certificate authority of the test's own, made by openssl."""
import os
import subprocess

SERVER_NAMES = "DNS:localhost,IP:127.0.0.1"


class Certificates:
    """ca, server_cert/server_key for localhost and 127.0.0.1, client_cert/client_key for the user `partner`, other_ca."""

    def __init__(self, folder):
        self._folder = str(folder)
        self.ca, self._ca_key = self._authority("ca")
        self.other_ca, _ = self._authority("other-ca")
        self.server_cert, self.server_key = self._signed("server", "localhost", f"subjectAltName={SERVER_NAMES}")
        self.client_cert, self.client_key = self._signed("client", "partner", "extendedKeyUsage=clientAuth")

    def _authority(self, name):
        cert, key = self._path(f"{name}.pem"), self._path(f"{name}.key")
        _openssl("req", "-x509", *_new_key(key), "-subj", f"/CN=claimq test {name}", "-days", "2", "-out", cert)
        return cert, key

    def _signed(self, name, common_name, extension):
        cert, key, request = self._path(f"{name}.pem"), self._path(f"{name}.key"), self._path(f"{name}.csr")
        extensions = self._path(f"{name}.ext")
        with open(extensions, "w") as file:
            file.write(extension + "\n")
        _openssl("req", *_new_key(key), "-subj", f"/CN={common_name}", "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._ca_key, "-CAcreateserial",
                 "-days", "2", "-extfile", extensions, "-out", cert)
        return cert, key

    def _path(self, name):
        return os.path.join(self._folder, name)


def _new_key(path):
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
