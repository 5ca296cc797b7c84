"""Build, check and describe a release in the folder dist: sdists, wheels, SHA256SUMS and sbom.json.

python scripts/release.py

What is built is the last commit, so two calls give the same bytes. Nothing is uploaded: the last lines say
what a person must do.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"
CORE_MB = 3  # Largest wheel of uetrust
LISTED = """
import json
from importlib.metadata import distributions
found = {d.metadata["Name"]: (d.version, d.metadata.get("License-Expression") or "") for d in distributions()}
print(json.dumps(found))
"""


def sh(*words, cwd=ROOT, **env):
    "Output of a command; its errors go to the terminal."
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=os.environ | env, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def find_links():
    "Folder of wheels that pip was told about, if any; uv does not read pip's settings."
    pip = [sys.executable, "-m", "pip", "config", "get", "global.find-links"]
    found = subprocess.run(pip, capture_output=True, text=True).stdout.strip()
    return ["--find-links", found] if found else []


def build(source, out, day):
    "An sdist and the wheel that is made of it."
    tools = [*find_links(), "-b", ROOT / "pins" / "tools.pin"]
    sh(UV, "build", "-q", "-o", out, *tools, source, SOURCE_DATE_EPOCH=day)


def check_wheel(wheel):
    "Refuse a wheel that is large, or holds what belongs to the makers."
    names = zipfile.ZipFile(wheel).namelist()
    wrong = [name for name in names if "/dev/" in name or name.endswith(("_modidx.py", ".ipynb"))]
    size = wheel.stat().st_size / 1e6
    if not wheel.name.startswith("uetrust_models") and (wrong or size > CORE_MB):
        sys.exit(f"{wheel.name}: {size:.1f} MB, of at most {CORE_MB}; not for users: {wrong[:3]}")
    print(f"  {wheel.name}: {size:.1f} MB, {len(names)} files")


def try_wheel(wheel, folder):
    "Packages of an empty environment with the wheel, after two commands of a user."
    python = folder / "env" / "bin" / "python"
    sh(UV, "venv", "-q", "-p", sys.executable, folder / "env")
    pins = ["-c", ROOT / "pins" / "constraints.txt"]
    sh(UV, "pip", "install", "-q", "-p", python, *find_links(), *pins, wheel)
    user = folder / "user"
    user.mkdir()
    for line in ("example", "audit data/examples/pilot.csv --truth human"):
        sh(folder / "env" / "bin" / "uetrust", *line.split(), cwd=user)
    return json.loads(sh(python, "-c", LISTED, cwd=user))


def bill_of_materials(packages, version):
    "CycloneDX of the core and what it is installed with."
    components = [
        dict(type="library", name=name, version=at, purl=f"pkg:pypi/{name.lower()}@{at}")
        | (dict(licenses=[dict(expression=licence)]) if licence else {})
        for name, (at, licence) in sorted(packages.items(), key=lambda one: one[0].lower())
        if name != "uetrust"
    ]
    about = dict(component=dict(type="library", name="uetrust", version=version))
    return dict(bomFormat="CycloneDX", specVersion="1.5", version=1, metadata=about, components=components)


def main():
    if changed := sh("git", "status", "--porcelain", "--untracked-files=no").strip():
        sys.exit(f"commit first, a release is a commit; changed are\n{changed}")
    commit, day = sh("git", "log", "-1", "--format=%h %ct").split()
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sh("git", "clone", "-q", "--depth", "1", f"file://{ROOT}", folder / "source")
        for source in (folder / "source", folder / "source" / "data" / "models"):
            build(source, dist, day)
        (dist / ".gitignore").unlink(missing_ok=True)
        built = sorted(dist.iterdir())
        for wheel in dist.glob("*.whl"):
            check_wheel(wheel)
        sh(
            UV,
            "run",
            "-q",
            "--no-project",
            "--isolated",
            "--with",
            "twine",
            "twine",
            "check",
            "--strict",
            *built,
        )
        packages = try_wheel(next(dist.glob("uetrust-*.whl")), folder)
    version = packages["uetrust"][0]
    bill = json.dumps(bill_of_materials(packages, version), indent=1, ensure_ascii=False)
    (dist / "sbom.json").write_text(bill + "\n", encoding="utf-8")
    files = sorted(dist.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    print(
        f"ok dist: uetrust {version} of commit {commit}, {len(packages) - 1} packages in sbom.json. Now you"
    )
    print(f"  1. see that CHANGELOG.md and CITATION.cff date {version} today, or commit that and run again")
    print(f"  2. tag the commit: git tag -s v{version} {commit}, and push the tag")
    print("  3. upload the four archives: uv publish dist/*.tar.gz dist/*.whl")
    print("  4. make a release of the tag with SHA256SUMS and sbom.json; Zenodo then gives it a DOI")


if __name__ == "__main__":
    main()
