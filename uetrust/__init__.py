"""Can an uncertainty score be trusted, and can the way we test it?"""
__version__ = "0.1.0"
