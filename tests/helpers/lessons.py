"""What the tests of lessons share."""

import nbformat


def cells(path, kind):
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == kind]
