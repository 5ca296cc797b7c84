"""matrix.py PROFILE: names of the notebooks that a profile runs, one per bank and chapter, one per printed (dataset, generator), per (mode, calibrator) and per study."""

import configparser
import sys

c = configparser.ConfigParser(interpolation=None, default_section="common")
c.read("settings.ini")
name = f"profile.{sys.argv[1]}"
if name not in c:
    sys.exit(f"settings.ini has no [{name}]; it has {c.sections()}")
p = c[name]
print(
    *(f"{what}--{b}" for b in p["banks"].split() for what in p["chapters"].split()),
    *p["settings"].split(),
    *(f"threshold--{m}--{k}" for m in p["modes"].split() for k in p["calibrators"].split()),
    *p["studies"].split(),
)
