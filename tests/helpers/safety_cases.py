"""What the tests of safety_cases share."""


def pieces(key):
    return [key[i : i + 8] for i in range(len(key) - 7)]
