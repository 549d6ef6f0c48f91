"""Makes a virtual environment with pinned packages: `python-venv.py FOLDER REQUIREMENT...`.

Several processes may ask for one folder at the same time: the first makes it while the others wait for the kernel's
lock, which a killed process gives back. A folder that was left half made, or made of other requirements, is made anew.
Ends with 3 where this Python is too old.
"""

import fcntl
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

if sys.version_info < (3, 10):
    sys.exit(3)

folder, requirements = Path(sys.argv[1]), sys.argv[2:]
ready = folder / "ready"
pins = "\n".join(requirements)
# A stop ends the installer too, not this process alone.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

folder.parent.mkdir(parents=True, exist_ok=True)
with open(f"{folder}.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not ready.exists() or ready.read_text() != pins:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install"]
        subprocess.run([*pip, "--quiet", "--disable-pip-version-check", "--retries", "1", *requirements], check=True)
        ready.write_text(pins)
