"""`pip install` into the environment of this Python, whatever pip's own settings say of other places.

Indexes, certificates, proxies and constraints of the user hold; `user`, `target`, `prefix` and all else do not.
"""

import ast
import os
import subprocess
import sys

USERS = (
    "index-url extra-index-url no-index find-links trusted-host cert client-cert proxy timeout default-timeout retries "
    "keyring-provider cache-dir constraint use-feature"
).split()
SECTIONS = ("global", "install", ":env:")  # the later ones prevail


def settings() -> dict[str, str]:
    """The user's settings of USERS in pip's files and variables, as variables."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    names = dict(line.split("=", 1) for line in lines if "=" in line)
    variables = {}
    for section in SECTIONS:
        for name in USERS:
            if value := names.get(f"{section}.{name}"):
                variables[f"PIP_{name.upper().replace('-', '_')}"] = ast.literal_eval(value)
    return variables


def main() -> int:
    """Runs `pip install` with the arguments of the command line."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment = others | settings() | {"PIP_CONFIG_FILE": os.devnull}
    options = ["install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([sys.executable, "-m", "pip", *options, *sys.argv[1:]], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
