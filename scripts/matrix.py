"""matrix.py PROFILE: names of the notebooks that a profile runs, one per (dataset, generator) and one per study."""
import configparser, sys

c = configparser.ConfigParser(interpolation=None, default_section='common')
c.read('settings.ini')
name = f'profile.{sys.argv[1]}'
if name not in c: sys.exit(f'settings.ini has no [{name}]; it has {c.sections()}')
print(*c[name]['settings'].split(), *c[name]['studies'].split())
