"""The wheel carries what commands read outside a checkout: settings.ini and the data."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("published", "models", "judges", "canaries.json", "demo_methods.csv", "metric_costs.json")
SHIPPED += ("people", "people_regret.csv", "people_prr.csv", "registry.csv", "checkpoints.csv")
SHIPPED += ("exhibits.csv", "glossary.csv")


class BuildWithData(build_py):
    "Python modules, and beside them the data in `uetrust/_project`; an editable install reads the checkout."

    def run(self):
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "uetrust" / "_project"
        (target / "data").mkdir(parents=True, exist_ok=True)
        shutil.copy2("settings.ini", target)
        for name in SHIPPED:
            source = Path("data") / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, target / "data" / name)


setup(cmdclass=dict(build_py=BuildWithData))
